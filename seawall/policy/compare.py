"""What brokers do beside what was declared, topic by topic: the offline half of rule RET-03.

Which of Kafka's settings goes with which declared value depends on who tiers the topic (KAFKA_FACTS 17): on
its own a broker keeps the total; beside our tier what it keeps is the local part; with Kafka's own tiered
storage it knows both.

Owns the comparison. Refuses to call a topic fine that it could not look at (`Unknown`), or whose retention
nobody declared (`undeclared`).

Invariant: a topic has no finding if and only if every broker that holds it does what was declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from rules.policy import KEYS, UNLIMITED, Limit, Policy, TopicPolicy
from rules.policy.quantities import at_most
from seawall.policy.cluster import SeenTopic
from tiering.cluster.interface import TopicSettings, Unknown


class Deployment(str, Enum):
    """Who keeps what a broker does not."""

    NONE = "none"  # nobody: the topic is on the brokers' disks alone
    OURS = "ours"
    KIP405 = "kip405"  # Kafka itself


class Kind(str, Enum):
    """What is wrong. The values are stable: scripts match on them."""

    SHORTER = "shorter"  # brokers delete what should still be kept
    LONGER = "longer"  # brokers keep what should be gone
    TRIM_REFUSED = "trim_refused"
    NOT_TIERED = "not_tiered"  # declared, and never done for such a topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    kind: Kind
    key: str  # of the policy
    detail: str
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One topic. `deployment` is None where it could not be looked at, and `unknown` says why."""

    topic: str
    policy: TopicPolicy
    deployment: Deployment | None
    is_compacted_only: bool = False  # retention is no setting of it
    findings: tuple[Finding, ...] = ()
    unknown: str | None = None

    @property
    def is_undeclared(self) -> bool:
        return not self.policy.declares_retention


class _Laid(NamedTuple):
    """A declared value beside Kafka's setting for it."""

    key: str
    setting: str
    declared: Limit
    effective: Limit


def compare(policy: Policy, seen: Mapping[str, SeenTopic | Unknown]) -> Iterator[Compared]:
    for topic, found in seen.items():
        declared = policy.effective(topic)
        if isinstance(found, Unknown):
            why = f"{found.cause.value}: {found.reason}"
            yield Compared(topic=topic, policy=declared, deployment=None, unknown=why)
            continue
        yield Compared(
            topic=topic,
            policy=declared,
            deployment=deployment(declared, found.settings),
            is_compacted_only=_is_compacted_only(found.settings),
            findings=(*unsuited(declared, found.settings), *_retention(declared, found)),
        )


def deployment(declared: TopicPolicy, settings: TopicSettings) -> Deployment:
    if settings.remote_storage_enable.value:
        return Deployment.KIP405
    return Deployment.OURS if declared.tiering and not settings.is_compacted else Deployment.NONE


def unsuited(declared: TopicPolicy, settings: TopicSettings) -> Iterator[Finding]:
    """What was declared for a topic that is not of a kind to which it can be done (T4, KAFKA_FACTS 7, 24)."""
    reasons = {
        "Kafka's own remote storage is on": settings.remote_storage_enable.value,
        "it is compacted": settings.is_compacted,
    }
    why = " and ".join(reason for reason, is_so in reasons.items() if is_so)
    if why and declared.trim:
        yield Finding(kind=Kind.TRIM_REFUSED, key="trim", detail=f"trim is on, and {why}")
    if why and declared.tiering:
        yield Finding(kind=Kind.NOT_TIERED, key="tiering", detail=f"tiering is on, and {why}")


def _retention(declared: TopicPolicy, found: SeenTopic) -> Iterator[Finding]:
    """Brokers that differ from what was declared, those that differ alike told together."""
    differing: dict[_Laid, list[int]] = {}
    for broker_id, settings in found.by_broker.items():
        for laid in _laid(declared, settings):
            if laid.declared != laid.effective and not _is_trimmed_to(declared, laid):
                differing.setdefault(laid, []).append(broker_id)
    for laid, brokers in differing.items():
        spoken = KEYS[laid.key].spoken
        yield Finding(
            kind=Kind.SHORTER if at_most(laid.effective, laid.declared) else Kind.LONGER,
            key=laid.key,
            detail=f"{laid.setting} is {spoken(laid.effective)}, {spoken(laid.declared)} is declared",
            brokers=tuple(brokers),
        )


def _laid(declared: TopicPolicy, settings: TopicSettings) -> Iterator[_Laid]:
    if not declared.declares_retention or _is_compacted_only(settings):
        return
    kind = deployment(declared, settings)
    kept = {"ms": settings.retention_ms.value, "bytes": settings.retention_bytes.value}
    kept_locally = {"ms": settings.local_ms, "bytes": settings.local_bytes}
    for unit in ("ms", "bytes"):
        key = f"local_retention_{unit}" if kind is Deployment.OURS else f"total_retention_{unit}"
        yield _beside(declared, key, f"retention.{unit}", kept[unit])
        if kind is Deployment.KIP405:
            yield _beside(declared, f"local_retention_{unit}", f"local.retention.{unit}", kept_locally[unit])


def _is_compacted_only(settings: TopicSettings) -> bool:
    return "delete" not in settings.cleanup_policy.value


def _beside(declared: TopicPolicy, key: str, setting: str, value: int) -> _Laid:
    told: Limit = getattr(declared, key)
    return _Laid(key, setting, told, value if value >= 0 else UNLIMITED)


def _is_trimmed_to(declared: TopicPolicy, laid: _Laid) -> bool:
    """A broker may keep more where our agent trims: it is the one that keeps to local retention then."""
    return declared.trim and laid.key.startswith("local_") and at_most(laid.declared, laid.effective)
