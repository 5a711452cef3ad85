"""Where two histories of one replicated log part: pure arithmetic over leader epochs.

A history is the epochs of a log, each with the first offset written in it. Two replicas that hold a record of
the same epoch at the same offset agree on everything before it (Raft's log matching; Kafka's KIP-101 rests on
the same). So they agree up to where the newest epoch that both know ends in the shorter of the two.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiering.log.checkpoints import EpochStart


def fork(ours: Sequence[EpochStart], ours_end: int, theirs: Sequence[EpochStart], theirs_end: int) -> int:
    """The first offset at which the two may differ; `ours_end` at most. 0 when they share no epoch."""
    if not ours:
        return min(ours_end, theirs_end)  # nothing was read that could be contradicted
    their_ends = dict(_ends(theirs, theirs_end))
    for epoch, end in reversed(_ends(ours, ours_end)):
        if epoch in their_ends:
            return min(end, their_ends[epoch])
    return 0


def cut(history: Sequence[EpochStart], end_offset: int) -> tuple[EpochStart, ...]:
    """The history of the log below `end_offset`."""
    return tuple(each for each in history if each.start_offset < end_offset)


def joined(
    older: Sequence[EpochStart], newer: Sequence[EpochStart], *, keep_max: int
) -> tuple[EpochStart, ...]:
    """One history from two that agree: `older` knows how it began, `newer` how it goes on."""
    if not newer:
        return tuple(older)[-keep_max:]
    first = newer[0]
    known = [each for each in older if each.epoch <= first.epoch]
    rest = newer[1:] if known and known[-1].epoch == first.epoch else newer
    return (*known, *rest)[-keep_max:]


def _ends(history: Sequence[EpochStart], end_offset: int) -> list[tuple[int, int]]:
    ends = [each.start_offset for each in history[1:]] + [end_offset]
    return [(each.epoch, end) for each, end in zip(history, ends, strict=True)]
