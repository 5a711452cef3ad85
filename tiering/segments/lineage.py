"""Which records belong to a log: its leader epochs, each from its first offset to the next one's.

An offset and an epoch name one record for ever: the one leader of an epoch gives each offset once. So a copy
belongs to the log exactly where its own epochs are the log's at the same offsets; and where the two agree at
one offset, they agree at every offset before it, since a follower takes a leader's log whole.

A broker's own history is cut at its local start: the first entry is moved up, what was before it is gone.
The log's record keeps the whole lineage instead, and each claim extends it (`extended`).

Owns these comparisons, one copy at a time; `coverage` does the same over columns. Refuses to guess a boundary
that neither side knows: that is UnknownBelow.

Invariant: `covered_until` never goes past the first offset at which copy and log differ; a copy that differs
and then agrees again is not Kafka's, and covers nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tiering.segments.records import EpochStart

Epochs = tuple[EpochStart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownBelow:
    """Below `offset` the lineage cannot be told: the log's record does not know the epoch from there on."""

    offset: int
    epoch: int


def epoch_at(epochs: Epochs, offset: int) -> int | None:
    """The epoch of the record at `offset`; None before the first entry."""
    place = bisect_right(epochs, offset, key=lambda each: each.start_offset)
    return epochs[place - 1].epoch if place else None


def covered_until(lineage: Epochs, base: int, covered_end: int, epochs: Epochs) -> int:
    """Up to where a copy of `[base, covered_end)` with these epochs is the log's; `base` if nowhere.

    Offsets below the lineage's first are the log's if the copy agrees with it at the first: see above.
    """
    first = max(base, lineage[0].start_offset)
    changes = {each.start_offset for each in (*lineage, *epochs) if first < each.start_offset < covered_end}
    end = covered_end
    if first >= covered_end:
        return base
    for offset in (first, *sorted(changes)):
        agrees = epoch_at(lineage, offset) == epoch_at(epochs, offset)
        if agrees and end < covered_end:
            return base
        if not agrees and end == covered_end:
            end = offset
    return end if end > first else base


def fork(before: Epochs, after: Epochs) -> int | None:
    """The first offset whose record is another in `after`; None if every offset of `before` stays as it is.

    An epoch that begins where `before` has nothing yet is no fork to whoever knows where `before` ends; this
    does not, and takes the last epoch to go on for ever.
    """
    first = max(before[0].start_offset, after[0].start_offset)
    changes = {each.start_offset for each in (*before, *after) if each.start_offset > first}
    for offset in (first, *sorted(changes)):
        if epoch_at(before, offset) != epoch_at(after, offset):
            return offset
    return None


def extended(
    before: Epochs | None, live: Epochs, *, committed_survives: bool = False, unread_below: int = 0
) -> Epochs | UnknownBelow:
    """The lineage of a leader whose own history is `live`, given what the log's record had.

    `live` is right wherever it reaches. Below it, the record is, up to the epoch that `live` begins with: of
    that epoch only the record knows the true start, and it is the same in every log that has the epoch.

    Where the record does not know that epoch, it began at or below `live`'s first offset F, nobody knows
    where: its predecessor's end is cut off (an idle topic whose retention took everything before the next
    election is enough). Two things still tell what counts below F.

    - `unread_below`: no copy is read below that offset, or there is none. With F at or below it nothing that
      the answer could be wrong about is ever asked, so `live` alone will do.
    - `committed_survives`: no election since the record's claim was unclean. A copy holds only what was
      committed under that claim or an earlier one (T1). A leader that is elected cleanly has all that is
      committed, so each copy is this log's, to its end, and by the record it was. So the record's lineage
      goes on to F. It may say the old epoch where a newer one wrote, between the last committed offset and
      F, and there no copy exists, nor can one be made: the log begins at F.

    Else a leader may have cut off committed offsets and written others since, and which is UnknownBelow.
    """
    if before is None:
        return live
    first = live[0]
    if first.start_offset <= before[0].start_offset:
        return live
    known = next((each for each in before if each.epoch == first.epoch), None)
    if known is None and committed_survives:
        last_known = (each for each in before if each.epoch < first.epoch)
        return (*(each for each in last_known if each.start_offset < first.start_offset), *live)
    if known is None and first.start_offset <= unread_below:
        return live
    if known is None or known.start_offset > first.start_offset:
        return UnknownBelow(offset=first.start_offset, epoch=first.epoch)
    older = tuple(each for each in before if each.epoch < first.epoch)
    return (*older, known, *live[1:])
