"""The text files in which a broker notes how far it is: offset checkpoints and leader-epoch checkpoints.

    0                       version, always 0                     0
    2                       how many lines follow                 2
    orders 0 10500          topic partition offset | epoch start  0 0
    orders 1 9880                                                 2 15001

    file                              says of each partition
    replication-offset-checkpoint     its high watermark, written every 5 s
    recovery-point-offset-checkpoint  up to where it is known to be on disk
    log-start-offset-checkpoint       its log start, if above its first segment's base
    cleaner-offset-checkpoint         up to where the cleaner has come: it is or was compacted
    leader-epoch-checkpoint           (one a partition) the start offset of each leader epoch

The broker replaces these files whole (write, fsync, rename). It also makes them empty before it first writes,
and reads an empty one, or none, as no entries: an erased file is not seen by Kafka, and is `blank` here.

Refuses: whatever Kafka does not write: a count that is not that of the lines, a partition or an epoch named
twice, epochs whose starts do not rise with them, negative numbers, a last line that was cut off.

Invariant: a file is read whole or not at all; an error names its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from tiering.log.errors import MalformedLine
from tiering.log.wire import Buffer

VERSION = "0"
OFFSET_MAX = 2**63 - 1
INT32_MAX = 2**31 - 1

REPLICATION_OFFSETS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (REPLICATION_OFFSETS, RECOVERY_POINTS, LOG_START_OFFSETS, CLEANER_OFFSETS)
LEADER_EPOCHS = "leader-epoch-checkpoint"


class TopicPartition(NamedTuple):
    """A partition by name, as these files have it."""

    topic: str
    partition: int


class EpochStart(NamedTuple):
    """A leader epoch, and the first offset written in it."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCheckpoint:
    """One of the four offset checkpoints. `blank`: the file was empty, as it is made and as it is erased."""

    offsets: Mapping[TopicPartition, int]
    blank: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderEpochCheckpoint:
    """A partition's leader epochs, rising. `blank`: the file was empty, as it is made and as it is erased."""

    epochs: tuple[EpochStart, ...]
    blank: bool

    def epoch_of(self, offset: int) -> int | None:
        """The leader epoch in which `offset` was written, or None if it is before the first one here."""
        within = [known.epoch for known in self.epochs if known.start_offset <= offset]
        return within[-1] if within else None


class Line(NamedTuple):
    """A line of a text file: its number from 1, the byte it starts at, and what it says."""

    number: int
    position: int
    text: str

    def refuse(self, what: str, why: str) -> MalformedLine:
        return MalformedLine(position=self.position, what=what, line=self.number, why=why)


def read_lines(
    buffer: Buffer, what: str, *, encoding: str = "utf-8", must_end: bool = True
) -> Iterator[Line]:
    """The lines of a file, one by one. `must_end`: a last line without a newline was cut off."""
    raw = bytes(buffer)
    position = 0
    for number in count(start=1):
        end = raw.find(b"\n", position)
        is_cut = end < 0
        if is_cut and position == len(raw):
            return
        try:
            line = Line(number, position, raw[position : None if is_cut else end].decode(encoding))
        except UnicodeDecodeError:
            raise Line(number, position, "").refuse(what, f"is not {encoding}") from None
        if is_cut and must_end:
            raise line.refuse(what, "does not end: the file is cut off here")
        yield line
        if is_cut:
            return
        position = end + 1


def read_number(line: Line, what: str, name: str, text: str, maximum: int) -> int:
    """A number as Kafka prints it: no sign, no leading zeros, no more than fits."""
    if not (text.isascii() and text.isdigit()) or (len(text) > 1 and text[0] == "0"):
        raise line.refuse(what, f"has {text[:80]!r} for its {name}")
    if len(text) > 19 or int(text) > maximum:  # 19 digits hold any int64: no huge number is made of text
        raise line.refuse(what, f"has a {name} of {text[:80]}, over {maximum}")
    return int(text)


def _entry_lines(buffer: Buffer, what: str) -> Iterator[Line]:
    """The lines behind the version and the count, once these are right."""
    lines = read_lines(buffer, what)
    version = next(lines)  # the buffer is not empty
    if version.text != VERSION:
        raise version.refuse(what, f"says {version.text[:80]!r}, not version {VERSION}")
    counted = next(lines, None)
    if counted is None:
        raise Line(2, len(buffer), "").refuse(what, "is missing: it should count the entries")
    entry_count = read_number(counted, what, "count", counted.text, INT32_MAX)
    raw = bytes(buffer)
    following = raw.count(b"\n") - 2 + (not raw.endswith(b"\n"))  # a cut last line is named as such below
    if entry_count != following:
        raise counted.refuse(what, f"counts {entry_count} entries, but {following} follow")
    return lines


def _fields(line: Line, what: str, shape: str) -> list[str]:
    fields = line.text.split(" ")
    if len(fields) != len(shape.split(" ")):
        raise line.refuse(what, f"is {line.text[:80]!r}, not {shape!r}")
    return fields


def read_offset_checkpoint(buffer: Buffer, what: str = "offset checkpoint") -> OffsetCheckpoint:
    """One of `OFFSET_CHECKPOINTS`; `what` names it in errors."""
    if len(buffer) == 0:
        return OffsetCheckpoint(offsets=MappingProxyType({}), blank=True)
    offsets: dict[TopicPartition, int] = {}
    for line in _entry_lines(buffer, what):
        topic, partition, offset = _fields(line, what, "topic partition offset")
        if not topic:
            raise line.refuse(what, "names no topic")
        named = TopicPartition(topic, read_number(line, what, "partition", partition, INT32_MAX))
        if named in offsets:
            raise line.refuse(what, f"names {topic} {partition} a second time")
        offsets[named] = read_number(line, what, "offset", offset, OFFSET_MAX)
    return OffsetCheckpoint(offsets=MappingProxyType(offsets), blank=False)


def read_leader_epoch_checkpoint(buffer: Buffer) -> LeaderEpochCheckpoint:
    """A partition's `leader-epoch-checkpoint`."""
    if len(buffer) == 0:
        return LeaderEpochCheckpoint(epochs=(), blank=True)
    epochs: list[EpochStart] = []
    for line in _entry_lines(buffer, LEADER_EPOCHS):
        epoch, start_offset = _fields(line, LEADER_EPOCHS, "epoch start_offset")
        entry = EpochStart(
            read_number(line, LEADER_EPOCHS, "epoch", epoch, INT32_MAX),
            read_number(line, LEADER_EPOCHS, "start offset", start_offset, OFFSET_MAX),
        )
        if epochs and not (entry.epoch > epochs[-1].epoch and entry.start_offset > epochs[-1].start_offset):
            last = epochs[-1]
            raise line.refuse(
                LEADER_EPOCHS, f"has {epoch} {start_offset} after {last.epoch} {last.start_offset}"
            )
        epochs.append(entry)
    return LeaderEpochCheckpoint(epochs=tuple(epochs), blank=False)
