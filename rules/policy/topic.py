"""What is declared for one topic, and which table each value comes from.

Owns what follows from a topic's values taken together: what an undeclared retention means, and which values
contradict each other. A contradiction is refused and never repaired, because either value may be the mistake.

Invariant: a `TopicPolicy` contradicts itself nowhere, and local retention is never beyond total retention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rules.policy.keys import KEYS
from rules.policy.quantities import UNLIMITED, Limit, at_most
from rules.policy.values import ANYONE, Permission, Plain


class Origin(NamedTuple):
    """The patterns of the tables that gave a value; several if they say the same, none for a default.

    `follows` is the key whose value this one follows from, where nobody declared it itself.
    """

    patterns: tuple[str, ...]
    follows: str | None = None

    def __str__(self) -> str:
        said = ", ".join(self.patterns) or "default"
        return f"{said}, by {self.follows}" if self.follows else said


DEFAULT = Origin(())


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicy:
    """The fields are those of `keys`. Retention is None, in all four fields, where none is declared."""

    topic: str
    total_retention_ms: Limit | None
    total_retention_bytes: Limit | None
    local_retention_ms: Limit | None
    local_retention_bytes: Limit | None
    record_deletion: Permission
    topic_deletion: Permission
    authorisers: tuple[str, ...]
    declare_grace_ms: int
    tiering: bool
    upload_bytes_per_s: Limit
    trim: bool
    remote_deletion: bool
    delete_grace_ms: int
    blast_limit_segments_per_hour: int
    backup_window_days: int
    scrub_interval_ms: int
    copy_deadline_ms: int | None
    hold_kafka: bool
    audit_suppress: tuple[str, ...]
    origins: Mapping[str, Origin] = field(compare=False, hash=False)

    @property
    def declares_retention(self) -> bool:
        return self.total_retention_ms is not None

    @property
    def patterns(self) -> tuple[str, ...]:
        """Those that gave any value; empty for a topic that no table speaks of."""
        return tuple(sorted({pattern for origin in self.origins.values() for pattern in origin.patterns}))

    def may_be_authorised_by(self, principal: str) -> bool:
        return ANYONE in self.authorisers or principal in self.authorisers

    def spoken(self, key: str) -> str:
        """A value as people write it."""
        return KEYS[key].spoken(getattr(self, key))

    def plain(self, key: str) -> Plain | None:
        """A value as machines read it; None is undeclared."""
        value = getattr(self, key)
        return None if value is None else KEYS[key].form.plain(value)


class Contradiction(NamedTuple):
    """`keys` contradict each other; the first is the one to name when one must be."""

    keys: tuple[str, ...]
    why: str


def complete(values: dict[str, Any], origins: dict[str, Origin]) -> None:
    """Fill in what an undeclared retention means where another one is declared.

    Retention that is declared by time alone is unlimited in bytes, and the reverse: a broker that deletes by
    the other of the two does what nobody declared. Local retention is the total one unless declared.
    """
    totals = ("total_retention_ms", "total_retention_bytes")
    declared = next((key for key in totals if values[key] is not None), None)
    if declared is None:
        return
    for total in totals:
        if values[total] is None:
            values[total], origins[total] = UNLIMITED, Origin(origins[declared].patterns, declared)
        local = total.replace("total", "local")
        if values[local] is None:
            values[local], origins[local] = values[total], Origin(origins[total].patterns, total)


def contradictions(policy: Mapping[str, Any]) -> Iterator[Contradiction]:
    """Of completed values."""
    for keys, why, is_so in _CONTRADICTIONS:
        if is_so(policy):
            yield Contradiction(keys, why)


def _local_without_total(policy: Mapping[str, Any]) -> bool:
    is_local = policy["local_retention_ms"] is not None or policy["local_retention_bytes"] is not None
    return is_local and not _has_total(policy)


def _has_total(policy: Mapping[str, Any]) -> bool:
    return policy["total_retention_ms"] is not None


def _local_is_beyond(unit: str) -> Callable[[Mapping[str, Any]], bool]:
    def is_so(policy: Mapping[str, Any]) -> bool:
        if not _has_total(policy):
            return False
        return not at_most(policy[f"local_retention_{unit}"], policy[f"total_retention_{unit}"])

    return is_so


def _nothing_to_trim(policy: Mapping[str, Any]) -> bool:
    limits = (policy["local_retention_ms"], policy["local_retention_bytes"])
    return policy["trim"] and all(limit is None or limit is UNLIMITED for limit in limits)


def _nobody_may(policy: Mapping[str, Any]) -> bool:
    permissions = (policy["record_deletion"], policy["topic_deletion"])
    return not policy["authorisers"] and Permission.AUTHORISED in permissions


_CONTRADICTIONS: tuple[tuple[tuple[str, ...], str, Callable[[Mapping[str, Any]], bool]], ...] = (
    (
        ("local_retention_ms", "total_retention_ms"),
        "what is kept on disk is part of what is kept in total, so local may not be longer",
        _local_is_beyond("ms"),
    ),
    (
        ("local_retention_bytes", "total_retention_bytes"),
        "what is kept on disk is part of what is kept in total, so local may not be more",
        _local_is_beyond("bytes"),
    ),
    (
        ("local_retention_ms", "local_retention_bytes"),
        'local retention says nothing without total retention, were it "unlimited"',
        _local_without_total,
    ),
    (
        ("trim", "tiering"),
        "trim deletes what tiering has copied, and tiering is off",
        lambda policy: policy["trim"] and not policy["tiering"],
    ),
    (
        ("trim", "local_retention_ms", "local_retention_bytes"),
        "trim is on, and no local retention says what to trim",
        _nothing_to_trim,
    ),
    (
        ("remote_deletion", "total_retention_ms", "total_retention_bytes"),
        "remote deletion is on, and no total retention says what to delete",
        lambda policy: policy["remote_deletion"] and not _has_total(policy),
    ),
    (
        ("backup_window_days", "remote_deletion"),
        "remote deletion is on, and with a window of 0 nothing that it deletes could be put back",
        lambda policy: policy["remote_deletion"] and policy["backup_window_days"] == 0,
    ),
    (
        ("delete_grace_ms", "remote_deletion"),
        "remote deletion is on, and without a grace it deletes under those who read",
        lambda policy: policy["remote_deletion"] and policy["delete_grace_ms"] == 0,
    ),
    (
        ("blast_limit_segments_per_hour", "remote_deletion"),
        "remote deletion is on, and a blast limit of 0 lets nothing be deleted",
        lambda policy: policy["remote_deletion"] and policy["blast_limit_segments_per_hour"] == 0,
    ),
    (
        ("authorisers", "record_deletion", "topic_deletion"),
        'deletion is authorised by someone, and nobody may: name authorisers, or say "never"',
        _nobody_may,
    ),
)
