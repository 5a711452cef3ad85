"""One thing before and after: which events say the difference. Pure; the log and two images come to the same.

    partition   leader_changed, else isr_changed; replica_added and replica_removed for each broker
    setting     config_effective, of topics and brokers; what others there are bears on no log
    broker      emitter_retired, as an agent stands beside a broker

A new partition's first leader and replicas are told by its `leader_changed` alone.

Invariant: nothing is said of what is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from audit_engine.observers.kraft.secrets import told
from audit_engine.observers.kraft.sight import NOT_KNOWN, Sight
from rules.events import (
    ConfigEffective,
    ConfigSource,
    EmitterRetired,
    Event,
    IsrChanged,
    LeaderChanged,
    ReplicaAdded,
)
from rules.events import ConfigResource as ToldResource
from tiering.cluster.image import ConfigKey, PartitionKey, PartitionState
from tiering.log.kraft.topics import ConfigResource, LeaderRecovery
from tiering.log.wire import Uuid

AGENT = "agent"  # the component whose emitter ends with its broker
ALL_BROKERS = ""  # the name of the brokers' common default
UNREGISTERED = "unregistered"


def partition_events(
    sight: Sight, key: PartitionKey, topic: str, before: PartitionState | None, after: PartitionState
) -> Iterator[Event]:
    if not sight.scope.has(before, after):
        return
    if before is None or (before.leader_id, before.leader_epoch) != (after.leader_id, after.leader_epoch):
        yield sight.of_partition(
            LeaderChanged,
            key,
            topic,
            after,
            leader_id=NOT_KNOWN if after.leader_id is None else after.leader_id,
            isr=after.isr,
            replicas=after.replicas,
            is_unclean=_is_unclean(after.recovery),
        )
    elif set(before.isr) != set(after.isr):
        yield sight.of_partition(IsrChanged, key, topic, after, isr=after.isr)
    if before is None:
        return
    for broker in sorted(set(after.replicas) - set(before.replicas)):
        yield sight.of_partition(
            ReplicaAdded, key, topic, after, broker, broker_id=broker, replicas=after.replicas
        )
    for broker in sorted(set(before.replicas) - set(after.replicas)):
        yield sight.unassigned(key, topic, after, broker)


def _is_unclean(recovery: LeaderRecovery) -> bool | None:
    return None if recovery is LeaderRecovery.UNCHANGED else recovery is LeaderRecovery.RECOVERING


def config_events(
    sight: Sight, key: ConfigKey, name: str, topic_id: Uuid | None, old: str | None, new: str | None
) -> Iterator[Event]:
    """`old` and `new` as they are set on this resource itself; None where they are not."""
    if old == new or key.resource not in (ConfigResource.TOPIC, ConfigResource.BROKER):
        return
    is_topic = key.resource == ConfigResource.TOPIC
    if is_topic and not sight.scope.takes(key.name):
        return
    broker_id = int(key.name) if not is_topic and key.name.isdecimal() else None
    level = ConfigSource.ALL_BROKERS if broker_id is None else ConfigSource.BROKER
    yield sight.of_cluster(
        ConfigEffective,
        f"{topic_id or key.name}:{name}",
        resource=ToldResource.TOPIC if is_topic else ToldResource.BROKER,
        topic_id=topic_id,
        topic=key.name if is_topic else None,
        broker_id=broker_id,
        key=name,
        old_value=told(key.resource, name, old),
        new_value=told(key.resource, name, new),
        config_source=ConfigSource.TOPIC if is_topic else level,
        is_first_sight=sight.is_first,
        source=sight.source,
        metadata_offset=sight.metadata_offset,
        is_coalesced=sight.is_coalesced,
        not_before_ms=sight.not_before_ms,
    )


def retired(sight: Sight, broker_id: int) -> Event:
    """The agent beside a broker that was unregistered has nothing more to say."""
    return sight.of_cluster(
        EmitterRetired,
        broker_id,
        broker_id=broker_id,
        component=AGENT,
        last_incarnation=None,
        last_seq=None,
        principal=None,
        reason=UNREGISTERED,
        metadata_offset=sight.metadata_offset,
    )
