"""What belongs to a segment file beside its bytes, and what of it is right for a file that was cut short.

    .index       entries at or behind the cut go
    .timeindex   the same; and the last entry must name the latest time, by which the broker judges its age
    .txnindex    aborted transactions whose marker lies behind the cut go: the next file's index has them
    .snapshot    is the producers' state at the *end*: of a cut file there is none, and the next file's
                 neighbour on the disk has its own

Also the epoch history: trimming moved the first entry of the live one up, and the copies know what stood
there.

Owns these bytes. Refuses nothing: what does not fit was refused when the `.aux` was read.

Invariant: an index made here holds only entries of its file, in Kafka's order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tiering.log.checkpoints import EpochStart, TopicPartition
from tiering.log.index import read_offset_index, read_time_index
from tiering.log.transaction_index import ENTRY_BYTES, read_transaction_index

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a file was cut: by offset, by byte, and the latest time before that with the offset that has
    it."""

    end_offset: int
    position: int
    latest_ms: int
    latest_offset: int


def cut_offset_index(content: bytes, base_offset: int, cut: Cut) -> bytes:
    index = read_offset_index(content, base_offset=base_offset)
    kept = [entry for entry in index if entry.position < cut.position and entry.offset < cut.end_offset]
    return b"".join(_OFFSET_ENTRY.pack(offset - base_offset, position) for offset, position in kept)


def cut_time_index(content: bytes, base_offset: int, cut: Cut) -> bytes:
    index = read_time_index(content, base_offset=base_offset)
    kept = [entry for entry in index if entry.offset < cut.end_offset]
    last_ms = kept[-1].timestamp_ms if kept else -1
    packed = [_TIME_ENTRY.pack(time_ms, offset - base_offset) for time_ms, offset in kept]
    if cut.latest_ms > last_ms:
        packed.append(_TIME_ENTRY.pack(cut.latest_ms, cut.latest_offset - base_offset))
    return b"".join(packed)


def cut_transaction_index(content: bytes, base_offset: int, cut: Cut) -> bytes:
    index = read_transaction_index(content, base_offset=base_offset)
    kept = sum(1 for each in index.transactions if each.last_offset < cut.end_offset)
    return content[: kept * ENTRY_BYTES]


@dataclass(frozen=True, slots=True)
class EpochsDisagree:
    """Two histories that cannot be of one log."""

    why: str


def merged_epochs(
    copies: Iterable[Iterable[EpochStart]], live: Iterable[EpochStart]
) -> tuple[EpochStart, ...] | EpochsDisagree:
    """One history out of those of the copies and the live one, whose first entry may have been moved up.

    Each epoch starts where the earliest telling has it: trimming only ever moves a start up.
    """
    live = tuple(live)
    starts: dict[int, int] = {}
    for history in (*copies, live):
        for epoch, start_offset in history:
            starts[epoch] = min(start_offset, starts.get(epoch, start_offset))
    for epoch, start_offset in live[1:]:
        if starts[epoch] != start_offset:
            why = f"epoch {epoch} starts at {start_offset} here and at {starts[epoch]} in the copies"
            return EpochsDisagree(why)
    for epoch, start_offset in starts.items():
        if live and start_offset > live[0].start_offset and epoch not in dict(live):
            return EpochsDisagree(
                f"the copies have an epoch {epoch} from {start_offset} on, and here is none"
            )
    merged = tuple(EpochStart(*each) for each in sorted(starts.items()))
    for earlier, later in pairwise(merged):
        if earlier.start_offset >= later.start_offset:
            return EpochsDisagree(f"epoch {later.epoch} starts at {later.start_offset}, not after {earlier}")
    return merged


def trimmed_epochs(epochs: Iterable[EpochStart], start: int) -> tuple[EpochStart, ...]:
    """A history as Kafka keeps it once the log begins at `start`."""
    listed = list(epochs)
    ends = [*(later.start_offset for later in listed[1:]), None]
    return tuple(
        EpochStart(epoch, max(begin, start))
        for (epoch, begin), end in zip(listed, ends, strict=True)
        if end is None or end > start
    )


def epochs_text(epochs: Iterable[EpochStart]) -> bytes:
    """A leader-epoch-checkpoint."""
    return _checkpoint(f"{epoch} {start_offset}" for epoch, start_offset in epochs)


def offsets_text(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint."""
    return _checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def _checkpoint(entries: Iterable[str]) -> bytes:
    listed = list(entries)
    return "\n".join(["0", str(len(listed)), *listed, ""]).encode()
