"""One rule about a state of things, as it is violated now.

Owns the value. Invariant: its key stays the same while it lasts.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.machine.spans import NONE, Spans

NEVER_MS = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Violated now. `since_ms` None: since this event, or `not_before_ms` if that is later."""

    rule_id: str
    subject: str
    anchor: str
    severity: str
    grace_ms: int
    note: str
    ranges: Spans = NONE
    since_ms: int | None = None
    not_before_ms: int = 0
    grows: bool = False  # what was so before stays in the finding's ranges
    is_in_turn: bool = False  # one at a time: what lies before it has to go first. `anchor` is where it lies

    @property
    def key(self) -> str:
        return f"{self.rule_id}|{self.subject}|{self.anchor}"
