"""Which copies a range is put back from, and what of it cannot be: a pure function of the catalogue.

Each offset is answered for once: by a copy that counts now, as readers choose among them; else by the usable
copy that reaches furthest. A copy is usable where its versions are there, its bytes are whole, and its epochs
are the log's at the same offsets. Where none is, the reason is a gap on record; else that of the copies that
should have been: gone, of another history, incomplete; else nobody ever copied it.

The log's own record knows its lineage from where it was first followed. Copies that lie wholly below are
believed as far as their epochs lead up to it without a contradiction, from the highest down.

Owns the choice. Refuses to shorten the range it was asked for.

Invariant: pieces and lost ranges are in order, do not overlap, and leave nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from backup.catalogue.copies import Copy, LogCatalogue
from backup.plan.values import Lost, LostBecause, Origin, Piece, Range
from tiering.segments.lineage import Epochs, covered_until
from tiering.segments.records import EpochStart, SegmentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What comes of a range."""

    pieces: tuple[Piece, ...]
    lost: tuple[Lost, ...]


@dataclass(frozen=True, slots=True)
class _Usable:
    """`[start, end)` of a copy that could be used."""

    start: int
    end: int
    copy: Copy
    piece_record: SegmentRecord


@dataclass(frozen=True, slots=True)
class _Useless:
    """`[start, end)` should have been in a copy."""

    start: int
    end: int
    because: LostBecause
    detail: str


def choose(catalogue: LogCatalogue, wanted: Range) -> Chosen:
    """Of `wanted`, all of it."""
    judged = judge(catalogue)
    usable = [each for each in judged if isinstance(each, _Usable)]
    useless = [each for each in judged if isinstance(each, _Useless)]
    useless += [_Useless(*gap, LostBecause.ON_RECORD, "a gap on record") for gap in catalogue.recorded_gaps]
    pieces: list[Piece] = []
    lost: list[Lost] = []
    at = wanted.start
    by_base = sorted(usable, key=lambda each: each.start)
    while at < wanted.end:
        holding = [each for each in by_base if each.start <= at < each.end]
        if holding:
            best = max(holding, key=_preference)
            end = min(best.end, wanted.end)
            pieces.append(_piece(best, at, end))
        else:
            end = min((each.start for each in by_base if each.start > at), default=wanted.end)
            end = min(end, wanted.end)
            lost += _reasons(useless, at, end)
        at = end
    return Chosen(pieces=tuple(pieces), lost=tuple(lost))


def _preference(each: _Usable) -> tuple[bool, int, bool, str]:
    return each.copy.counts, each.end, each.copy.is_live, each.piece_record.segment_id


def extent(catalogue: LogCatalogue) -> Range | None:
    """From the first offset that any usable copy has to the last; None if there is none."""
    usable = [each for each in judge(catalogue) if isinstance(each, _Usable)]
    if not usable:
        return None
    return Range(min(each.start for each in usable), max(each.end for each in usable))


def judge(catalogue: LogCatalogue) -> list[_Usable | _Useless]:
    """Each copy, as far as it is the log's."""
    lineage = whole_lineage(catalogue)
    return [_judged(copy, lineage) for copy in catalogue.copies]


def _judged(copy: Copy, lineage: Epochs) -> _Usable | _Useless:
    record = copy.record
    base, end = record.base_offset, record.data_end
    if not copy.was_finished:
        return _Useless(base, end, LostBecause.NEVER_COPIED, f"copy {record.segment_id} was never finished")
    sources = copy.sources()
    if sources is None:
        what = " and ".join(f".{kind}" for kind in copy.gone())
        detail = f"of {record.key_stem} the bucket keeps no version of {what}"
        return _Useless(base, end, LostBecause.VERSION_GONE, detail)
    if record.covered_end == base:
        detail = f"copy {record.segment_id} has {record.record_count} records of {end - base} offsets"
        return _Useless(base, end, LostBecause.INCOMPLETE, detail)
    reach = covered_until(lineage, base, record.covered_end, record.leader_epochs) if lineage else end
    if reach == base:
        detail = f"copy {record.segment_id} is of another history than the log"
        return _Useless(base, end, LostBecause.OTHER_HISTORY, detail)
    return _Usable(base, reach, copy, replace(record, objects=sources))


def whole_lineage(catalogue: LogCatalogue) -> Epochs:
    """The log's lineage, led back by the copies that lie below where its record knows it."""
    lineage = list(catalogue.lineage)
    finished = [each.record for each in catalogue.copies if each.was_finished]
    for record in sorted(finished, key=lambda each: (each.base_offset, each.data_end), reverse=True):
        own = record.leader_epochs
        if not lineage:
            lineage = list(own)
            continue
        first = lineage[0]
        if record.data_end > first.start_offset and record.base_offset >= first.start_offset:
            continue
        below = [each for each in own if each.start_offset < first.start_offset]
        if not below or below[-1].epoch > first.epoch:
            continue
        if record.data_end > first.start_offset and not _agrees(own, first):
            continue
        if below[-1].epoch == first.epoch:
            lineage[0] = EpochStart(first.epoch, below[-1].start_offset)
            below.pop()
        lineage[:0] = below
    return tuple(lineage)


def _agrees(own: Epochs, first: EpochStart) -> bool:
    """Whether a copy that reaches over the lineage's first offset has its epoch there."""
    at = [each.epoch for each in own if each.start_offset <= first.start_offset]
    return bool(at) and at[-1] == first.epoch


def _piece(used: _Usable, start: int, end: int) -> Piece:
    return Piece(
        start=start,
        end=end,
        origin=Origin.TIER if used.copy.is_live else Origin.VERSION,
        record=used.piece_record,
        tops=tuple(
            sorted((kind, used.copy.of(kind).top_id) for kind, _ in used.piece_record.objects.present())
        ),
    )


def _reasons(useless: list[_Useless], start: int, end: int) -> Iterator[Lost]:
    """`[start, end)` in ranges of one reason each; of several reasons the one that says most."""
    inside = [each for each in useless if each.start < end and each.end > start]
    cuts = sorted({start, end, *(at for each in inside for at in (each.start, each.end) if start < at < end)})
    found: list[Lost] = []
    for first, last in pairwise(cuts):
        here = [each for each in inside if each.start <= first and each.end >= last]
        because, detail = min(
            ((each.because, each.detail) for each in here),
            key=lambda each: (_TELLING.index(each[0]), each[1]),
            default=(LostBecause.NEVER_COPIED, "nobody copied it"),
        )
        if found and (found[-1].because, found[-1].detail) == (because, detail):
            found[-1] = replace(found[-1], end=last)
        else:
            found.append(Lost(start=first, end=last, because=because, detail=detail))
    yield from found


_TELLING = (
    LostBecause.ON_RECORD,  # readers pass it, whatever became of its copies
    LostBecause.VERSION_GONE,
    LostBecause.INCOMPLETE,
    LostBecause.OTHER_HISTORY,
    LostBecause.NEVER_COPIED,
)
