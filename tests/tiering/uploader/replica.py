"""One broker's copy of a log, as files: what it took from leaders, cut into segments wherever it liked.

A replica remembers every batch of its log, also of what its own retention took since: what its log says of
an offset is known for ever. On disk are only the segments from its start on, damaged where a test damaged
them. Batches go from leader to follower whole, as Kafka's do, so logs part and are cut at their boundaries.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.encode.record_batch import PlainRecord, encode_batch
from tiering.log.wire import Uuid

ROLL_CHANCE = 0.4
FLIPPED_BYTE = 67  # of a batch: the first value's first, behind the header's 61 and six of the record's


class Batch(NamedTuple):
    """Records `[start, end)` as one leader wrote them."""

    start: int
    end: int
    epoch: int
    content: bytes

    def values(self) -> Mapping[int, bytes]:
        return {offset: value_of(offset, self.epoch) for offset in range(self.start, self.end)}


def value_of(offset: int, epoch: int) -> bytes:
    return f"{offset}@{epoch}".encode()


def batch_of(start: int, count: int, epoch: int) -> Batch:
    records = [
        PlainRecord(offset=o, timestamp_ms=1_700_000_000_000 + o, value=value_of(o, epoch))
        for o in range(start, start + count)
    ]
    return Batch(start, start + count, epoch, encode_batch(records, leader_epoch=epoch))


@dataclass(slots=True)
class Replica:
    """The last of `bases` is the active segment's."""

    broker_id: int
    path: Path
    chance: random.Random
    batches: list[Batch] = field(default_factory=list)
    bases: list[int] = field(default_factory=lambda: [0])
    epochs: list[tuple[int, int]] = field(default_factory=list)
    log_start: int = 0
    gone: set[int] = field(default_factory=set)  # bases of segments whose file vanished
    rotten: set[int] = field(default_factory=set)  # bases of segments with a flipped bit

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else 0

    @property
    def is_damaged(self) -> bool:
        return bool(self.gone or self.rotten)

    def create(self, topic_id: Uuid) -> None:
        """An empty directory for a topic; what stood there before is gone."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        (self.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
        self.batches, self.bases, self.epochs, self.log_start = [], [0], [], 0
        self.gone, self.rotten = set(), set()
        self._write(0)
        self.write_epochs()

    def has(self, offset: int) -> bool:
        """Whether the log, as this broker serves it, has the offset."""
        return self.log_start <= offset < self.end

    def values(self) -> Mapping[int, bytes]:
        """What the log says of each offset, of those that retention took as well."""
        return {offset: value for batch in self.batches for offset, value in batch.values().items()}

    def append(self, batch: Batch) -> None:
        self.note_epoch(batch.epoch, batch.start)
        self.batches.append(batch)
        with self._file(self.bases[-1]).open("ab") as active:
            active.write(batch.content)

    def append_new(self, count: int, epoch: int) -> None:
        """As the leader of an epoch."""
        self.append(batch_of(self.end, count, epoch))

    def note_epoch(self, epoch: int, start: int) -> None:
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs = [*(each for each in self.epochs if each[1] < start), (epoch, start)]
            self.write_epochs()

    def roll(self) -> None:
        if self.end > self.bases[-1]:
            self.bases.append(self.end)
            self._write(self.end)

    def closed(self) -> Iterator[tuple[int, int]]:
        """Base and end of each closed segment."""
        return zip(self.bases[:-1], self.bases[1:], strict=True)

    def retain(self, committed: int) -> None:
        """Local retention takes the oldest closed segment."""
        if len(self.bases) > 1 and self.bases[1] <= committed:
            self.start_at(self.bases[1])

    def start_at(self, offset: int) -> None:
        """The log begins there from now on: whole segments below go, the epoch history is cut."""
        if offset <= self.log_start:
            return
        self.log_start = offset
        while len(self.bases) > 1 and self.bases[1] <= offset:
            self._remove(self.bases[0])
        before = [each for each in self.epochs if each[1] <= offset]
        later = [each for each in self.epochs if each[1] > offset]
        self.epochs = [*([(before[-1][0], offset)] if before else []), *later]
        self.write_epochs()

    def truncate(self, end: int) -> None:
        """Nothing from `end` on is the log's: a segment that begins there or later goes, with its file."""
        if end >= self.end:
            return
        self.batches = [batch for batch in self.batches if batch.end <= end]
        for base in [each for each in self.bases if each > end]:
            self._remove(base)
        self.epochs = [each for each in self.epochs if each[1] < end]
        if not self.bases:
            self.bases = [end]
            self.log_start = end
        self.gone.discard(self.bases[-1])
        self.rotten.discard(self.bases[-1])
        self._write(self.bases[-1])
        self.write_epochs()

    def follow(self, leader: Replica) -> None:
        """Fetch from the leader until there is nothing left to fetch."""
        common = 0
        for ours, theirs in zip(self.batches, leader.batches, strict=False):
            if ours != theirs:
                break
            common = ours.end
        self.truncate(common)
        if self.end < leader.log_start:
            self._start_over(leader)
        for batch in leader.batches:
            if batch.start >= self.end:
                self.append(batch)
                if self.chance.random() < ROLL_CHANCE:
                    self.roll()
        self.start_at(leader.log_start)

    def lose_closed(self) -> None:
        """All closed segments' files vanish; the broker does not notice."""
        for base, _ in list(self.closed()):
            self._lose(base)

    def lose_last(self) -> None:
        """The last closed segment's file vanishes: the one before it then ends where it does not."""
        for base, _ in list(self.closed())[-1:]:
            self._lose(base)

    def rot_last(self) -> None:
        """A bit of a record of the last closed segment flips on disk."""
        for base, _ in list(self.closed())[-1:]:
            self.rotten.add(base)
            self._write(base)

    def _lose(self, base: int) -> None:
        self._file(base).unlink(missing_ok=True)
        self.gone.add(base)

    def _start_over(self, leader: Replica) -> None:
        """The leader has no longer what would come next: everything is thrown away (KIP-101)."""
        for base in list(self.bases):
            self._remove(base)
        self.batches = [batch for batch in leader.batches if batch.end <= leader.log_start]
        self.bases, self.log_start, self.epochs = [leader.log_start], leader.log_start, []
        self._write(leader.log_start)

    def _remove(self, base: int) -> None:
        self._file(base).unlink(missing_ok=True)
        self.bases.remove(base)
        self.gone.discard(base)
        self.rotten.discard(base)

    def _file(self, base: int) -> Path:
        return self.path / f"{base:020d}.log"

    def _write(self, base: int) -> None:
        following = next((each for each in self.bases if each > base), self.end)
        own = [batch.content for batch in self.batches if base <= batch.start and batch.end <= following]
        content = bytearray(b"".join(own))
        if base in self.rotten and content:
            content[FLIPPED_BYTE] ^= 1
        if base not in self.gone:
            self._file(base).write_bytes(content)

    def write_epochs(self) -> None:
        lines = [f"{epoch} {start}\n" for epoch, start in self.epochs]
        (self.path / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n{''.join(lines)}")
