"""Whether what the catalogue promises is there: contiguity, versions, and on request every byte.

    hole         offsets between the tier's start and its frontier that nothing answers for
    damaged      a copy that readers count on, and its objects are not live as recorded
    gone         a removed copy that is still inside of the window, and no version of it is left
    in_doubt     the topic's own records of the log cannot be fully read, or disagree
    bytes        an object whose bytes are not those on record

Owns these checks. Refuses to change anything, and to call what it did not look at right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from backup.catalogue.bytes import PieceBytes
from backup.catalogue.choose import choose
from backup.catalogue.copies import Copy, LogCatalogue
from backup.catalogue.summary import summary
from backup.errors import PieceUnreadable
from backup.plan.values import LostBecause, Piece, Range
from tiering.segments.records import SegmentState

_REMOVED = (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """One thing; `kind` is stable, for programs."""

    log: str
    kind: str
    start: int
    end: int
    detail: str


def of_catalogue(catalogue: LogCatalogue, *, window_ms: int, now_ms: int) -> Iterator[Wrong]:
    """What can be told without reading an object."""
    name = summary(catalogue).name
    for doubt in catalogue.doubts:
        yield Wrong(log=name, kind="in_doubt", start=catalogue.start, end=catalogue.frontier, detail=doubt)
    if catalogue.start < catalogue.frontier:
        for lost in choose(catalogue, Range(catalogue.start, catalogue.frontier)).lost:
            if lost.because is not LostBecause.ON_RECORD:
                detail = f"{lost.because.value}: {lost.detail}"
                yield Wrong(log=name, kind="hole", start=lost.start, end=lost.end, detail=detail)
    for copy in catalogue.copies:
        base, end = copy.record.base_offset, copy.record.data_end
        if copy.counts and not copy.is_live:
            yield Wrong(log=name, kind="damaged", start=base, end=end, detail=_not_live(copy))
        elif _is_in_window(copy, window_ms, now_ms) and copy.sources() is None:
            what = " and ".join(f".{kind}" for kind in copy.gone())
            detail = f"removed at {copy.record.occurred_at_ms}, and no version of {what} is left"
            yield Wrong(log=name, kind="gone", start=base, end=end, detail=detail)


def pieces_of(catalogue: LogCatalogue) -> tuple[Piece, ...]:
    """One piece a segment: all that is live, and all that can be had back."""
    return tuple({each.record.segment_id: each for each in summary(catalogue).pieces}.values())


def of_bytes(piece: Piece, name: str, stored: PieceBytes) -> Wrong | None:
    """Every byte of a piece's `.log` and `.aux`, against the record; None if all are right."""
    try:
        for _ in stored.segment(piece):
            pass
        stored.side_files(piece)
    except PieceUnreadable as unreadable:
        record = piece.record
        detail = f"{unreadable.key}, version {unreadable.version_id}: {unreadable.why}"
        return Wrong(log=name, kind="bytes", start=record.base_offset, end=record.data_end, detail=detail)
    return None


def _not_live(copy: Copy) -> str:
    for kind, ref in copy.record.objects.present():
        stored = copy.of(kind)
        if stored.top_id == ref.version_id:
            continue
        if stored.version(ref.version_id, ref.size_bytes) is None:
            return f"{ref.key}: version {ref.version_id} is not there"
        above = "a delete marker" if stored.live is None else f"version {stored.top_id}"
        return f"{ref.key}: version {ref.version_id} lies under {above}"
    return "it is live"


def _is_in_window(copy: Copy, window_ms: int, now_ms: int) -> bool:
    removed = copy.was_finished and copy.record.state in _REMOVED
    return removed and copy.record.occurred_at_ms > now_ms - window_ms
