"""A rule as data: what must hold, what is needed to tell, how bad it is, how long it may take, what to do.

Owns the shape. The meaning is the machine's (`rules.machine`), and `judged_by` says which part of it.

Invariant: an id is stable for ever; `major` rises when the same evidence would be judged otherwise, since it
is part of every finding's id.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Sort(str, Enum):
    """How its findings end (AUDIT_FACTS 1)."""

    STATE = "state"  # looked at again in every run; resolved when it is evaluated and false
    HAPPENED = "happened"  # stands until it is restored, accepted, or withdrawn by late evidence


class Severity(str, Enum):
    CRITICAL = "C"
    ERROR = "E"
    WARNING = "W"


class Deployment(str, Enum):
    """Who moves a log's segments away."""

    NONE = "none"  # a stock broker, untiered
    OURS = "ours"  # a stock broker, and our tier
    KIP405 = "kip405"  # the broker itself
    KIP405_LAYOUT = "kip405+layout"  # and an adapter knows where its plugin puts objects


class Grace(str, Enum):
    """How long it may be violated, derived from the cluster's own settings (`rules.machine.Terms`)."""

    NONE = "none"
    SETTLE = "settle"  # two looks and two checkpoints, by when whoever watches has looked again
    RETENTION = "retention"  # twice: a retention check, a start checkpoint, a file's deletion, a task, a look
    WATERMARK = "watermark"  # two watermark checkpoints and looks
    CHECKPOINT = "checkpoint"  # two readings a start checkpoint apart
    OBJECT = "object"  # two readings of the store
    COPY = "copy"  # the deadline of a copy
    DECLARE = "declare"  # the policy's declare_grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `severity` is the least; `rises_when` says when it is C."""

    id: str
    major: int = 1
    invariant: str
    evidence: tuple[str, ...]
    severity: Severity
    rises_when: str = ""
    sort: Sort
    grace: Grace
    applies: tuple[Deployment, ...]
    remedy: str
    why: str
    example: str
    judged_by: str = "log"  # log, emitters, fleet, run; of two, each judges a part

    def applies_to(self, deployment: str, has_layout: bool) -> bool:
        named = {deployment}
        if deployment == Deployment.KIP405.value and has_layout:
            named.add(Deployment.KIP405_LAYOUT.value)
        return any(each.value in named for each in self.applies)

    @property
    def page(self) -> str:
        return f"docs/rules/{self.id}.md"


ALL = (Deployment.NONE, Deployment.OURS, Deployment.KIP405)
TIERED = (Deployment.OURS, Deployment.KIP405)
OBJECTS = (Deployment.OURS, Deployment.KIP405_LAYOUT)
OURS = (Deployment.OURS,)
