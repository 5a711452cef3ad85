"""What a log is judged by, beside its own evidence: how long things may take, and what is let pass.

    Terms         of a run; the defaults are Kafka's
    terms_in      of one log: with its brokers' own intervals, as they were told, and its policy's deadlines
    Suppression   a finding that somebody answers for, until a moment: still open, still counted, no page
    RuleTerms     of a rule set that is tried out: a rule left out, another severity, another grace

Graces are made of the cluster's own settings, twice each sum, never a constant (AUDIT_FACTS 5). Of several
brokers' the longest counts; where none was told, Kafka's default.

Owns these values. What is kept how long, and what may destroy it, are the policy's events, told to the
machine like any other.

Invariant: with equal terms and events a judgement is equal; nothing here asks a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from rules.moments import write_moment

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

# What is not audited unless a pattern names it: Kafka's own bookkeeping (AUDIT_FACTS 7).
NOT_AUDITED = frozenset(
    {"__cluster_metadata", "__transaction_state", "__consumer_offsets", "__share_group_state"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Kafka's intervals as they are set in this cluster, and ours. The defaults are Kafka's."""

    check_interval_ms: int = 300_000  # log.retention.check.interval.ms
    start_checkpoint_ms: int = 60_000  # log.flush.start.offset.checkpoint.interval.ms
    watermark_checkpoint_ms: int = 5_000  # replica.high.watermark.checkpoint.interval.ms
    delete_delay_ms: int = 60_000  # log.segment.delete.delay.ms
    task_interval_ms: int = 30_000  # remote.log.manager.task.interval.ms
    scan_ms: int = 10_000  # the observers' own
    clock_tolerance_ms: int = 5_000
    copy_deadline_ms: int = HOUR_MS
    object_grace_ms: int = 10 * 60_000  # between two readings of the store
    lateness_ms: int = 4 * DAY_MS
    suppressions: tuple[Suppression, ...] = ()
    has_object_layout: bool = False  # kip405: an adapter knows where the plugin puts its objects
    rules: tuple[RuleTerms, ...] = ()  # by id; of the shipped rule set: none

    @property
    def settle_ms(self) -> int:
        """By then whoever watches has looked again: two looks, two checkpoints, the clocks' difference."""
        return 2 * (self.scan_ms + self.start_checkpoint_ms) + self.clock_tolerance_ms

    @property
    def retention_ms(self) -> int:
        """By then every replica has checked its retention by itself, and the files are gone."""
        steps = self.check_interval_ms + self.start_checkpoint_ms + self.delete_delay_ms
        return 2 * (steps + self.task_interval_ms + self.scan_ms)

    @property
    def watermark_ms(self) -> int:
        return 2 * (self.watermark_checkpoint_ms + self.scan_ms) + self.clock_tolerance_ms

    def suppresses(
        self, rule_id: str, topic: str, at_ms: int, finding_id: str | None = None
    ) -> Suppression | None:
        return next(
            (each for each in self.suppressions if each.matches(rule_id, topic, at_ms, finding_id)), None
        )

    def of_rule(self, rule_id: str) -> RuleTerms | None:
        return next((each for each in self.rules if each.rule_id == rule_id), None)

    def grace_of(self, rule_id: str, grace_ms: int) -> int:
        own = self.of_rule(rule_id)
        return grace_ms if own is None or own.grace_ms is None else own.grace_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Somebody answers for one finding (`finding_id`), or a rule's on topics of a pattern, until a time."""

    rule_id: str
    topic_pattern: str
    owner: str
    reason: str
    expires_at_ms: int
    finding_id: str | None = None

    def __post_init__(self) -> None:
        if not (self.owner.strip() and self.reason.strip()):
            raise ValueError("a suppression needs an owner and a reason")

    def __str__(self) -> str:
        return f"{self.owner}, until {write_moment(self.expires_at_ms)}: {self.reason}"

    def matches(self, rule_id: str, topic: str, at_ms: int, finding_id: str | None = None) -> bool:
        if at_ms >= self.expires_at_ms:
            return False
        if self.finding_id is not None:
            return self.finding_id == finding_id
        return self.rule_id == rule_id and fnmatchcase(topic, self.topic_pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTerms:
    """What a rule set that is tried out says otherwise of one rule. None: as it is shipped."""

    rule_id: str
    is_disabled: bool = False
    severity: str | None = None
    grace_ms: int | None = None


# Brokers' settings, and the topic's own, which stands before its brokers'.
BROKER_INTERVALS = {
    "log.retention.check.interval.ms": "check_interval_ms",
    "log.flush.start.offset.checkpoint.interval.ms": "start_checkpoint_ms",
    "replica.high.watermark.checkpoint.interval.ms": "watermark_checkpoint_ms",
    "log.segment.delete.delay.ms": "delete_delay_ms",
    "remote.log.manager.task.interval.ms": "task_interval_ms",
}
TOPIC_INTERVALS = {"file.delete.delay.ms": "delete_delay_ms"}
OF_TOPIC = -1  # among brokers' ids


def terms_in(
    terms: Terms,
    intervals: Mapping[str, Mapping[int, int]],
    hosts: tuple[int, ...],
    copy_deadline_ms: int | None = None,
) -> Terms:
    """`intervals`: by name and broker, what was told and is not Kafka's default."""
    if not intervals and copy_deadline_ms in (None, terms.copy_deadline_ms):
        return terms
    own = tuple(
        (name, _longest(getattr(terms, name), told, hosts)) for name, told in sorted(intervals.items())
    )
    deadline = () if copy_deadline_ms is None else (("copy_deadline_ms", copy_deadline_ms),)
    return _replaced(terms, (*own, *deadline))


def _longest(default: int, told: Mapping[int, int], hosts: tuple[int, ...]) -> int:
    if OF_TOPIC in told:
        return told[OF_TOPIC]
    return max((told.get(each, default) for each in hosts), default=default)


@lru_cache(maxsize=1_024)
def _replaced(terms: Terms, own: tuple[tuple[str, int], ...]) -> Terms:
    named: dict[str, Any] = dict(own)
    return replace(terms, **named)


KAFKAS: Mapping[str, int] = {
    each.name: each.default
    for each in fields(Terms)
    if each.name in {*BROKER_INTERVALS.values(), *TOPIC_INTERVALS.values()} and isinstance(each.default, int)
}


def is_audited(topic: str, include: tuple[str, ...] = ()) -> bool:
    return any(fnmatchcase(topic, each) for each in include) or topic not in NOT_AUDITED
