"""Looks at the topic of metadata, and makes it where it may.

Owns its creation and its checks. Refuses a topic that is not fit (`fitness`), rather than put it right:
whoever made it so may have meant it, and settings are the operator's.

Invariant: what is returned was looked at after it was made, and was fit; two agents that make it at once both
get the one topic that is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeout  # another class, before Python 3.11
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AdminClient,
    ConfigResource,
    ResourceType,
)

from tiering.cluster.interface import (
    Cause,
    DescribedTopic,
    LeaderOffsets,
    TopicPartition,
    Unknown,
)
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.new_topic.kafka import make_topic
from tiering.cluster.quiet import QUIET
from tiering.segments.errors import (
    FollowingEnded,
    SegmentsTopicMissing,
    SegmentsTopicSilent,
    SegmentsTopicUnfit,
)
from tiering.segments.topic import PARTITIONS, TOPIC, SegmentsTopic
from tiering.segments.topic.fitness import REPLICAS, TopicFound, faults, settings

DEADLINE_S = 30.0
ANSWER_S = 10.0
SETTLE_S = 0.1

T = TypeVar("T")


def ensure_topic(
    config: Mapping[str, str],
    *,
    name: str = TOPIC,
    partitions: int = PARTITIONS,
    replication: int | None = None,
    deadline_s: float = DEADLINE_S,
) -> SegmentsTopic:
    """The topic, made if there is none, by default with as many replicas as there are brokers, up to three.

    Raises SegmentsTopicUnfit, SegmentsTopicSilent, or a ClusterError.
    """
    cluster = KafkaCluster(config, monotonic_s=time.monotonic)
    identity = cluster.identity()
    if _described(cluster, name) is None:
        copies = replication or min(REPLICAS, len(identity.broker_ids))
        _create(config, name, partitions, copies, deadline_s)

    def checked() -> SegmentsTopic | None:
        try:
            return _checked(config, cluster, name, partitions)
        except SegmentsTopicMissing:
            return None  # asked of a broker that has not heard of it yet

    return _wait_for(checked, name, deadline_s)


def check_topic(config: Mapping[str, str], *, name: str = TOPIC) -> SegmentsTopic:
    """The topic, which must be there already: for those who only read. Raises SegmentsTopicMissing, too."""
    return _checked(config, KafkaCluster(config, monotonic_s=time.monotonic), name, None)


class TopicEnds:
    """Asks the leaders of the topic, now, where its partitions end. For one thread."""

    def __init__(self, config: Mapping[str, str], topic: SegmentsTopic) -> None:
        self._cluster = KafkaCluster(config, monotonic_s=time.monotonic)
        self._topic = topic

    def ends(self) -> dict[int, int]:
        """Of each partition the high watermark. All of them, or an error.

        Raises FollowingEnded where the name stands for another topic by now, or where its beginning is gone.
        """
        name, count = self._topic.name, self._topic.partition_count
        answers = self._cluster.leader_offsets(TopicPartition(name, number) for number in range(count))
        return {asked.partition: self._end(asked.partition, answer) for asked, answer in answers.items()}

    def _end(self, partition: int, answer: LeaderOffsets | Unknown) -> int:
        what = self._topic.name
        if isinstance(answer, Unknown):
            why = f"partition {partition}: {answer.reason}"
            raise SegmentsTopicSilent(what=what, act="asked for its end", why=why)
        if answer.topic_id != self._topic.topic_id:
            why = f"it was deleted and made anew ({self._topic.topic_id} is {answer.topic_id} now)"
            raise FollowingEnded(what=what, why=why)
        if answer.log_start > 0:
            why = f"the records of partition {partition} below {answer.log_start} were deleted"
            raise FollowingEnded(what=what, why=why)
        return answer.high_watermark


def topic_ends(
    config: Mapping[str, str], topic: SegmentsTopic, *, deadline_s: float = DEADLINE_S
) -> dict[int, int]:
    """`TopicEnds.ends`, asked again until every leader has answered or the deadline has passed."""
    asked = TopicEnds(config, topic)
    last_moment = time.monotonic() + deadline_s
    while True:
        try:
            return asked.ends()
        except SegmentsTopicSilent:
            if time.monotonic() >= last_moment:
                raise
            time.sleep(SETTLE_S)


def _described(cluster: KafkaCluster, name: str) -> DescribedTopic | None:
    found = cluster.describe_topics([name])[name]
    if not isinstance(found, Unknown):
        return found
    if found.cause is Cause.NO_SUCH_TOPIC:
        return None
    raise SegmentsTopicSilent(what=name, act="described", why=found.reason)


def _create(
    config: Mapping[str, str], name: str, partitions: int, replication: int, deadline_s: float
) -> None:
    refusal = make_topic(
        config,
        name,
        partitions=partitions,
        replication=replication,
        settings=settings(replication),
        deadline_s=deadline_s,
    )
    if refusal is not None:
        raise SegmentsTopicSilent(what=name, act="made", why=refusal)


def _wait_for(look: Callable[[], T | None], name: str, deadline_s: float) -> T:
    last_moment = time.monotonic() + deadline_s
    while (found := look()) is None:
        if time.monotonic() >= last_moment:
            why = "brokers do not know it after its creation"
            raise SegmentsTopicSilent(what=name, act="found", why=why)
        time.sleep(SETTLE_S)
    return found


def _entries(config: Mapping[str, str], name: str) -> dict[str, str | None]:
    """Every setting of the topic, by Kafka's names, as some broker has it."""
    admin = AdminClient(dict(config), logger=QUIET)
    asked = ConfigResource(ResourceType.TOPIC, name)
    try:
        found = admin.describe_configs([asked], request_timeout=ANSWER_S)[asked].result(2 * ANSWER_S)
    except KafkaException as refused:
        error: KafkaError = refused.args[0]
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise SegmentsTopicMissing(what=name) from refused
        raise SegmentsTopicSilent(what=name, act="asked for its settings", why=error.str()) from refused
    except FutureTimeout as silent:
        why = "the client did not answer"
        raise SegmentsTopicSilent(what=name, act="asked for its settings", why=why) from silent
    return {entry: setting.value for entry, setting in found.items()}


def _checked(
    config: Mapping[str, str], cluster: KafkaCluster, name: str, partitions: int | None
) -> SegmentsTopic:
    described = _described(cluster, name)
    if described is None:
        raise SegmentsTopicMissing(what=name)
    identity = cluster.identity()
    found = TopicFound(
        partition_count=len(described.partitions),
        replication=min(len(each.replicas) for each in described.partitions.values()),
        brokers=len(identity.broker_ids),
        entries=_entries(config, name),
    )
    wrong = tuple(faults(found, partitions=partitions))
    if wrong:
        raise SegmentsTopicUnfit(
            what=name,
            why="; ".join(map(str, wrong)),
            settings=tuple(each.setting for each in wrong),
        )
    return SegmentsTopic(
        name=name,
        topic_id=described.topic_id,
        partition_count=found.partition_count,
        cluster_id=identity.cluster_id,
        delete_retention_ms=int(found.entries["delete.retention.ms"] or 0),
        min_compaction_lag_ms=int(found.entries["min.compaction.lag.ms"] or 0),
    )
