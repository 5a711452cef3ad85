"""Where each offset of a log is: on the broker, in the tier, in both, or nowhere.

Owns the cutting of a log into stretches of one kind. Refuses to know how they are shown.

Invariant: the stretches of a log are in order, touch each other, and come to the whole of its range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from tiering.segments.coverage import Coverage, GapPiece
from tiering.segments.frontier import Range


class Where(str, Enum):
    """Stable, for programs."""

    BOTH = "both"
    TIERED = "tiered"  # in the tier alone
    LOCAL = "local"  # on the broker alone
    GAP = "gap"  # nowhere, and that is on record
    MISSING = "missing"  # nowhere, and nobody has said so


class Stretch(NamedTuple):
    start: int
    end: int
    where: Where


def stretches(
    start: int, end: int, *, local_start: int | None, tiered: Sequence[Range], gaps: Sequence[Range]
) -> tuple[Stretch, ...]:
    """`[start, end)` by where it is. The broker has everything from `local_start`, or nothing if None."""
    local = [] if local_start is None else [Range(local_start, end)]
    edges = {start, end}
    for each in (*local, *tiered, *gaps):
        edges |= {edge for edge in each if start < edge < end}
    cuts = sorted(edges)
    found = (Stretch(begin, until, _where(begin, local, tiered, gaps)) for begin, until in pairwise(cuts))
    return tuple(_joined(found))


def tiered_and_gaps(found: Coverage) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """What of a log can be read from the tier, and what is on record as lost, below the frontier."""
    tiered: list[Range] = []
    gaps: list[Range] = []
    for piece in found.pieces(found.frontier.start, found.frontier.offset):
        into = gaps if isinstance(piece, GapPiece) else tiered
        if into and into[-1].end == piece.start:
            into[-1] = Range(into[-1].start, piece.end)
        else:
            into.append(Range(piece.start, piece.end))
    return tuple(tiered), tuple(gaps)


def _where(offset: int, local: Sequence[Range], tiered: Sequence[Range], gaps: Sequence[Range]) -> Where:
    is_local, is_tiered = _holds(local, offset), _holds(tiered, offset)
    if is_local or is_tiered:
        return Where.BOTH if is_local and is_tiered else Where.LOCAL if is_local else Where.TIERED
    return Where.GAP if _holds(gaps, offset) else Where.MISSING


def _holds(ranges: Iterable[Range], offset: int) -> bool:
    return any(each.start <= offset < each.end for each in ranges)


def _joined(found: Iterable[Stretch]) -> Iterator[Stretch]:
    last: Stretch | None = None
    for each in found:
        if last is not None and last.where is each.where:
            last = Stretch(last.start, each.end, each.where)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last
