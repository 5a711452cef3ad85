"""When the tier's copies of a log were last read, and when the next look at them is due.

A look is a deep one at the segment's own object, whatever came of it: what it found is SEG-08's. Until the
first, a copy counts as read when it was made; so does one that was there before anybody watched, or before
the policy said how often.

Owns this arithmetic. Invariant: it depends on the state alone; where no policy says how often, nothing is
due.
"""

from __future__ import annotations

from typing import NamedTuple

from rules.events import Scrubbed, ScrubDepth, ScrubOutcome
from rules.machine import authority, coverage
from rules.machine.state import Copy, LogState

KEY = "scrub_interval_ms"
_LOOKS = (ScrubOutcome.VERIFIED, ScrubOutcome.FAILED)


class Due(NamedTuple):
    """The copy that was read longest ago, since when it is too long, and what was declared."""

    copy: Copy
    since_ms: int
    interval_ms: int


def looked_at(copy: Copy, event: Scrubbed) -> None:
    """Of a copy's objects the segment itself: it is most of the bytes, and what a restore needs."""
    is_look = event.scrub_depth is ScrubDepth.DEEP and event.scrub_outcome in _LOOKS
    if is_look and event.object_key.endswith(".log"):
        copy.read_ms = max(copy.read_ms or 0, event.occurred_at_ms)


def due(state: LogState) -> Due | None:
    """Of our own tier, where the policy in force declares it for the topic."""
    if authority.deployment(state) != "ours":
        return None
    policy = authority.policy_now(state)
    if not policy.origins[KEY].patterns:
        return None
    copies = list(coverage.finished(state))
    if not copies:
        return None
    declared_ms = max((each.at_ms for each in state.policy if each.key == KEY), default=0)
    since_ms = max(declared_ms, state.born_ms or 0)
    oldest = min(copies, key=lambda each: (_read_ms(each), each.base, each.segment_id))
    return Due(oldest, max(_read_ms(oldest), since_ms) + policy.scrub_interval_ms, policy.scrub_interval_ms)


def _read_ms(copy: Copy) -> int:
    return copy.started_ms if copy.read_ms is None else copy.read_ms
