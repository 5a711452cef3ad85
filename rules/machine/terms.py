"""What a log is judged by, beside its own evidence: how long things may take, and what is let pass.

    Graces        from the cluster's own settings, twice each sum, never a constant (AUDIT_FACTS 5)
    Suppression   a finding that somebody answers for, until a day: still counted, not judged by

Owns these values. What is kept how long, and what may destroy it, are the policy's events, told to the
machine like any other.

Invariant: with equal terms and events a judgement is equal; nothing here asks a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

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

    def suppresses(self, rule_id: str, topic: str, at_ms: int) -> Suppression | None:
        return next((each for each in self.suppressions if each.matches(rule_id, topic, at_ms)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Somebody answers for findings of a rule on topics of a pattern, until a time."""

    rule_id: str
    topic_pattern: str
    owner: str
    reason: str
    expires_at_ms: int

    def __post_init__(self) -> None:
        if not (self.owner.strip() and self.reason.strip()):
            raise ValueError("a suppression needs an owner and a reason")

    def matches(self, rule_id: str, topic: str, at_ms: int) -> bool:
        named = self.rule_id == rule_id and fnmatchcase(topic, self.topic_pattern)
        return named and at_ms < self.expires_at_ms


_SETTINGS = {
    "log.retention.check.interval.ms": "check_interval_ms",
    "log.flush.start.offset.checkpoint.interval.ms": "start_checkpoint_ms",
    "replica.high.watermark.checkpoint.interval.ms": "watermark_checkpoint_ms",
    "log.segment.delete.delay.ms": "delete_delay_ms",
    "remote.log.manager.task.interval.ms": "task_interval_ms",
}


def terms_of(settings: Mapping[str, str], **ours: int) -> Terms:
    """From brokers' settings; of several brokers', the longest. What cannot be read keeps Kafka's default."""
    read = {name: int(settings[key]) for key, name in _SETTINGS.items() if settings.get(key, "").isdecimal()}
    named: dict[str, Any] = {**read, **ours}
    return Terms(**named)


def is_audited(topic: str, include: tuple[str, ...] = ()) -> bool:
    return any(fnmatchcase(topic, each) for each in include) or topic not in NOT_AUDITED
