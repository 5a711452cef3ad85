"""Generated histories of a cluster: what a controller would write, and what the cluster then looks like.

Owns a model that keeps the cluster in plain dicts and lists, and writes each of its acts as metadata records.
The fold reads these records; what it comes to is compared with the model, which shares none of its code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.encode.message import encode_framed
from tests.encode.record_batch import PlainRecord, encode_batch
from tiering.cluster.image import Change
from tiering.log.kraft.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from tiering.log.kraft.nodes import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tiering.log.kraft.records import MetadataRecord
from tiering.log.kraft.topics import (
    ConfigRecord,
    ConfigResource,
    LeaderRecovery,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tiering.log.wire import Uuid, read_uuid

T0_MS = 1_700_000_000_000
BROKERS = (1, 2, 3, 4)
NAMES = ("orders", "clicks", "audit")
# The newest version of each record, as a cluster of today writes them.
VERSIONS = {PartitionRecord: 2, PartitionChangeRecord: 2, RegisterBrokerRecord: 4}


def uuid(number: int) -> Uuid:
    return read_uuid(number.to_bytes(16, "big"), 0)[0]


@dataclass(slots=True)
class ModelPartition:
    """What the model knows of a partition."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int = 0
    partition_epoch: int = 0
    unclean: bool = False


@dataclass(slots=True)
class Model:
    """The cluster as its controller knows it. Every act returns the records that tell of it."""

    topics: dict[str, tuple[Uuid, list[ModelPartition]]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, tuple[int, bool]] = field(default_factory=dict)  # epoch, fenced
    ids_used: int = 0

    def create(self, name: str, replicas: Sequence[tuple[int, ...]]) -> list[MetadataRecord]:
        if name in self.topics:
            return []
        self.ids_used += 1
        topic_id = uuid(self.ids_used)
        partitions = [
            ModelPartition(replicas=each, directories=tuple(map(_directory, each)), isr=each, leader=each[0])
            for each in replicas
        ]
        self.topics[name] = (topic_id, partitions)
        created = [
            PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=each.replicas,
                isr=each.isr,
                removing_replicas=(),
                adding_replicas=(),
                leader=each.replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=each.directories,
            )
            for number, each in enumerate(partitions)
        ]
        return [TopicRecord(name=name, topic_id=topic_id), *created]

    def remove(self, name: str) -> list[MetadataRecord]:
        if name not in self.topics:
            return []
        topic_id, _ = self.topics.pop(name)
        self.configs.pop((ConfigResource.TOPIC, name), None)
        return [RemoveTopicRecord(topic_id=topic_id)]

    def elect(self, name: str, number: int, leader: int | None, unclean: bool) -> list[MetadataRecord]:
        found = self._find(name, number)
        if found is None:
            return []
        topic_id, partition = found
        partition.leader = leader
        partition.leader_epoch += 1
        partition.partition_epoch += 1
        partition.unclean = unclean
        recovery = LeaderRecovery.RECOVERING if unclean else LeaderRecovery.RECOVERED
        if unclean and leader is not None:
            partition.isr = (leader,)
        return [
            PartitionChangeRecord(
                partition_id=number,
                topic_id=topic_id,
                leader=-1 if leader is None else leader,
                isr=partition.isr,
                leader_recovery_state=recovery,
            )
        ]

    def shrink(self, name: str, number: int, isr: tuple[int, ...]) -> list[MetadataRecord]:
        found = self._find(name, number)
        if found is None:
            return []
        topic_id, partition = found
        partition.isr = isr
        partition.partition_epoch += 1
        return [PartitionChangeRecord(partition_id=number, topic_id=topic_id, isr=isr)]

    def reassign(self, name: str, number: int, replicas: tuple[int, ...]) -> list[MetadataRecord]:
        found = self._find(name, number)
        if found is None:
            return []
        topic_id, partition = found
        known = dict(zip(partition.replicas, partition.directories, strict=True))
        partition.directories = tuple(known.get(each, uuid(0)) for each in replicas)
        partition.replicas = replicas
        partition.partition_epoch += 1
        return [PartitionChangeRecord(partition_id=number, topic_id=topic_id, replicas=replicas)]

    def configure(self, kind: int, name: str, key: str, value: str | None) -> list[MetadataRecord]:
        if kind == ConfigResource.TOPIC and name not in self.topics:
            return []
        entries = self.configs.setdefault((kind, name), {})
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value
        if not entries:
            del self.configs[(kind, name)]
        return [ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)]

    def register(self, broker_id: int, epoch: int) -> list[MetadataRecord]:
        self.brokers[broker_id] = (epoch, True)
        return [
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=uuid(1000 + epoch),
                broker_epoch=epoch,
                end_points=(),
                features=(),
                rack=None,
                fenced=True,
                log_dirs=(_directory(broker_id),),
            )
        ]

    def fence(self, broker_id: int, fenced: bool) -> list[MetadataRecord]:
        if broker_id not in self.brokers:
            return []
        epoch, _ = self.brokers[broker_id]
        self.brokers[broker_id] = (epoch, fenced)
        return [
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=epoch, fenced=1 if fenced else -1
            )
        ]

    def unregister(self, broker_id: int) -> list[MetadataRecord]:
        if broker_id not in self.brokers:
            return []
        epoch, _ = self.brokers.pop(broker_id)
        return [UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)]

    def idle(self) -> list[MetadataRecord]:
        return [NoOpRecord()]

    def _find(self, name: str, number: int) -> tuple[Uuid, ModelPartition] | None:
        if name not in self.topics:
            return None
        topic_id, partitions = self.topics[name]
        return (topic_id, partitions[number]) if number < len(partitions) else None


def _directory(broker_id: int) -> Uuid:
    return uuid(500 + broker_id)


Act = Callable[[Model], list[MetadataRecord]]

_replicas = st.permutations(BROKERS).flatmap(
    lambda order: st.integers(1, len(BROKERS)).map(lambda count: tuple(order[:count]))
)
_names = st.sampled_from(NAMES)
_numbers = st.integers(0, 2)


def acts() -> st.SearchStrategy[Act]:
    """Something that a controller does; it comes to nothing where the cluster has no use for it."""

    def act(name: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Act]:
        return st.tuples(*parts).map(lambda given: lambda model: getattr(model, name)(*given))

    return st.one_of(
        act("create", _names, st.lists(_replicas, min_size=1, max_size=3)),
        act("remove", _names),
        act("elect", _names, _numbers, st.sampled_from([*BROKERS, None]), st.booleans()),
        act("shrink", _names, _numbers, _replicas),
        act("reassign", _names, _numbers, _replicas),
        act("configure", st.just(2), _names, st.sampled_from(["retention.ms", "a"]), _values),
        act("configure", st.just(4), st.sampled_from(["", "1"]), st.just("log.retention.ms"), _values),
        act("register", st.sampled_from(BROKERS), st.integers(1, 99)),
        act("fence", st.sampled_from(BROKERS), st.booleans()),
        act("unregister", st.sampled_from(BROKERS)),
        act("idle"),
    )


_values = st.sampled_from(["1000", "-1", None])


def in_transaction(records: list[MetadataRecord], *, ended: bool) -> list[MetadataRecord]:
    """The same records as one metadata transaction; an aborted one changes nothing."""
    end = EndTransactionRecord() if ended else AbortTransactionRecord(reason="failover")
    return [BeginTransactionRecord(name="t"), *records, end]


def changes(records: Sequence[Any], *, start: int = 0, epoch: int = 1) -> list[Change]:
    """The records as they stand in a log from `start` on."""
    return [
        Change(offset=offset, decided_at=offset, epoch=epoch, timestamp_ms=T0_MS + offset, record=record)
        for offset, record in enumerate(records, start)
    ]


def metadata_batch(found: Sequence[Change]) -> bytes:
    """One batch of the metadata log."""
    return encode_batch(
        [
            PlainRecord(
                offset=each.offset,
                timestamp_ms=each.timestamp_ms,
                value=encode_framed(each.record, VERSIONS.get(type(each.record), 0)),
            )
            for each in found
        ],
        leader_epoch=found[0].epoch,
    )
