"""The fold of the metadata log: `(image, changes) -> image`, pure.

    record                                  in the image
    Topic, RemoveTopic                      topics by id, ids by name; a removal takes partitions and configs
    Partition, PartitionChange              leader, epoch, ISR, replicas and their directories, recovery state
    Config                                  configs by (resource type, resource name); a value of None removes
    RegisterBroker, UnregisterBroker,       brokers: incarnation, epoch, fenced, log dirs
    BrokerRegistrationChange, (Un)Fence
    Begin-, End-, AbortTransaction          what stands between waits in `undecided` (KIP-868)
    all others                              only move `end_offset` on

Invariant: a change of a partition that is not in the image, or a record of a newer version of one of these
types, leaves an image that would answer wrongly; its `unread` says so. Folding changes one by one or all at
once gives the same image, and the image that went in is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import count
from types import MappingProxyType
from typing import Any

from tiering.cluster.image import (
    BrokerState,
    Change,
    ClusterImage,
    ConfigKey,
    PartitionKey,
    PartitionState,
)
from tiering.log.framed import SkippedRecord, SkipReason
from tiering.log.kraft.cluster import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from tiering.log.kraft.nodes import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from tiering.log.kraft.records import METADATA_RECORDS
from tiering.log.kraft.topics import (
    LEADER_UNCHANGED,
    NO_LEADER,
    ConfigRecord,
    ConfigResource,
    LeaderRecovery,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tiering.log.wire import ZERO_UUID, Uuid

# Records of a metadata transaction that nobody has ended. Creating topics makes some per partition.
UNDECIDED_MAX = 1_000_000


class Decider:
    """Holds back the records of an open metadata transaction until it is decided."""

    def __init__(self, undecided: Iterable[Change] | None = None) -> None:
        self._held: list[Change] | None = None if undecided is None else list(undecided)
        self.lost = False  # more than UNDECIDED_MAX were held, and have been dropped

    @property
    def undecided(self) -> tuple[Change, ...] | None:
        return None if self._held is None else tuple(self._held)

    def take(self, change: Change) -> tuple[Change, ...]:
        """The changes that count from here on, in order. Those of an aborted transaction never do.

        The records that begin and end a transaction count themselves.
        """
        held, record = self._held, change.record
        if isinstance(record, BeginTransactionRecord):
            self._held = []
        elif isinstance(record, EndTransactionRecord):
            self._held = None
            return (*(replace(each, decided_at=change.offset) for each in held or ()), change)
        elif isinstance(record, AbortTransactionRecord):
            self._held = None
        elif held is not None:
            held.append(change)
            if len(held) > UNDECIDED_MAX:
                self.lost = True
                held.clear()
            return ()
        return (change,)


def fold(image: ClusterImage, changes: Iterable[Change]) -> ClusterImage:
    """The image after these changes of the log, which go on where it ends."""
    last: Change | None = None
    draft = Draft(image)
    decider = Decider(image.undecided)
    for last in changes:
        for change in decider.take(last):
            draft.apply(change)
    if last is None:
        return image
    if decider.lost:
        draft.doubt(last.offset, f"a metadata transaction has more than {UNDECIDED_MAX} records")
    return draft.image(last, undecided=decider.undecided)


class Draft:
    """An image being changed: each of its tables is copied when it is first asked for.

    For who wants to see what each change alters: look before `apply` and after. It takes changes as they are
    decided, and knows of no transaction.
    """

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._unread: str | None = None

    @cached_property
    def topics(self) -> dict[Uuid, str]:
        return dict(self._image.topics)

    @cached_property
    def topic_ids(self) -> dict[str, Uuid]:
        return dict(self._image.topic_ids)

    @cached_property
    def partitions(self) -> dict[PartitionKey, PartitionState]:
        return dict(self._image.partitions)

    @cached_property
    def configs(self) -> dict[ConfigKey, Mapping[str, str]]:
        return dict(self._image.configs)

    @cached_property
    def brokers(self) -> dict[int, BrokerState]:
        return dict(self._image.brokers)

    def doubt(self, offset: int, why: str) -> None:
        """The first reason is kept: the others may follow from it."""
        self._unread = self._unread or self._image.unread or f"at metadata offset {offset}: {why}"

    @property
    def unread(self) -> str | None:
        return self._unread or self._image.unread

    def apply(self, change: Change) -> None:
        record = change.record
        if isinstance(record, SkippedRecord):
            if record.reason is SkipReason.NEWER_VERSION and METADATA_RECORDS.get(record.api_key) in _FOLDED:
                newer = f"record type {record.api_key} has a newer version, {record.version}"
                self.doubt(change.offset, newer)
            return
        handler = _HANDLERS.get(type(record))
        if handler is not None and (why := handler(self, record)) is not None:
            self.doubt(change.offset, why)

    def image(self, last: Change, *, undecided: tuple[Change, ...] | None = None) -> ClusterImage:
        """What it has become; `last` is the last record that was taken."""
        return replace(
            self._image,
            **self._touched(),
            undecided=undecided,
            end_offset=last.offset + 1,
            epoch=last.epoch,
            timestamp_ms=last.timestamp_ms,
        )

    def _touched(self) -> dict[str, Any]:
        tables = {
            name: MappingProxyType(table) for name, table in vars(self).items() if not name.startswith("_")
        }
        return tables | ({"unread": self._unread} if self._unread else {})


# Each returns why the record does not fit the image, or None.


def _topic(draft: Draft, record: TopicRecord) -> str | None:
    before = draft.topic_ids.get(record.name)
    draft.topics[record.topic_id] = record.name
    draft.topic_ids[record.name] = record.topic_id
    return None if before in (None, record.topic_id) else f"topic {record.name} is created while it exists"


def _remove_topic(draft: Draft, record: RemoveTopicRecord) -> str | None:
    name = draft.topics.pop(record.topic_id, None)
    if name is None:
        return f"topic {record.topic_id} is removed and was never there"
    if draft.topic_ids.get(name) == record.topic_id:
        del draft.topic_ids[name]
        draft.configs.pop(ConfigKey(ConfigResource.TOPIC, name), None)
    for number in count():
        if draft.partitions.pop(PartitionKey(record.topic_id, number), None) is None:
            break
    return None


def _partition(draft: Draft, record: PartitionRecord) -> str | None:
    draft.partitions[PartitionKey(record.topic_id, record.partition_id)] = PartitionState(
        replicas=record.replicas,
        directories=record.directories,
        isr=record.isr,
        adding_replicas=record.adding_replicas,
        removing_replicas=record.removing_replicas,
        leader_id=_leader(record.leader),
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        recovery=_recovery(record.leader_recovery_state, LeaderRecovery.RECOVERED),
    )
    return None if record.topic_id in draft.topics else f"a partition of topic {record.topic_id}, not there"


def _partition_change(draft: Draft, record: PartitionChangeRecord) -> str | None:
    key = PartitionKey(record.topic_id, record.partition_id)
    before = draft.partitions.get(key)
    if before is None:
        return f"partition {key.partition} of topic {key.topic_id} changes and was never there"
    elected = record.leader != LEADER_UNCHANGED
    draft.partitions[key] = PartitionState(
        replicas=_changed(record.replicas, before.replicas),
        directories=_directories(record, before),
        isr=_changed(record.isr, before.isr),
        adding_replicas=_changed(record.adding_replicas, before.adding_replicas),
        removing_replicas=_changed(record.removing_replicas, before.removing_replicas),
        leader_id=_leader(record.leader) if elected else before.leader_id,
        # Naming a leader, be it the same one or none, begins an epoch; the record does not say which.
        leader_epoch=before.leader_epoch + elected,
        partition_epoch=before.partition_epoch + 1,
        recovery=_recovery(record.leader_recovery_state, before.recovery),
    )
    return None


def _recovery(number: int, before: LeaderRecovery) -> LeaderRecovery:
    """A number that this version does not know is taken for the worse of the two that it does."""
    if number == LeaderRecovery.UNCHANGED:
        return before
    return LeaderRecovery.RECOVERED if number == LeaderRecovery.RECOVERED else LeaderRecovery.RECOVERING


def _leader(number: int) -> int | None:
    return None if number == NO_LEADER else number


def _changed(to: tuple[int, ...] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if to is None else to


def _directories(record: PartitionChangeRecord, before: PartitionState) -> tuple[Uuid, ...]:
    """Replicas that stay keep their directory; a new one is not assigned to any yet (KIP-858)."""
    if record.directories:
        return record.directories
    if record.replicas is None or not before.directories:
        return before.directories
    known = dict(zip(before.replicas, before.directories, strict=False))
    return tuple(known.get(replica, ZERO_UUID) for replica in record.replicas)


def _config(draft: Draft, record: ConfigRecord) -> None:
    key = ConfigKey(record.resource_type, record.resource_name)
    entries = dict(draft.configs.get(key, {}))
    if record.value is None:
        entries.pop(record.name, None)
    else:
        entries[record.name] = record.value
    if entries:
        draft.configs[key] = MappingProxyType(entries)
    else:
        draft.configs.pop(key, None)


def _register(draft: Draft, record: RegisterBrokerRecord) -> None:
    draft.brokers[record.broker_id] = BrokerState(
        broker_id=record.broker_id,
        incarnation_id=record.incarnation_id,
        broker_epoch=record.broker_epoch,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        rack=record.rack,
    )


def _unregister(draft: Draft, record: UnregisterBrokerRecord) -> str | None:
    gone = draft.brokers.pop(record.broker_id, None)
    return None if gone is not None else f"broker {record.broker_id} is unregistered and was never there"


def _registration_change(draft: Draft, record: BrokerRegistrationChangeRecord) -> str | None:
    before = draft.brokers.get(record.broker_id)
    if before is None:
        return f"broker {record.broker_id} changes and was never there"
    draft.brokers[record.broker_id] = replace(
        before,
        broker_epoch=record.broker_epoch,
        fenced=record.fenced > 0 if record.fenced else before.fenced,
        in_controlled_shutdown=bool(record.in_controlled_shutdown) or before.in_controlled_shutdown,
        log_dirs=record.log_dirs or before.log_dirs,
    )
    return None


def _fence(draft: Draft, record: FenceBrokerRecord | UnfenceBrokerRecord) -> str | None:
    before = draft.brokers.get(record.id)
    if before is None:
        return f"broker {record.id} is fenced or unfenced and was never there"
    draft.brokers[record.id] = replace(before, fenced=isinstance(record, FenceBrokerRecord))
    return None


_HANDLERS: Mapping[type, Callable[[Draft, Any], str | None]] = {
    TopicRecord: _topic,
    RemoveTopicRecord: _remove_topic,
    PartitionRecord: _partition,
    PartitionChangeRecord: _partition_change,
    ConfigRecord: _config,
    RegisterBrokerRecord: _register,
    UnregisterBrokerRecord: _unregister,
    BrokerRegistrationChangeRecord: _registration_change,
    FenceBrokerRecord: _fence,
    UnfenceBrokerRecord: _fence,
}
_FOLDED = frozenset((*_HANDLERS, BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord))
