"""What an agent sees of its broker is in `__seawall_audit`: all of it, once, in numbers without a hole.

SEAWALL_EVIDENCE_KILLS and SEAWALL_EVIDENCE_SEED make the kills more, and others.
"""

from __future__ import annotations

import logging
import os
import random
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as ClientPartition

from rules.events import (
    BrokerStarted,
    CopyFinished,
    CopyStarted,
    Event,
    GapRecorded,
    Heartbeat,
    LeadershipClaimed,
    LogBaseline,
    LogStartAdvanced,
    ReplicaRemoved,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
    TierState,
    Truncated,
)
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.cases_tiered import TIERED
from tests.faults.agents import Agent, agent_beside
from tests.faults.clean import assert_clean
from tests.faults.ledger import Ledger
from tests.faults.test_whole_system import replayed, settings_of
from tests.seawall.agent.told import Told, holes, told
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter
from tiering.segments.records import LogRecord

KILLED = logging.getLogger(__name__)  # shown by pytest --log-cli-level=INFO
DEADLINE_S = 60.0
KILLS = int(os.environ.get("SEAWALL_EVIDENCE_KILLS", "8"))
MANY_KILLS = 50
SEED = int(os.environ.get("SEAWALL_EVIDENCE_SEED", "7"))
PARTITIONS = 3
EVERY_SECOND = "observe_every_s = 1\nheartbeat_every_s = 1\n"


def observe_only(broker: LocalCluster) -> str:
    return f'[kafka]\nbootstrap = "{broker.bootstrap}"\n[agent]\nobserve_only = true\n{EVERY_SECOND}'


@pytest.fixture
def since_ms() -> int:
    """Before any run of this test's agent."""
    return time.time_ns() // 1_000_000


@pytest.fixture
def topic(broker: LocalCluster) -> str:
    return f"evidence-{uuid.uuid4().hex[:8]}"


@pytest.fixture(params=["observe only", "with an uploader"])
def agent(
    request: pytest.FixtureRequest, broker: LocalCluster, topic: str, tmp_path: Path, since_ms: int
) -> Iterator[Agent]:
    """An agent without a bucket, and one with."""
    settings, s3 = observe_only(broker), None
    if request.param == "with an uploader":
        bucket: LocalBucket = request.getfixturevalue("bucket")
        s3 = bucket.address
        settings = settings_of(broker, s3.endpoint_url, bucket.name, topic, topic) + EVERY_SECOND
    with agent_beside(broker, tmp_path, settings, s3) as made:
        yield made
    if s3 is not None:  # deleted records are recorded as a gap; all may be deleted before anything is copied
        assert_clean(broker, s3, topic, prefix=topic, may_have_gaps=True, may_be_empty=True)


def closed_on_disk(broker: LocalCluster, topic: str) -> set[tuple[int, int, int | None, int]]:
    """Partition, range and size of each closed segment that is there."""
    surveyor = Surveyor(broker.log_dirs(1), topics=TopicFilter(include=(topic,)), now_ns=lambda: 0)
    return {
        (partition.partition, each.base_offset, each.end_offset, each.size_bytes)
        for partition, local in surveyor.survey().live.items()
        for each in local.closed_segments
    }


def closed_as_told(found: Told, topic: str) -> list[tuple[int, int, int | None, int]]:
    return [
        (each.log.partition, each.base_offset, each.end_offset, each.size_bytes)
        for each in found.of(SegmentClosed, topic)
    ]


def delete_records(broker: LocalCluster, topic: str, before: dict[int, int]) -> None:
    admin = kafka.admin_client(broker.bootstrap)
    asked = [ClientPartition(topic, partition, offset) for partition, offset in before.items()]
    for done in admin.delete_records(asked).values():
        done.result()


def test_a_topics_life_is_told_by_an_agent_with_and_without_a_bucket(
    broker: LocalCluster, topic: str, agent: Agent, since_ms: int
) -> None:
    """Created, rolled, shortened, deleted: each at the topic, with a heartbeat at either end of the run."""

    def until(kind: type[Event], count: int) -> Told:
        found: list[Told] = []

        def is_told() -> bool:
            found[:] = [told(broker, since_ms=since_ms)]
            return len(found[0].of(kind, topic)) >= count

        wait_until(is_told, name=topic, wanted=f"{count} {kind.kind}", deadline_s=DEADLINE_S)
        return found[0]

    produce.create_topic(broker, topic)
    produce.Writer(broker, topic, "evidence").send_all(produce.texts(400))
    on_disk = closed_on_disk(broker, topic)
    assert len(on_disk) >= 3
    found = until(SegmentClosed, len(on_disk))
    assert sorted(closed_as_told(found, topic)) == sorted(on_disk)

    [_, (_, second, _, _), *_] = sorted(on_disk)
    delete_records(broker, topic, {0: second + 1})
    until(SegmentDeletedLocal, 1)
    kafka.delete_topic(broker.bootstrap, topic)
    until(ReplicaRemoved, 1)
    page = agent.page("metrics").decode()
    assert agent.process.stop(grace_s=30.0)

    found = told(broker, since_ms=since_ms)
    assert holes(found) == []
    [run] = found.runs
    assert [run[0].kind, run[-1].kind] == [Heartbeat.kind, Heartbeat.kind]
    assert sum(each.kind == Heartbeat.kind for each in run) >= 3
    [started] = found.of(ReplicaStarted, topic)
    assert (started.appearance.value, started.local_start) == ("created", 0)
    assert len(found.of(LogBaseline, topic)) == 1
    [moved] = found.of(LogStartAdvanced, topic)
    assert (moved.old_start, moved.new_start) == (0, second + 1)
    [deleted] = found.of(SegmentDeletedLocal, topic)
    assert (deleted.base_offset, deleted.end_offset) == (0, second)
    assert [each.replica_removal.value for each in found.of(ReplicaRemoved, topic)] == ["renamed_delete"]
    for name in ('seen{observer="log_dirs",what="replicas"}', 'looks_total{observer="log_dirs"}'):
        assert f"seawall_observer_{name}" in page
    if "seawall_log_frontier_offset" not in page:  # it has no uploader
        said = {type(each) for each in found.acts}
        assert said.isdisjoint({CopyStarted, CopyFinished, LeadershipClaimed, TierState})


def test_a_broker_that_dies_is_waited_for_and_nothing_is_made_of_it(
    broker: LocalCluster, topic: str, tmp_path: Path, since_ms: int
) -> None:
    """kill -9 of the broker and its start: a doubt, no restart, no loss that never was; then it goes on."""
    produce.create_topic(broker, topic)
    with agent_beside(broker, tmp_path, observe_only(broker), None) as agent:
        produce.Writer(broker, topic, "before").send_all(produce.texts(200))
        broker.kill(1)
        wait_until(
            lambda: "evidence" in agent.probe("readyz").get("doubts", {}),
            name="the agent",
            wanted="a doubt on its events' way to Kafka",
            deadline_s=DEADLINE_S,
        )
        is_down = b'seawall_observer_seen{observer="broker",what="running"} 0.0'
        wait_until(
            lambda: is_down in agent.page("metrics"),
            name="the agent",
            wanted="to have seen that nobody holds the log dirs",
            deadline_s=DEADLINE_S,
        )
        assert agent.probe("healthz")["ok"], "nothing that a restart would mend"
        broker.restart(1, deadline_s=DEADLINE_S)
        produce.Writer(broker, topic, "after").send_all(produce.texts(200))
        wait_until(
            lambda: (
                agent.is_ready
                and closed_on_disk(broker, topic)
                == set(closed_as_told(told(broker, since_ms=since_ms), topic))
            ),
            name="the agent",
            wanted="all that was closed, before and after, told",
            deadline_s=DEADLINE_S,
        )
        assert agent.process.stop(grace_s=30.0)

    found = told(broker, since_ms=since_ms)
    assert holes(found) == []
    kinds = {type(each) for each in found.acts if getattr(each, "topic", None) == topic}
    first, again = (each for each in found.acts if isinstance(each, BrokerStarted))
    assert (first.is_clean, again.is_clean) == (None, False)
    assert kinds.isdisjoint({SegmentDeletedLocal, LogStartAdvanced, Truncated, ReplicaRemoved})
    assert len(found.of(ReplicaStarted, topic)) == 1


def test_a_local_deletion_beside_kip_405_moves_no_logs_start(
    kip405_broker: LocalCluster, topic: str, tmp_path: Path, since_ms: int
) -> None:
    """What is gone from this disk is in the other tier: the start stands, until DeleteRecords moves it."""
    broker = kip405_broker
    with agent_beside(broker, tmp_path, observe_only(broker), None) as agent:
        produce.create_topic(broker, topic, config=TIERED | {"local.retention.bytes": "-2"})
        produce.Writer(broker, topic, "evidence").send_all(produce.texts(300))
        closed = closed_on_disk(broker, topic)
        assert len(closed) > 2
        wait_until(
            lambda: closed == set(closed_as_told(told(broker, since_ms=since_ms), topic)),
            name=topic,
            wanted="every closed segment told",
            deadline_s=DEADLINE_S,
        )
        kafka.set_config(broker.bootstrap, topic, TIERED)
        wait_until(
            lambda: len(told(broker, since_ms=since_ms).of(SegmentDeletedLocal, topic)) == len(closed),
            name=topic,
            wanted="every one of them gone from this disk, and said to be",
            deadline_s=DEADLINE_S,
        )
        assert told(broker, since_ms=since_ms).of(LogStartAdvanced, topic) == []
        delete_records(broker, topic, {0: 100})
        wait_until(
            lambda: bool(told(broker, since_ms=since_ms).of(LogStartAdvanced, topic)),
            name=topic,
            wanted="the start that was asked for",
            deadline_s=DEADLINE_S,
        )
        assert agent.process.stop(grace_s=30.0)

    found = told(broker, since_ms=since_ms)
    assert holes(found) == []
    [moved] = found.of(LogStartAdvanced, topic)
    assert (moved.old_start, moved.new_start) == (0, 100)
    assert moved.local_start is not None
    assert moved.local_start > 200


@pytest.mark.parametrize(
    ("kills", "uploads"),
    [
        (KILLS, False),
        pytest.param(MANY_KILLS, False, marks=pytest.mark.long),
        pytest.param(MANY_KILLS, True, marks=pytest.mark.long),
    ],
)
def test_whoever_is_killed_whenever_it_is_every_event_is_told_once_and_no_number_is_missing(
    kills: int,
    uploads: bool,
    broker: LocalCluster,
    bucket: LocalBucket,
    topic: str,
    tmp_path: Path,
    since_ms: int,
) -> None:
    """kill -9 of the agent in a steady stream of rolls and of deletions by request: at random points, from
    its very start on, and just when it has written what it found, or put it into the spool. One that uploads
    has told each claim and each gap that is on record, too."""
    chance = random.Random(SEED)
    produce.create_topic(broker, topic, partitions=PARTITIONS)
    settings, s3 = observe_only(broker), None
    if uploads:
        s3 = bucket.address
        settings = settings_of(broker, s3.endpoint_url, bucket.name, topic, topic) + EVERY_SECOND
    agent = Agent(tmp_path / "agent", broker, 1, settings, s3)
    trimmed = dict.fromkeys(range(PARTITIONS), 0)
    agent.start()
    agent.wait_until_ready()  # it has seen the topic while that was empty
    with Ledger(broker.bootstrap, topic, PARTITIONS) as ledger:
        try:
            for number in range(kills):
                if number % 4:
                    agent.wait_until_ready()
                assert ledger.grows_by(chance.randint(1, 700), deadline_s=DEADLINE_S)
                if number % 3 == 2:
                    partition = chance.randrange(PARTITIONS)
                    trimmed[partition] += chance.randint(1, 50)
                    delete_records(broker, topic, {partition: trimmed[partition]})
                if number % 2:
                    _wait_until_written(tmp_path / "agent" / "state", chance)
                agent.kill()
                agent.start()
            agent.wait_until_ready()
            promised = ledger.close()
            found = _at_rest(broker, topic, agent, trimmed, since_ms)
        finally:
            agent.kill()
            agent.release()

    assert holes(found) == []
    assert len(found.runs) > kills // 2, "runs that were killed have told something"
    closed = closed_as_told(found, topic)
    assert len(closed) == len(set(closed)), "each closed segment is told once"
    for partition in range(PARTITIONS):
        ranges = sorted(each[1:3] for each in closed if each[0] == partition)
        assert ranges[0][0] == 0
        assert all(end == base for (_, end), (base, _) in pairwise(ranges)), "and none is passed over"
        moves = [each for each in found.of(LogStartAdvanced, topic) if each.log.partition == partition]
        starts = [0, *(each.new_start for each in moves)]
        assert [each.old_start for each in moves] == starts[:-1]
        assert starts[-1] == trimmed[partition]
    assert len(promised) > kills * 100
    if uploads:
        records = log_records(broker, topic)
        claims = sorted((each.log, each.leader_epoch) for each in found.of(LeadershipClaimed, topic))
        gaps = sorted(each.event_id for each in found.of(GapRecorded, topic))
        assert claims == sorted((each.log, each.claim_epoch) for each in records)
        assert gaps == sorted(gap.event_id for each in records for gap in each.gaps)
        assert_clean(broker, bucket, topic, prefix=topic, may_have_gaps=True)
    again = len(found.envelopes) - len(found.acts)
    what = "%s runs, %s events, %s of them told again by a later run, %s deliveries"
    KILLED.info(what, len(found.runs), len(found.envelopes), again, found.deliveries)


def log_records(broker: LocalCluster, topic: str) -> list[LogRecord]:
    """What the topic of metadata says of each log of the topic."""
    table = replayed(broker)
    views = [view for log in table.logs() if (view := table.view(log)) is not None]
    found = [view.record for view in views if view.record is not None and view.record.topic == topic]
    assert len(found) == PARTITIONS
    return found


def _wait_until_written(state: Path, chance: random.Random) -> None:
    """Return at the moment when the agent writes to one of these; polled without a pause, to be in time."""
    file = state / chance.choice(("disk-observer.sqlite-wal", "events.sqlite-wal"))
    before, last_moment = file.stat().st_mtime_ns, time.monotonic() + DEADLINE_S
    while file.stat().st_mtime_ns == before:
        assert time.monotonic() < last_moment, f"{file.name} is not written to any more"


def _at_rest(broker: LocalCluster, topic: str, agent: Agent, trimmed: dict[int, int], since_ms: int) -> Told:
    """All that was told once the agent has seen the end of it, and has ended."""

    def is_told() -> bool:
        found = told(broker, since_ms=since_ms)
        starts = dict.fromkeys(trimmed, 0)
        starts |= {each.log.partition: each.new_start for each in found.of(LogStartAdvanced, topic)}
        return starts == trimmed and closed_on_disk(broker, topic) <= set(closed_as_told(found, topic))

    wait_until(is_told, name=topic, wanted="all that is on disk told", deadline_s=DEADLINE_S)
    assert agent.process.stop(grace_s=30.0)
    return told(broker, since_ms=since_ms)
