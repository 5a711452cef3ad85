"""audit_engine/ingest/kafka.py: how far a topic goes, while its leaders move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from audit_engine.ingest.kafka import PATIENCE_S, KafkaReach
from audit_engine.tables.errors import OffsetsUnknown
from tiering.cluster.interface import (
    Cause,
    DescribedPartition,
    DescribedTopic,
    LeaderOffsets,
    TopicPartition,
    Unknown,
)
from tiering.log.wire import Uuid

TOPIC = "seawall.audit"
FIRST, SECOND = Uuid("CgkTzsXgRlOwPTRJHnL2yg"), Uuid("kQfXJ2mZQ5e1bYv0x3rT8w")
ONE = DescribedPartition(leader_id=1, replicas=(1,), isr=(1,))


@dataclass(slots=True)
class Cluster:
    """Answers as it is told to, in turn, the last answer for ever; `elapsed_s` is what was slept."""

    offsets: list[LeaderOffsets | Unknown]
    topics: list[Uuid | Unknown] = field(default_factory=lambda: [FIRST])
    elapsed_s: float = 0.0

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        told = _next(self.topics)
        if isinstance(told, Unknown):
            return dict.fromkeys(topics, told)
        return {each: DescribedTopic(topic=each, topic_id=told, partitions={0: ONE}) for each in topics}

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]:
        return dict.fromkeys(partitions, _next(self.offsets))

    def sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds

    def reach(self) -> KafkaReach:
        return KafkaReach({}, cluster=self, clock=lambda: self.elapsed_s, sleep=self.sleep)


T = TypeVar("T")


def _next(answers: list[T]) -> T:
    return answers.pop(0) if len(answers) > 1 else answers[0]


def of(topic_id: Uuid, end: int) -> LeaderOffsets:
    return LeaderOffsets(
        topic_id=topic_id,
        leader_id=1,
        leader_epoch=0,
        high_watermark=end,
        last_stable_offset=end,
        log_start=2,
    )


def unknown(cause: Cause) -> Unknown:
    return Unknown(cause=cause, reason=f"it said {cause.value}")


@pytest.mark.parametrize("cause", [Cause.NO_ANSWER, Cause.STALE, Cause.NOT_READY, Cause.NO_SUCH_TOPIC])
def test_a_leader_that_moves_is_waited_for(cause: Cause) -> None:
    """What passes by itself ends no ingest, and what is answered then counts."""
    cluster = Cluster([unknown(cause), unknown(cause), of(FIRST, 9)])

    found = cluster.reach().reach(TOPIC)

    assert (found.topic_id, found.starts, found.ends) == (str(FIRST), {0: 2}, {0: 9})
    assert 0 < cluster.elapsed_s < PATIENCE_S


def test_a_topic_that_is_made_anew_meanwhile_is_asked_for_again() -> None:
    """No answer has one topic's id and another's offsets."""
    cluster = Cluster([of(SECOND, 4), of(SECOND, 4)], [FIRST, SECOND])

    found = cluster.reach().reach(TOPIC)

    assert (found.topic_id, found.ends) == (str(SECOND), {0: 4})


def test_it_is_not_waited_for_without_end() -> None:
    """Past its patience it says of which partition what was answered."""
    cluster = Cluster([unknown(Cause.NOT_READY)])

    with pytest.raises(OffsetsUnknown, match="partition 0: it said not_ready"):
        cluster.reach().reach(TOPIC)

    assert PATIENCE_S <= cluster.elapsed_s < PATIENCE_S + 2


@pytest.mark.parametrize("cause", [Cause.REFUSED, Cause.ERROR])
def test_what_waiting_does_not_mend_is_said_at_once(cause: Cause) -> None:
    """An operator has to act."""
    cluster = Cluster([unknown(cause)])

    with pytest.raises(OffsetsUnknown, match=f"partition 0: it said {cause.value}"):
        cluster.reach().reach(TOPIC)

    assert cluster.elapsed_s == 0


@pytest.mark.parametrize("cause", [Cause.NO_SUCH_TOPIC, Cause.NO_ANSWER])
def test_what_is_no_matter_of_leaders_is_said_at_once(cause: Cause) -> None:
    """Neither a name that was mistyped nor a cluster that nobody answers for is waited for."""
    cluster = Cluster([of(FIRST, 9)], [unknown(cause)])

    with pytest.raises(OffsetsUnknown, match=f"it said {cause.value}"):
        cluster.reach().reach(TOPIC)

    assert cluster.elapsed_s == 0
