"""A log's catalogue in a few numbers: what is below the live log, what is damaged in it, what is lost.

Owns the counting. What lies below the first offset that can be had is not counted as lost: it left the
window, as it should, or never was. What the tier lacks and the leader has is not lost either: it is `held`,
on brokers' disks alone, by the leader's own word of where its log begins and is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from backup.catalogue.choose import choose, extent
from backup.catalogue.copies import LogCatalogue
from backup.plan.values import Lost, Origin, Piece, Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`pieces` are all that is known, those that are live among them; `lost` is what lies between them.

    `held`: what of the rest the leader has, below, between and above them.
    """

    catalogue: LogCatalogue
    first: int | None
    pieces: tuple[Piece, ...]
    lost: tuple[Lost, ...]
    held: tuple[Range, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.catalogue.topic or self.catalogue.log.topic_id}-{self.catalogue.log.partition}"

    @property
    def to_be_had(self) -> tuple[Piece, ...]:
        """What a restore would change something for."""
        return tuple(each for each in self.pieces if is_back(each, self.catalogue))

    @property
    def recoverable_offsets(self) -> int:
        return sum(each.end - each.start for each in self.to_be_had)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.to_be_had)

    @property
    def lost_offsets(self) -> int:
        return sum(each.offsets for each in self.lost)

    @property
    def held_offsets(self) -> int:
        return sum(each.offsets for each in self.held)


def is_back(piece: Piece, catalogue: LogCatalogue) -> bool:
    """Whether it is to be had *back*: below the live log, or damaged in it."""
    return piece.start < catalogue.start or piece.origin is not Origin.TIER


def summary(catalogue: LogCatalogue, at_ms: int | None = None) -> Summary:
    """As of now; or as of a time, of what was live then."""
    known = catalogue if at_ms is None else catalogue.at(at_ms)
    whole = extent(known)
    if whole is None:
        return Summary(catalogue=catalogue, first=None, pieces=(), lost=())
    end = whole.end if at_ms is not None else max(catalogue.frontier, whole.end)
    chosen = choose(known, Range(whole.start, end))
    to_be_had = [each for each in chosen.pieces if is_back(each, catalogue)]
    return Summary(
        catalogue=catalogue,
        first=min((each.start for each in to_be_had), default=None),
        pieces=_split(chosen.pieces, catalogue.start),
        lost=chosen.lost,
    )


def with_leader(found: Summary, start: int, end: int) -> Summary:
    """With what the leader has of `[start, end)`: where no copy answers, it does."""
    spans = sorted((each.start, each.end) for each in found.pieces)
    held: list[Range] = []
    at = start
    for first, last in [*spans, (end, end)]:
        if at < min(first, end):
            held.append(Range(at, min(first, end)))
        at = max(at, last)
    lost = [part for each in found.lost for part in _beside(each, start, end)]
    return replace(found, lost=tuple(lost), held=tuple(held))


def _beside(lost: Lost, start: int, end: int) -> Iterator[Lost]:
    """What of a lost range lies outside of `[start, end)`."""
    if lost.start < min(start, lost.end):
        yield replace(lost, end=min(start, lost.end))
    if max(end, lost.start) < lost.end:
        yield replace(lost, start=max(end, lost.start))


def _split(pieces: tuple[Piece, ...], start: int) -> tuple[Piece, ...]:
    """A piece that reaches over the start is live above it, and to be had back below."""
    found: list[Piece] = []
    for each in pieces:
        if each.start < start < each.end:
            found += [replace(each, end=start), replace(each, start=start)]
        else:
            found.append(each)
    return tuple(found)
