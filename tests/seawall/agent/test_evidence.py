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
from pathlib import Path

import pytest

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
from tests.seawall.agent.stream import (
    DEADLINE_S,
    EVERY_SECOND,
    PARTITIONS,
    Stream,
    closed_as_told,
    closed_on_disk,
    delete_records,
    observe_only,
    wait_until_written,
)
from tests.seawall.agent.told import Told, holes, told
from tiering.segments.records import LogRecord

KILLED = logging.getLogger(__name__)  # shown by pytest --log-cli-level=INFO
KILLS = int(os.environ.get("SEAWALL_EVIDENCE_KILLS", "8"))
MANY_KILLS = 50
SEED = int(os.environ.get("SEAWALL_EVIDENCE_SEED", "7"))


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
    agent.start()
    agent.wait_until_ready()  # it has seen the topic while that was empty
    with Ledger(broker.bootstrap, topic, PARTITIONS) as ledger:
        stream = Stream(broker=broker, topic=topic, ledger=ledger, chance=chance)
        try:
            for number in range(kills):
                if number % 4:
                    agent.wait_until_ready()
                stream.goes_on(is_trimmed=number % 3 == 2)
                if number % 2:
                    wait_until_written(tmp_path / "agent" / "state", chance)
                agent.kill()
                agent.start()
            agent.wait_until_ready()
            promised = ledger.close()
            found = stream.told_at_rest(agent, since_ms)
        finally:
            agent.kill()
            agent.release()

    assert holes(found) == []
    assert len(found.runs) > kills // 2, "runs that were killed have told something"
    stream.assert_told(found)
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
