"""What the cluster says now of the log that a finding is about: who leads, who is in sync, what is set.

Owns the looking. Refuses to take a silent cluster for one that is as it should be: what could not be seen is
in `unknown`, and steps that would rest on it are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from rules.policy import EMPTY
from rules.policy.quantities import UNLIMITED
from seawall.policy.change_log import in_force
from seawall.policy.cluster import look
from seawall.policy.compare import Compared, Deployment, Finding, compare
from seawall.policy.kafka import Opened
from seawall.remedies.steps import Seen
from tiering.cluster.interface import BrokerSettings, DescribedTopic, Unknown

CHECKS, REMOVAL = "log.retention.check.interval.ms", "file.delete.delay.ms"
REBALANCE, REBALANCE_S = "auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds"


def seen_of(opened: Opened, topic: str, partition: int | None, *, is_held: bool) -> Seen:
    """All that steps are chosen by."""
    unknown: list[str] = []
    described = opened.source.describe_topics([topic])[topic]
    leader: int | None = None
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    if isinstance(described, Unknown):
        unknown.append(f"{topic}: {described.reason}")
    elif partition is not None and partition in described.partitions:
        found = described.partitions[partition]
        leader, replicas, in_sync = found.leader_id, found.replicas, found.isr
    broker = _any_broker(opened, described, unknown)
    entries = opened.source.topic_entries([topic])[topic]
    removal = None if isinstance(entries, Unknown) or REMOVAL not in entries else entries[REMOVAL].value
    is_rebalanced = broker is not None and _entry(broker, REBALANCE) == "true"
    rebalance_s = _number(None if broker is None else _entry(broker, REBALANCE_S))
    return Seen(
        topic=topic,
        partition=partition,
        leader=leader,
        replicas=replicas,
        in_sync=in_sync,
        is_held=is_held,
        differences=tuple(_differences(opened, topic, unknown)),
        checks_ms=_number(None if broker is None else _entry(broker, CHECKS)),
        removal_ms=_number(removal),
        rebalance_ms=rebalance_s * 1000 if is_rebalanced and rebalance_s is not None else None,
        unknown=tuple(unknown),
    )


def _any_broker(
    opened: Opened, described: DescribedTopic | Unknown, unknown: list[str]
) -> BrokerSettings | None:
    """The settings of one that holds a replica: they are the same on all, or should be."""
    if isinstance(described, Unknown):
        return None
    for broker_id in sorted({each for held in described.partitions.values() for each in held.isr}):
        found = opened.source.broker_settings(broker_id)
        if not isinstance(found, Unknown):
            return found
        unknown.append(f"broker {broker_id}: {found.reason}")
    return None


def _differences(opened: Opened, topic: str, unknown: list[str]) -> Iterator[tuple[Finding, str, str]]:
    """What is set otherwise than it was declared, Kafka's setting for it, and the value that was declared."""
    base = in_force(opened.changes.read())
    policy = base.policy if base is not None else EMPTY
    for compared in compare(policy, look(opened.source, [topic])):
        if compared.unknown is not None:
            unknown.append(f"{topic}: {compared.unknown}")
        for each in compared.findings:
            if each.key.startswith(("total_retention_", "local_retention_")):
                declared = getattr(compared.policy, each.key)
                value = "-1" if declared is UNLIMITED else str(declared)
                yield each, _setting(compared, each.key), value


def _setting(compared: Compared, key: str) -> str:
    unit = key.rpartition("_")[2]
    is_local = key.startswith("local_") and compared.deployment is Deployment.KIP405
    return f"{'local.' if is_local else ''}retention.{unit}"


def _entry(broker: BrokerSettings, name: str) -> str | None:
    found = broker.entries.get(name)
    return None if found is None else found.value


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
