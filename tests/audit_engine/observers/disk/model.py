"""A broker's log dirs as far as their names and sizes go: what Kafka does to them, one act at a time.

Each act returns the facts that an observer must tell of it, no more and no less. Files are real, so that the
surveyor reads them as it reads a broker's; a record is RECORD_BYTES of zeros.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from audit_engine.observers.disk.reads import Newest
from tiering.log.directory import Segment
from tiering.log.segment import base_offset_of
from tiering.log.wire import Uuid, read_uuid

RECORD_BYTES = 10
TOPIC = "orders"
NAME = f"{TOPIC}-0"
CLUSTER = "abcdefghijklmnopqrstuA"


class Fact(NamedTuple):
    """An event without its times and its place."""

    kind: str
    a: object = None
    b: object = None
    c: object = None


def topic_id(number: int) -> Uuid:
    return read_uuid(UUID(int=0x4000_8000_0000_0000_0000 + number).bytes, 0)[0]


class ModelReads:
    """As the files of the model have it."""

    def newest(self, segment: Segment) -> Newest:
        return Newest(1_000_000 + segment.base_offset, True)

    def size_bytes(self, path: Path) -> int | None:
        return path.stat().st_size if path.exists() else None

    def data_end(self, path: Path) -> int | None:
        if not path.exists():
            return None
        return base_offset_of(path.name) + path.stat().st_size // RECORD_BYTES


@dataclass(slots=True)
class Disk:
    """Two log dirs, and one partition that is in one of them, or nowhere."""

    root: Path
    peek: Callable[[], None] = lambda: None  # a look in the middle of an act
    at: int | None = None  # in which of the dirs
    bases: list[int] = field(default_factory=list)
    end: int = 0
    entry: int | None = None
    high_watermark: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    is_compacted: bool = False
    has_hole: bool = False
    number: int = 0
    topic: int = 0
    unmounted: set[int] = field(default_factory=set)
    sizes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for n in (0, 1):
            self.dir(n).mkdir(parents=True)
            directory_id = topic_id(100 + n)
            text = f"version=1\ncluster.id={CLUSTER}\nnode.id=1\ndirectory.id={directory_id}\n"
            (self.dir(n) / "meta.properties").write_text(text)
        self.topic = 1
        self.make(0)

    def dir(self, n: int) -> Path:
        return self.root / f"logs{n}"

    @property
    def paths(self) -> list[Path]:
        return [self.dir(0), self.dir(1)]

    @property
    def home(self) -> Path:
        assert self.at is not None, "the replica is somewhere"
        return self.dir(self.at) / NAME

    @property
    def is_here(self) -> bool:
        return self.at is not None and self.at not in self.unmounted

    @property
    def start(self) -> int:
        return max(self.entry or 0, self.bases[0])

    @property
    def reached(self) -> int:
        return max(self.high_watermark, self.bases[-1], *(start for _, start in self.epochs[-1:]), 0)

    def closed(self) -> list[tuple[int, int]]:
        return list(zip(self.bases, self.bases[1:], strict=False))

    # What the broker does.

    def make(self, n: int, base: int = 0, suffix: str = "") -> Path:
        """A fresh directory of the partition, with one empty segment."""
        self.number += 1
        path = self.dir(n) / f"{NAME}{suffix}"
        path.mkdir()
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id(self.topic)}\n")
        (path / _log(base)).touch()
        if not suffix:
            self.at, self.bases, self.end, self.entry = n, [base], base, None
            self.high_watermark, self.epochs, self.is_compacted, self.has_hole = 0, [], False, False
            self.sizes = {base: 0}
            self.checkpoints()
        return path

    def checkpoints(self) -> None:
        """Written whole, as the broker does; an entry no higher than the first base is left out."""
        if not self.is_here:
            return
        if self.entry is not None and self.entry <= self.bases[0]:
            self.entry = None
        path = self.home.parent
        _checkpoint(path / "replication-offset-checkpoint", self.high_watermark)
        _checkpoint(path / "log-start-offset-checkpoint", self.entry)
        _checkpoint(path / "cleaner-offset-checkpoint", self.end if self.is_compacted else None)
        lines = "".join(f"{epoch} {start}\n" for epoch, start in self.epochs)
        _replace(self.home / "leader-epoch-checkpoint", f"0\n{len(self.epochs)}\n{lines}")

    def append(self, count: int) -> list[Fact]:
        with (self.home / _log(self.bases[-1])).open("ab") as log:
            log.write(bytes(RECORD_BYTES * count))
        self.sizes[self.bases[-1]] += RECORD_BYTES * count
        self.end += count
        return []

    def commit(self) -> list[Fact]:
        self.high_watermark = self.end
        self.checkpoints()
        return []

    def roll(self, count: int) -> list[Fact]:
        self.append(count)
        base = self.bases[-1]
        self._begin(self.end)
        return [Fact("segment_closed", base, self.end, self.sizes[base])]

    def _begin(self, base: int) -> None:
        (self.home / _log(base)).touch()
        self.bases.append(base)
        self.sizes[base] = 0

    def expire(self, count: int) -> list[Fact]:
        """Retention takes a prefix of the closed segments, one by one."""
        facts, start = [], self.start
        for base, end in self.closed()[:count]:
            facts.append(Fact("segment_deleted_local", base, end, self.sizes[base]))
            self._let_go(base)
            self.peek()
        self.checkpoints()
        return facts + self._moved(start)

    def expire_all(self) -> list[Fact]:
        """The active one too: a new one is begun first."""
        start, size = self.start, self.sizes[self.bases[-1]]
        facts = [Fact("segment_deleted_local", base, end, self.sizes[base]) for base, end in self.closed()]
        facts.append(Fact("segment_deleted_local", self.bases[-1], self.end, size))
        self._begin(self.end)
        for base in self.bases[:-1]:
            self._let_go(base)
        self.checkpoints()
        return facts + self._moved(start)

    def _moved(self, start: int) -> list[Fact]:
        return [Fact("log_start_advanced", start, self.start)] if self.start != start else []

    def _let_go(self, base: int) -> None:
        path = self.home / _log(base)
        path.rename(path.with_name(path.name + ".deleted"))
        self.bases.remove(base)

    def purge(self) -> list[Fact]:
        for path in self.home.glob("*.deleted"):
            path.unlink()
        return []

    def delete_records(self, to: int) -> list[Fact]:
        start = self.start
        self.entry = max(to, start)
        self.checkpoints()
        return self._moved(start)

    def truncate(self, to: int) -> list[Fact]:
        """To within what is on disk; the broker takes the later files away in ascending order."""
        reached, cut = self.reached, max(base for base in self.bases if base <= to)
        for base in [base for base in self.bases if base > to]:
            self._let_go(base)
            self.peek()
        keep = RECORD_BYTES * (to - cut)
        with (self.home / _log(cut)).open("r+b") as log:
            log.truncate(keep)
        self.sizes[cut], self.end = keep, to
        self.high_watermark = min(self.high_watermark, to)
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < to]
        self.checkpoints()
        return [Fact("truncated", reached, min(to, reached))]

    def elect(self, epoch: int) -> list[Fact]:
        self.epochs.append((epoch, self.end))
        self.checkpoints()
        return [Fact("epoch_started", epoch, self.end)]

    def empty(self, to: int) -> list[Fact]:
        """Truncated fully, to begin at the leader's start; that start's entry is written later, or never."""
        for base in list(self.bases):
            self._let_go(base)
            self.peek()
        (self.home / _log(to)).touch()
        self.bases, self.sizes, self.end = [to], {to: 0}, to
        self.high_watermark, self.epochs, self.entry, self.has_hole = to, [], None, False
        self.checkpoints()
        return self._started("truncated_fully")

    def compact(self, at: int) -> list[Fact]:
        """Two neighbours become one, under the first one's name."""
        (first, _), (second, end) = self.closed()[at : at + 2]
        swap = self.home / (_log(first) + ".swap")
        swap.write_bytes(bytes(RECORD_BYTES // 2))
        gone = self.sizes[second]
        self._let_go(second)
        (self.home / _log(first)).rename(self.home / (_log(first) + ".deleted"))
        self.peek()
        self.peek()
        swap.rename(self.home / _log(first))
        self.sizes[first], self.is_compacted = RECORD_BYTES // 2, True
        self.checkpoints()
        return [
            Fact("segment_closed", first, end, RECORD_BYTES // 2),
            Fact("swapped", second, end, gone),
        ]

    def lose_a_middle_one(self, at: int) -> list[Fact]:
        base, end = self.closed()[at]
        (self.home / _log(base)).unlink()
        self.bases.remove(base)
        self.has_hole = True
        return [Fact("segment_deleted_local", base, end, self.sizes[base])]

    def unassign(self) -> list[Fact]:
        self._to_delete()
        self.at = None
        return [Fact("replica_removed", "renamed_delete")]

    def _to_delete(self) -> None:
        self.number += 1
        self.home.rename(self.home.with_name(f"{NAME}.{self.number:032x}-delete"))

    def assign(self, n: int) -> list[Fact]:
        self.make(n)
        return self._started("created")

    def recreate(self) -> list[Fact]:
        """The topic is deleted, and another made under its name, before anybody looks."""
        n = self.at
        assert n is not None
        self._to_delete()
        self.topic += 1
        return [Fact("replica_removed", "renamed_delete"), *self.assign(n)]

    def move(self) -> list[Fact]:
        """To the other log dir, by way of a -future directory that takes the place of this one."""
        assert self.at is not None
        n = 1 - self.at
        self.number += 1
        future = self.make(n, self.bases[0], f".{self.number:032x}-future")
        for base in self.bases:
            (future / _log(base)).write_bytes(bytes(self.sizes[base]))
        self.peek()
        self.peek()
        future.rename(future.with_name(NAME))
        self._to_delete()
        self.at, self.entry, self.is_compacted = n, None, False
        self.checkpoints()
        return [Fact("replica_removed", "replaced"), *self._started("promoted")]

    def unmount(self, n: int) -> list[Fact]:
        self.dir(n).rename(self.root / f"unmounted{n}")
        self.dir(n).mkdir()
        self.unmounted.add(n)
        return [Fact("directory_offline", str(self.dir(n)))]

    def mount(self, n: int) -> list[Fact]:
        self.dir(n).rmdir()
        (self.root / f"unmounted{n}").rename(self.dir(n))
        self.unmounted.discard(n)
        return [Fact("log_baseline", "gap")] if self.at == n else []

    def _started(self, how: str) -> list[Fact]:
        return [Fact("replica_started", how), Fact("log_baseline", "onboarding")]

    def remove(self) -> None:
        shutil.rmtree(self.root)


def _log(base: int) -> str:
    return f"{base:020d}.log"


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".tmp")
    fresh.write_text(text)
    fresh.rename(path)


def _checkpoint(path: Path, offset: int | None) -> None:
    _replace(path, "0\n0\n" if offset is None else f"0\n1\n{TOPIC} 0 {offset}\n")
