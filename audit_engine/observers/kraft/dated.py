"""The metadata log told record by record: `(image, changes) -> (image, events)`, pure.

    record                          said
    Topic, its Partitions           topic_created; leader_changed for each partition
    Partition, of an older topic    partitions_added; leader_changed for each
    PartitionChange                 leader_changed or isr_changed; replica_added, replica_removed
    RemoveTopic                     topic_deleted
    Config                          config_effective, if the value is another
    UnregisterBroker                emitter_retired
    one that cannot be read         evidence_gap, open-ended: what follows from it is not known

What belongs to one act of the controller stands in one batch, or in one metadata transaction: from there
comes how many partitions a topic was created with.

Invariant: the same records come to the same events, however they are cut, so long as no batch is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from audit_engine.observers.kraft.sight import Scope, Sight
from audit_engine.observers.kraft.sight import dated as sight_of
from audit_engine.observers.kraft.subjects import config_events, partition_events, retired
from rules.events import Event, EvidenceGap, PartitionsAdded, TopicCreated, TopicDeleted
from tiering.cluster.fold import Draft
from tiering.cluster.image import Change, ClusterImage, ConfigKey, PartitionKey
from tiering.log.kraft.nodes import UnregisterBrokerRecord
from tiering.log.kraft.topics import (
    ConfigRecord,
    ConfigResource,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tiering.log.wire import Uuid

UNREAD = "metadata_record_unread"


class _Act(NamedTuple):
    """Of a topic, in one batch or transaction."""

    topic_id: Uuid
    is_transaction: bool
    at: int


class _Made(NamedTuple):
    """The partitions that an act makes, and whether it makes the topic too."""

    first: int
    how_many: int
    is_new_topic: bool


def tell(
    image: ClusterImage, changes: Sequence[Change], *, cluster_id: str, scope: Scope
) -> tuple[ClusterImage, list[Event]]:
    """Whole batches of decided changes, which go on where the image ends."""
    if not changes:
        return image, []
    draft, acts = Draft(image), _acts(changes)
    events: list[Event] = []
    for change in changes:
        events += _told(draft, change, sight_of(change, cluster_id, scope), acts)
    return draft.image(changes[-1]), events


def _acts(changes: Sequence[Change]) -> dict[_Act, _Made]:
    found: dict[_Act, _Made] = {}
    for change in changes:
        record = change.record
        if isinstance(record, TopicRecord):
            found[_act(change, record.topic_id)] = _Made(0, 0, is_new_topic=True)
        elif isinstance(record, PartitionRecord):
            act = _act(change, record.topic_id)
            made = found.get(act, _Made(record.partition_id, 0, is_new_topic=False))
            first = min(made.first, record.partition_id)
            found[act] = made._replace(first=first, how_many=made.how_many + 1)
    return found


def _act(change: Change, topic_id: Uuid) -> _Act:
    if change.decided_at != change.offset:
        return _Act(topic_id, True, change.decided_at)
    return _Act(topic_id, False, change.batch_end)


def _told(draft: Draft, change: Change, sight: Sight, acts: dict[_Act, _Made]) -> Iterator[Event]:
    """Takes the change into the draft, and says what it is."""
    record, unread_before = change.record, draft.unread
    if isinstance(record, TopicRecord):
        draft.apply(change)
        if sight.scope.takes(record.name):
            made = acts[_act(change, record.topic_id)]
            yield sight.of_topic(TopicCreated, record.topic_id, record.name, partition_count=made.how_many)
    elif isinstance(record, PartitionRecord):
        yield from _partition_made(draft, change, record, sight, acts)
    elif isinstance(record, PartitionChangeRecord):
        key = PartitionKey(record.topic_id, record.partition_id)
        before = draft.partitions.get(key)
        draft.apply(change)
        after, name = draft.partitions.get(key), draft.topics.get(record.topic_id)
        if after is not None and name is not None and sight.scope.takes(name):
            yield from partition_events(sight, key, name, before, after)
    elif isinstance(record, RemoveTopicRecord):
        name = draft.topics.get(record.topic_id)
        draft.apply(change)
        if name is not None and sight.scope.takes(name):
            yield sight.of_topic(TopicDeleted, record.topic_id, name)
    elif isinstance(record, ConfigRecord):
        config = ConfigKey(record.resource_type, record.resource_name)
        is_topic = record.resource_type == ConfigResource.TOPIC
        old = draft.configs.get(config, {}).get(record.name)
        draft.apply(change)
        topic_id = draft.topic_ids.get(record.resource_name) if is_topic else None
        yield from config_events(sight, config, record.name, topic_id, old, record.value)
    else:
        draft.apply(change)
        if isinstance(record, UnregisterBrokerRecord):
            yield retired(sight, record.broker_id)
    if draft.unread is not None and unread_before is None:
        yield _unread(sight, draft.unread)


def _partition_made(
    draft: Draft, change: Change, record: PartitionRecord, sight: Sight, acts: dict[_Act, _Made]
) -> Iterator[Event]:
    key = PartitionKey(record.topic_id, record.partition_id)
    before = draft.partitions.get(key)
    draft.apply(change)
    name = draft.topics.get(record.topic_id)
    if name is None or not sight.scope.takes(name):
        return
    act = _act(change, record.topic_id)
    made = acts[act]
    if before is None and not made.is_new_topic:
        acts[act] = made._replace(is_new_topic=True)  # said once
        yield sight.of_topic(
            PartitionsAdded,
            record.topic_id,
            name,
            old_partition_count=made.first,
            partition_count=made.first + made.how_many,
        )
    yield from partition_events(sight, key, name, before, draft.partitions[key])


def _unread(sight: Sight, why: str) -> EvidenceGap:
    return sight.of_cluster(
        EvidenceGap,
        UNREAD,
        topic_id=None,
        topic=None,
        partition=None,
        source=sight.source,
        problem=UNREAD,
        detail=why,
        gap_start=sight.metadata_offset,
        gap_end=None,
        not_before_ms=None,
    )
