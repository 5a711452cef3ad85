"""Which claims and gaps earlier runs of this agent have told, as far as its spool remembers.

Owns this memory, as it was when the agent started. What is older than the spool keeps counts as told: whoever
wrote the record has restarted, or gone on, since. What is not in the spool, though it could be, is told again
under its id: heard twice it is one act.
"""

from __future__ import annotations

from collections.abc import Callable

from audit_engine.spool import Spool
from audit_engine.spool.spool import KEEP_MS
from rules.events import GapRecorded, LeadershipClaimed, LogEvent

KINDS = frozenset({GapRecorded.kind, LeadershipClaimed.kind})


def told_before(spool: Spool, now_ms: Callable[[], int]) -> Callable[[LogEvent], bool]:
    """Whether an event was told, or is too old for anybody to know."""
    remembered = frozenset(event.event_id for event in spool.kept(KINDS))

    def was_told(event: LogEvent) -> bool:
        return event.event_id in remembered or now_ms() - event.occurred_at_ms > KEEP_MS

    return was_told
