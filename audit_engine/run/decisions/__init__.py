"""What people decided about a finding: let it be until a moment, or seen.

    suppress   somebody answers for it until a moment: no page, and still open, counted, in no PASS
    ack        somebody has seen it: for the record, and for whoever asks who is at it
    accept     of AUD-01: what never came is taken as lost, and nobody waits for it any more

The first two close nothing. The third ends what logs are told to miss: they are judged on what there is. Each
decision has a number, which rises by one; a run names the last that it took into account, so that it comes to
the same when it is judged again, whatever was decided since.

Owns the value and its way into terms. Refuses one without a reason or an owner, and a suppression without an
end. Invariant: of one finding the decision with the highest number counts, of each sort.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rules.machine import Suppression

GAP = "AUD-01"


class Sort(str, Enum):
    SUPPRESS = "suppress"
    ACK = "ack"
    ACCEPT = "accept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`number` 0: not appended yet. `expires_at_ms`: of a suppression."""

    sort: Sort
    finding_id: str
    rule_id: str
    subject: str
    owner: str
    reason: str
    decided_at_ms: int
    expires_at_ms: int | None = None
    number: int = 0

    def __post_init__(self) -> None:
        if not (self.owner.strip() and self.reason.strip()):
            raise ValueError("a decision needs an owner and a reason")
        if (self.sort is Sort.SUPPRESS) != (self.expires_at_ms is not None):
            raise ValueError("a suppression ends, and nothing else does")
        if self.sort is Sort.ACCEPT and self.rule_id != GAP:
            raise ValueError("what never came is accepted, and nothing else")
        if self.expires_at_ms is not None and self.expires_at_ms <= self.decided_at_ms:
            raise ValueError("a suppression ends after it was decided")

    @property
    def decision_id(self) -> str:
        """The same for the same words about the same finding: to say it twice is to say it once."""
        told = [self.sort.value, self.finding_id, self.owner, self.reason, str(self.expires_at_ms)]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]

    def as_row(self) -> dict[str, Any]:
        members = {name: getattr(self, name) for name in self.__slots__}
        return members | {"sort": self.sort.value, "decision_id": self.decision_id}


def decision_of(row: Mapping[str, Any]) -> Decision:
    own = {name: row[name] for name in Decision.__slots__}
    return Decision(**own | {"sort": Sort(own["sort"])})


def latest(decisions: Iterable[Decision], sort: Sort) -> dict[str, Decision]:
    """By finding, the one that counts."""
    found: dict[str, Decision] = {}
    for each in sorted(decisions, key=lambda one: one.number):
        if each.sort is sort:
            found[each.finding_id] = each
    return found


def suppressions(decisions: Iterable[Decision], as_of_ms: int) -> tuple[Suppression, ...]:
    """Those that have not ended by then, in the order of findings: equal decisions, equal terms."""
    return tuple(
        Suppression(
            rule_id=each.rule_id,
            topic_pattern="",
            owner=each.owner,
            reason=each.reason,
            expires_at_ms=each.expires_at_ms,
            finding_id=finding_id,
        )
        for finding_id, each in sorted(latest(decisions, Sort.SUPPRESS).items())
        if each.expires_at_ms is not None and each.expires_at_ms > as_of_ms
    )


def accepted_gaps(decisions: Iterable[Decision]) -> dict[str, str]:
    """By finding, who takes as lost what never came, and why."""
    return {
        finding_id: f"accepted by {each.owner}: {each.reason}"
        for finding_id, each in sorted(latest(decisions, Sort.ACCEPT).items())
    }
