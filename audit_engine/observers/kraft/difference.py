"""Two images of the cluster, and what lies between them: one change for each thing that is not as it was.

What came and went between the two is in neither: whoever has only these says so by `is_coalesced`, or, where
it polled, by the time between its looks.

Owns the comparison. Refuses to say what an image does not know: the settings of a topic that was made anew
under its old name are not those of the old one.

Invariant: an image differs in nothing from itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from audit_engine.observers.kraft.secrets import told
from audit_engine.observers.kraft.sight import Sight
from audit_engine.observers.kraft.subjects import config_events, partition_events, retired
from rules.events import Event, PartitionsAdded, TopicCreated, TopicDeleted
from tiering.cluster.image import ClusterImage, ConfigKey, PartitionKey
from tiering.log.kraft.topics import ConfigResource
from tiering.log.wire import Uuid


def differences(before: ClusterImage, after: ClusterImage, sight: Sight) -> Iterator[Event]:
    """What is to be said at the later one: topics, then their partitions, then settings, then brokers."""
    return chain(
        _topics(before, after, sight),
        _partitions(before, after, sight),
        _configs(before, after, sight),
        (retired(sight, each) for each in sorted(before.brokers.keys() - after.brokers.keys())),
    )


def _topics(before: ClusterImage, after: ClusterImage, sight: Sight) -> Iterator[Event]:
    takes = sight.scope.takes
    for topic_id in sorted(before.topics.keys() - after.topics.keys()):
        if takes(before.topics[topic_id]):
            yield sight.of_topic(TopicDeleted, topic_id, before.topics[topic_id])
    old_counts, counts = _partition_counts(before), _partition_counts(after)
    for topic_id, name in sorted(after.topics.items()):
        if not takes(name):
            continue
        old, new = old_counts.get(topic_id, 0), counts.get(topic_id, 0)
        if topic_id not in before.topics:
            yield sight.of_topic(TopicCreated, topic_id, name, partition_count=new)
        elif old < new:
            yield sight.of_topic(
                PartitionsAdded, topic_id, name, old_partition_count=old, partition_count=new
            )


def _partition_counts(image: ClusterImage) -> Mapping[Uuid, int]:
    counts: dict[Uuid, int] = {}
    for key in image.partitions:
        counts[key.topic_id] = counts.get(key.topic_id, 0) + 1
    return counts


def _partitions(before: ClusterImage, after: ClusterImage, sight: Sight) -> Iterator[Event]:
    changed: list[PartitionKey] = [
        key for key, state in after.partitions.items() if before.partitions.get(key) is not state
    ]
    for key in sorted(changed):
        name = after.topics.get(key.topic_id)
        if name is not None and sight.scope.takes(name):
            yield from partition_events(sight, key, name, before.partitions.get(key), after.partitions[key])


def _configs(before: ClusterImage, after: ClusterImage, sight: Sight) -> Iterator[Event]:
    for key in sorted(before.configs.keys() | after.configs.keys()):
        topic_id: Uuid | None = None
        old, new = before.configs.get(key, {}), after.configs.get(key, {})
        if key.resource == ConfigResource.TOPIC:
            topic_id = after.topic_ids.get(key.name)
            if topic_id is None:
                continue  # with the topic went its settings
            if before.topic_ids.get(key.name) != topic_id:
                old = {}
        for name in sorted(old.keys() | new.keys()):
            if _told(key, name, old) != _told(key, name, new):
                yield from config_events(sight, key, name, topic_id, old.get(name), new.get(name))


def _told(key: ConfigKey, name: str, entries: Mapping[str, str]) -> tuple[bool, str | None]:
    """A secret that is set is told from none, not from another: ours on disk is blank."""
    return name in entries, told(key.resource, name, entries.get(name))
