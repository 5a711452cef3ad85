"""Which segment files make a range of a log: from copies that may overlap, files that do not.

Copies were cut where the replica of their day was cut, so that those of two leaders overlap. A file runs
from its copy's base to where the next file begins: on a log that was never compacted, that is a batch
boundary of both.

Owns the choice. Refuses, as a NotCovered, a range with a hole; refuses to read a byte.

Invariant: the files of `[start, end)` rise, touch, and end exactly at `end`; only the first may begin before
`start`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backup.plan import Piece
from tiering.segments.records import SegmentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A segment file to be: the bytes of the piece's copy from their start up to `end_offset`."""

    end_offset: int
    piece: Piece

    @property
    def record(self) -> SegmentRecord:
        return self.piece.record

    @property
    def base_offset(self) -> int:
        return self.record.base_offset

    @property
    def is_cut(self) -> bool:
        return self.end_offset < self.record.end_offset

    @property
    def name(self) -> str:
        return f"{self.base_offset:020d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCovered:
    """No copy holds these offsets."""

    start: int
    end: int


def new_files(pieces: Iterable[Piece], start: int, end: int) -> tuple[NewFile, ...] | NotCovered:
    """The files of `[start, end)`. Of copies that hold an offset the one that reaches furthest is taken.

    All of a piece's copy is used where it is needed: replicas begin at offsets of their own.
    """
    usable = sorted(pieces, key=lambda each: (each.record.base_offset, each.record.segment_id))
    chosen: list[Piece] = []
    offset = start
    while offset < end:
        best = _furthest(usable, offset)
        if best is None:
            beyond = [at for each in usable if (at := each.record.base_offset) > offset]
            return NotCovered(start=offset, end=min([*beyond, end]))
        chosen.append(best)
        offset = reach(best.record)
    ends = [*(each.record.base_offset for each in chosen[1:]), end][: len(chosen)]
    return tuple(
        NewFile(end_offset=min(reach(piece.record), until), piece=piece)
        for piece, until in zip(chosen, ends, strict=True)
    )


def reach(record: SegmentRecord) -> int:
    """Up to where a copy holds the log: beyond a hole at its end there is nothing of it."""
    return record.end_offset if record.data_end == record.end_offset else record.covered_end


def _furthest(pieces: Sequence[Piece], offset: int) -> Piece | None:
    holding = [each for each in pieces if each.record.base_offset <= offset < reach(each.record)]
    return max(holding, key=lambda each: reach(each.record), default=None)


def size_bytes(files: Iterable[NewFile]) -> int:
    """What the files take at most, their side files apart."""
    return sum(each.record.size_bytes for each in files)
