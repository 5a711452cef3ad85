"""The topic of metadata on a real broker: made or refused, written by many, followed by all, compacted."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from rules.identity import LogId
from seawall.local.broker import LocalCluster
from seawall.local.kafka import create_topic, delete_topic, leaders, set_config
from seawall.local.waiting import becomes_true, wait_until
from tests.cluster.produce import transactional
from tests.tiering.segments.strategies import log_record, segment
from tiering.cluster.kafka import KafkaCluster
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.errors import (
    AppendRefused,
    AppendUncertain,
    FollowingEnded,
    SegmentsTopicMissing,
    SegmentsTopicUnfit,
)
from tiering.segments.kafka import (
    Follower,
    KafkaAppender,
    SegmentsTopic,
    check_topic,
    empty_table,
    ensure_topic,
    replay,
    topic_ends,
)
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import LogRecord, SegmentRecord, SegmentState
from tiering.segments.table import ReferenceTable, TopicRecord
from tiering.segments.topic.fitness import TopicFound, faults, settings
from tiering.uploader.metadata import Metadata

DEADLINE_S = 30.0
PARTITIONS = 3
THREADS = 8
SEGMENTS_EACH = 25
names = (f"segments-{number}" for number in itertools.count())


@pytest.fixture
def config(broker: LocalCluster) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


@pytest.fixture
def topic(config: dict[str, str]) -> SegmentsTopic:
    return ensure_topic(config, name=next(names), partitions=PARTITIONS)


@pytest.fixture
def appender(config: dict[str, str], topic: SegmentsTopic) -> Iterator[KafkaAppender]:
    with KafkaAppender(config, topic) as opened:
        yield opened


def _logs(topic: SegmentsTopic, count: int) -> list[LogId]:
    return [LogId(topic.cluster_id, "CgkTzsXgRlOwPTRJHnL2yg", number) for number in range(count)]


def _append(appender: KafkaAppender, record: SegmentRecord | LogRecord) -> int:
    if isinstance(record, LogRecord):
        return appender.append(record.log, log_key(record.log), encode_log(record))
    return appender.append(record.log, segment_key(record.log, record.segment_id), encode_segment(record))


def _copy(appender: KafkaAppender, log: LogId, number: int) -> None:
    finished = segment(number, 10 * number, 10 * number + 10, log=log)
    _append(appender, replace(finished, state=SegmentState.COPY_STARTED))
    _append(appender, finished)


def _digests(table: ReferenceTable) -> dict[LogId, int]:
    found = {log: table.of(log) for log in table.logs()}
    digests = {log: each.digest(log) for log, each in found.items() if each is not None}
    return {log: each.digest for log, each in digests.items() if each is not None}


def _following(
    config: dict[str, str], topic: SegmentsTopic, **more: float
) -> tuple[ReferenceTable, Follower]:
    table = empty_table(topic, topic_ends(config, topic))
    of_partition = {each.partition: each for each in table.partitions()}

    def apply(partition: int, records: Sequence[TopicRecord]) -> None:
        of_partition[partition].apply_many(records)

    return table, Follower(config, topic, apply, positions={}, **more)


def test_a_topic_that_is_not_there_is_made_fit_and_found_again(config: dict[str, str]) -> None:
    """What `ensure_topic` makes passes its own check, and whoever comes later gets the same topic."""
    name = next(names)

    made = ensure_topic(config, name=name, partitions=5)

    assert made == ensure_topic(config, name=name, partitions=5) == check_topic(config, name=name)
    assert made.partition_count == 5
    assert made.delete_retention_ms == 7 * 24 * 3_600_000


def test_whoever_only_reads_makes_no_topic(config: dict[str, str], broker: LocalCluster) -> None:
    """A verb that looks gets SegmentsTopicMissing, and there is still no such topic."""
    name = next(names)

    with pytest.raises(SegmentsTopicMissing, match=name):
        check_topic(config, name=name)

    assert leaders(broker.bootstrap, name) == {}


def test_agents_that_make_the_topic_at_once_all_get_the_one_that_is_there(config: dict[str, str]) -> None:
    """Losing the race to create is no error."""
    name = next(names)

    with ThreadPoolExecutor(THREADS) as threads:
        made = list(threads.map(lambda _: ensure_topic(config, name=name, partitions=2), range(THREADS)))

    assert len(set(made)) == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cleanup.policy", "delete"),
        ("cleanup.policy", "compact,delete"),
        ("delete.retention.ms", "60000"),
        ("min.compaction.lag.ms", "0"),
        ("unclean.leader.election.enable", "true"),
    ],
)
def test_a_topic_that_could_forget_is_refused(
    config: dict[str, str], broker: LocalCluster, topic: SegmentsTopic, setting: str, value: str
) -> None:
    """The error names the setting, what it is and what to do, for agents and readers alike."""
    set_config(broker.bootstrap, topic.name, {setting: value})

    with pytest.raises(SegmentsTopicUnfit, match=f"{setting} is {value}: set it to") as refused:
        ensure_topic(config, name=topic.name, partitions=PARTITIONS)
    with pytest.raises(SegmentsTopicUnfit):
        check_topic(config, name=topic.name)

    assert refused.value.settings == (setting,)


def test_a_topic_with_another_number_of_partitions_is_refused(
    config: dict[str, str], topic: SegmentsTopic
) -> None:
    """With partitions added a log's records would be in two of them."""
    with pytest.raises(SegmentsTopicUnfit, match=f"partitions is {PARTITIONS}"):
        ensure_topic(config, name=topic.name, partitions=PARTITIONS + 1)


@pytest.mark.parametrize("replication", [1, 2, 3])
def test_what_a_topic_is_made_with_has_no_fault(replication: int) -> None:
    """`settings` and `faults` agree for clusters of any size."""
    made = TopicFound(
        partition_count=16,
        replication=replication,
        brokers=replication,
        entries=dict(settings(replication)),
    )

    assert list(faults(made, partitions=16)) == []


def test_one_acknowledgement_of_three_replicas_and_a_single_copy_are_faults() -> None:
    """A record that one disk has is not there: neither min.insync.replicas=1 nor replication 1 will do."""
    weak = {**settings(3), "min.insync.replicas": "1"}
    three = TopicFound(partition_count=16, replication=3, brokers=3, entries=weak)
    single = TopicFound(partition_count=16, replication=1, brokers=3, entries=settings(1))

    assert [each.setting for each in faults(three)] == ["min.insync.replicas"]
    assert [each.setting for each in faults(single)] == ["replication"]


def test_settings_that_the_broker_does_not_tell_are_faults() -> None:
    """What is not known is not fit."""
    silent = TopicFound(partition_count=1, replication=1, brokers=1, entries={})

    assert {each.setting for each in faults(silent)} == {
        "cleanup.policy",
        "delete.retention.ms",
        "min.compaction.lag.ms",
        "unclean.leader.election.enable",
    }


def test_what_many_threads_append_a_replay_and_a_follower_have_alike(
    config: dict[str, str], topic: SegmentsTopic, appender: KafkaAppender
) -> None:
    """Eight threads, each a log of its own: offsets are right, and every table comes to the same digests."""
    logs = _logs(topic, THREADS)
    table, follower = _following(config, topic)

    def work(log: LogId) -> None:
        for number in range(SEGMENTS_EACH):
            _copy(appender, log, number)

    with follower:
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(work, logs))
        assert follower.wait_past(topic_ends(config, topic), DEADLINE_S)
        assert follower.lag() is not None
    replayed = replay(config, topic)

    assert _digests(table) == _digests(replayed)
    views = [view for log in logs if (view := replayed.view(log)) is not None]
    assert [len(list(view.segments())) for view in views] == [SEGMENTS_EACH] * THREADS


def test_an_appended_record_is_where_append_said(
    config: dict[str, str], topic: SegmentsTopic, appender: KafkaAppender
) -> None:
    """The offset that `append` returns is the one at which every reader finds the record."""
    [log] = _logs(topic, 1)
    record = segment(1, 0, 10, log=log, state=SegmentState.COPY_STARTED)

    offset = _append(appender, record)

    view = replay(config, topic).view(log)
    assert view is not None
    assert [each.metadata_offset for each in view.segments()] == [offset]


def test_what_an_agent_publishes_comes_back_to_its_own_table(
    config: dict[str, str], topic: SegmentsTopic, appender: KafkaAppender
) -> None:
    """Appender, follower and table together are the `Metadata` that a copy goes through."""
    [log] = _logs(topic, 1)
    metadata = Metadata(empty_table(topic, topic_ends(config, topic)), appender, deadline_s=DEADLINE_S)
    finished = segment(1, 0, 10, log=log)

    with Follower(config, topic, metadata.applied, positions={}):
        published = [
            metadata.publish_log(log_record(0, log=log)),
            metadata.publish(replace(finished, state=SegmentState.COPY_STARTED)),
            metadata.publish(finished),
        ]

    assert published == [0, 1, 2]
    assert metadata.unfinished(log) == ()


def test_a_replay_says_how_far_it_is(
    config: dict[str, str], topic: SegmentsTopic, appender: KafkaAppender
) -> None:
    """The last word of `progress` is that all is read."""
    _append(appender, log_record(0, log=_logs(topic, 1)[0]))
    heard: list[tuple[int, int]] = []

    replay(config, topic, progress=lambda done, total: heard.append((done, total)))

    assert heard[-1] == (1, 1)


def test_a_follower_hears_another_writer_and_outlives_the_broker(
    config: dict[str, str], broker: LocalCluster, topic: SegmentsTopic
) -> None:
    """Restarted beneath it, the broker goes on being followed, from where it was, nothing twice."""
    log = _logs(topic, 1)[0]
    offsets: list[int] = []

    def apply(_: int, records: Sequence[TopicRecord]) -> None:
        offsets.extend(each.offset for each in records)

    with Follower(config, topic, apply, positions={}) as follower:
        assert follower.wait_caught_up(DEADLINE_S)
        with KafkaAppender(config, topic) as other:
            first = _append(other, log_record(0, log=log))
        assert becomes_true(lambda: offsets == [first], deadline_s=DEADLINE_S)
        broker.stop()
        wait_until(
            lambda: follower.trouble is not None, name="follower", wanted="trouble", deadline_s=DEADLINE_S
        )
        assert follower.failure is None
        broker.restart()
        with KafkaAppender(config, topic) as other:
            second = _append(other, log_record(1, log=log, based_on=first))
        assert becomes_true(lambda: offsets == [first, second], deadline_s=DEADLINE_S)
        assert follower.is_caught_up


def test_a_position_that_the_topic_never_had_ends_the_following(
    config: dict[str, str], topic: SegmentsTopic
) -> None:
    """Positions past the end are of a topic that was, or of a leader that lost records: no reset skips on."""
    with Follower(config, topic, lambda *_: None, positions={0: 1000}) as follower:
        with pytest.raises(FollowingEnded, match="ends at 0, and was read up to 1000"):
            follower.wait_caught_up(DEADLINE_S)

        assert not follower.is_caught_up


def test_a_topic_made_anew_ends_the_following(
    config: dict[str, str], broker: LocalCluster, topic: SegmentsTopic
) -> None:
    """Another topic of the same name is another topic, even where the positions would fit."""
    _, follower = _following(config, topic, look_again_s=0.0)
    with follower:
        assert follower.wait_caught_up(DEADLINE_S)
        delete_topic(broker.bootstrap, topic.name)
        ensure_topic(config, name=topic.name, partitions=PARTITIONS)

        wait_until(
            lambda: follower.failure is not None, name="follower", wanted="its end", deadline_s=DEADLINE_S
        )

    assert isinstance(follower.failure, FollowingEnded)
    assert "made anew" in str(follower.failure)


def test_what_goes_wrong_in_applying_is_the_followers_failure(
    config: dict[str, str], topic: SegmentsTopic, appender: KafkaAppender
) -> None:
    """The thread does not die with a defect to itself: it says so, and counts as not caught up."""

    def apply(_: int, records: Sequence[TopicRecord]) -> None:
        raise ZeroDivisionError(f"at {records[0].offset}")

    _append(appender, log_record(0, log=_logs(topic, 1)[0]))

    with (
        Follower(config, topic, apply, positions={}) as follower,
        pytest.raises(ZeroDivisionError, match="at 0"),
    ):
        follower.wait_caught_up(DEADLINE_S)

    assert not follower.is_caught_up


def test_a_record_without_an_answer_is_not_known_to_be_there(
    config: dict[str, str], broker: LocalCluster, topic: SegmentsTopic
) -> None:
    """A paused broker: the append ends within its time, with an error that claims neither."""
    with KafkaAppender(config, topic, delivery_timeout_s=1.5) as appender:
        log = _logs(topic, 1)[0]
        _append(appender, log_record(0, log=log))
        broker.pause()
        try:
            with pytest.raises(AppendUncertain, match="it is not known whether"):
                _append(appender, log_record(1, log=log))
        finally:
            broker.resume()


def test_a_record_that_is_too_large_is_known_not_to_be_there(
    topic: SegmentsTopic, appender: KafkaAppender
) -> None:
    """Refused before it is sent, and said so; the appender goes on."""
    [log] = _logs(topic, 1)

    with pytest.raises(AppendRefused, match="too large"):
        appender.append(log, log_key(log), b"{" + bytes(2_000_000) + b"}")

    assert _append(appender, log_record(0, log=log)) == 0


def test_an_appender_that_is_closed_refuses(config: dict[str, str], topic: SegmentsTopic) -> None:
    """A worker that comes late hears that its record is not there."""
    appender = KafkaAppender(config, topic)
    appender.close()

    with pytest.raises(AppendRefused, match="stopping"):
        _append(appender, log_record(0, log=_logs(topic, 1)[0]))

    assert not [each for each in threading.enumerate() if each.name == "metadata-append"]


def test_compaction_leaves_the_digests_as_they_were(config: dict[str, str], broker: LocalCluster) -> None:
    """Kafka's own cleaner takes the older states of each key; a replay after it has the digests from before,
    up to a tail that ends in what was a transaction and leaves no record."""
    name = next(names)
    create_topic(
        broker.bootstrap,
        name,
        config={
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "3600000",
        },
    )
    found = KafkaCluster(config, monotonic_s=time.monotonic)
    topic = SegmentsTopic(
        name=name,
        topic_id=found.describe_topics([name])[name].topic_id,  # type: ignore[union-attr]
        partition_count=1,
        cluster_id=found.identity().cluster_id,
        delete_retention_ms=3_600_000,
        min_compaction_lag_ms=3_600_000,
    )
    logs = _logs(topic, 2)
    with KafkaAppender(config, topic) as appender:
        for log in logs:
            for number in range(10):
                _copy(appender, log, number)
        gone = segment(3, 30, 40, log=logs[0])
        for state in (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED):
            _append(appender, replace(gone, state=state))
        appender.append(logs[0], segment_key(logs[0], gone.segment_id), None)
        before = _digests(replay(config, topic))

        counts: list[int] = []

        def is_compacted() -> bool:
            for log in logs:  # a record more closes the segment before it, so that it may be cleaned
                _append(appender, segment(99, 990, 1000, log=log, state=SegmentState.COPY_STARTED))
            counts.append(_record_count(config, topic))
            return counts[-1] < 30

        assert becomes_true(is_compacted, deadline_s=DEADLINE_S), counts
        for log in logs:
            _append(appender, segment(99, 990, 1000, log=log, state=SegmentState.DELETE_STARTED))
            _append(appender, segment(99, 990, 1000, log=log, state=SegmentState.DELETE_FINISHED))
    stranger = transactional(broker, name, f"{name}-stranger")
    stranger.begin()
    stranger.send(b"never", key=b"nobody's")
    stranger.abort()

    after = replay(config, topic)

    assert _digests(after) == before
    [table] = after.partitions()
    assert table.caught_up_to(topic_ends(config, topic)[0])


def _record_count(config: dict[str, str], topic: SegmentsTopic) -> int:
    """How many records are left in the topic."""
    seen: list[int] = []
    ends = topic_ends(config, topic)

    def apply(_: int, records: Sequence[TopicRecord]) -> None:
        seen.append(len(records))

    with Follower(config, topic, apply, positions={}) as follower:
        assert follower.wait_past(ends, DEADLINE_S)
    return sum(seen)
