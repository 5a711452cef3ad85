"""Where declared changes are kept: appended one behind the other, never changed, never removed.

Owns the port. Which of the changes count is `rules.policy.timeline`'s, and the same for every reader; a log
only has to keep them in one order. The one adapter is `kafka`, over the topic `__seawall_policy`.

Invariant: a change that `append` returned is durable and in force from its offset on, and no reader will ever
hold otherwise.
"""

from __future__ import annotations

from typing import Protocol

from rules.policy.record import DeclaredChange
from rules.policy.timeline import Applied, PolicyUnknown, Timeline
from seawall.policy.errors import PolicyNotKnown


class ChangeLog(Protocol):
    def read(self) -> Timeline:
        """Everything that was appended, up to now. PolicyTopicError if that cannot be told."""
        ...

    def append(self, change: DeclaredChange) -> Applied:
        """Make it durable and in force.

        ApplyOvertaken if another change came first. ApplyUncertain if it may or may not be there.
        """
        ...


def in_force(timeline: Timeline, at_offset: int | None = None) -> Applied | None:
    """The change in force at an offset, or now; None before the first. Raises PolicyNotKnown."""
    try:
        return timeline.in_force() if at_offset is None else timeline.at(at_offset)
    except PolicyUnknown as unknown:
        raise PolicyNotKnown(why=str(unknown)) from unknown
