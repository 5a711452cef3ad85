"""A log's catalogue in a few numbers: what is below the live log, what is damaged in it, what is lost.

Owns the counting. What lies below the first offset that can be had is not counted as lost: it left the
window, as it should, or never was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from backup.catalogue.choose import choose, extent
from backup.catalogue.copies import LogCatalogue
from backup.plan.values import Lost, Origin, Piece, Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`pieces` are all that is known, those that are live among them; `lost` is what lies between them."""

    catalogue: LogCatalogue
    first: int | None
    pieces: tuple[Piece, ...]
    lost: tuple[Lost, ...]

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


def _split(pieces: tuple[Piece, ...], start: int) -> tuple[Piece, ...]:
    """A piece that reaches over the start is live above it, and to be had back below."""
    found: list[Piece] = []
    for each in pieces:
        if each.start < start < each.end:
            found += [replace(each, end=start), replace(each, start=start)]
        else:
            found.append(each)
    return tuple(found)
