"""Who leads: from the KRaft metadata log on this host, or from the admin API where there is none.

`KraftLeadership` reads the image that `metadata_log` follows. It knows epochs, ISR and recovery state of
every partition, and costs the cluster nothing. Its log may end in records that are not committed, and stops
growing when the broker stops: an active controller writes to it twice a second
(metadata.max.idle.interval.ms), so a log that has been quiet for long is not believed.

`AdminLeadership` asks the cluster. The admin API names leaders without their epochs, so the epoch of a log
that this broker leads is the newest in its own leader-epoch-checkpoint, which a broker writes when it begins
to lead. Should either source be late, T1 is safe all the same: ListOffsets states the epoch of the leader
that answered, and the gate lets nothing out unless it equals the epoch on disk (`gate` says why that is
enough). What a late answer costs is a wait, not a wrong byte.

`FirstKnown` asks the next source for what one does not know.

Invariant: a leader is named only by an image without doubts, or by a broker's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tiering.cluster.image import ClusterImage, PartitionKey
from tiering.cluster.interface import (
    Cause,
    DescribedTopic,
    Leadership,
    LeadershipSource,
    Recovery,
    TopicDescriber,
    TopicPartition,
    Unknown,
)
from tiering.cluster.metadata_log import MetadataLogFollower, Step
from tiering.log.kraft.topics import LeaderRecovery

QUIET_MAX_MS = 30_000  # sixty times as long as a living controller is ever silent


class KraftLeadership:
    """Leadership from the metadata log on this host. `on_step` sees every step it takes, in order."""

    def __init__(
        self,
        follower: MetadataLogFollower,
        *,
        now_ms: Callable[[], int],
        quiet_max_ms: int = QUIET_MAX_MS,
        on_step: Callable[[Step], None] = lambda _: None,
    ) -> None:
        self._follower = follower
        self._now_ms = now_ms
        self._quiet_max_ms = quiet_max_ms
        self._on_step = on_step

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]:
        doubt = self._catch_up()
        image = self._follower.image
        return {each: doubt or leadership_in(image, each) for each in partitions}

    def _catch_up(self) -> Unknown | None:
        """Read to the end of the log; why its image is not to be believed, if it is not."""
        while True:
            poll = self._follower.poll()
            for step in poll.steps:
                self._on_step(step)
            if poll.caught_up or not poll.steps or poll.stopped:
                break
        if not poll.caught_up:
            return Unknown(cause=Cause.UNREADABLE, reason=f"the metadata log: {poll.stopped}")
        if self._follower.image.unread is not None:
            return Unknown(cause=Cause.UNREADABLE, reason=f"the metadata log, {self._follower.image.unread}")
        quiet_ms = self._now_ms() - (poll.grown_at_ms or 0)
        if quiet_ms > self._quiet_max_ms:
            return Unknown(
                cause=Cause.QUIET, reason=f"the metadata log has not grown for {quiet_ms // 1000} s"
            )
        return None


class AdminLeadership:
    """Leadership from the admin API. `local_epoch` is the newest in a replica's leader-epoch-checkpoint."""

    def __init__(
        self,
        cluster: TopicDescriber,
        *,
        broker_id: int,
        local_epoch: Callable[[TopicPartition], int | None],
    ) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._local_epoch = local_epoch

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]:
        wanted = list(partitions)
        described = self._cluster.describe_topics(sorted({each.topic for each in wanted}))
        return {each: self._of(each, described[each.topic]) for each in wanted}

    def _of(self, partition: TopicPartition, topic: DescribedTopic | Unknown) -> Leadership | Unknown:
        if isinstance(topic, Unknown):
            return topic
        found = topic.partitions.get(partition.partition)
        if found is None:
            return _no_such(partition)
        led_here = found.leader_id == self._broker_id
        return Leadership(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partition=partition.partition,
            leader_id=found.leader_id,
            leader_epoch=self._local_epoch(partition) if led_here else None,
            replicas=found.replicas,
            isr=found.isr,
            recovery=Recovery.NOT_TOLD,
        )


class FirstKnown:
    """The first source's answer, and where it has none the next one's."""

    def __init__(self, sources: Sequence[LeadershipSource]) -> None:
        self._sources = tuple(sources)

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]:
        answers: dict[TopicPartition, Leadership | Unknown] = {}
        open_questions = list(partitions)
        for source in self._sources:
            if open_questions:
                answers |= source.leadership(open_questions)
                open_questions = [each for each in open_questions if isinstance(answers[each], Unknown)]
        return answers


def leadership_in(image: ClusterImage, partition: TopicPartition) -> Leadership | Unknown:
    """What an image says of a partition. A topic that it does not hold may be one it has not heard of yet."""
    topic_id = image.topic_ids.get(partition.topic)
    state = image.partitions.get(PartitionKey(topic_id, partition.partition)) if topic_id else None
    if topic_id is None or state is None:
        return _no_such(partition)
    recovered = state.recovery is LeaderRecovery.RECOVERED
    return Leadership(
        topic=partition.topic,
        topic_id=topic_id,
        partition=partition.partition,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        recovery=Recovery.RECOVERED if recovered else Recovery.RECOVERING,
        metadata_offset=image.end_offset,
    )


def _no_such(partition: TopicPartition) -> Unknown:
    reason = f"partition {partition.partition} of topic {partition.topic} is not in the answer"
    return Unknown(cause=Cause.NO_SUCH_TOPIC, reason=reason)
