"""The expiry of a whole agent: whose logs it looks after, how far it goes, what one log's trouble does."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import boto3
import pytest

from seawall.local.bucket import LocalBucket
from tests.tiering.retention.agent import BROKER, METADATA, PARTITIONS, Agent
from tests.tiering.retention.world import DAY_MS, EPOCH, HOUR_MS
from tests.tiering.segments.strategies import LOG, OTHER_LOG
from tests.tiering.store.contract import checksum_of
from tiering.cluster.interface import TopicPartition
from tiering.retention.expiry import Advance
from tiering.retention.remote import Presence, Remove
from tiering.retention.remote_policy import TOPIC_GRACE_MS
from tiering.retention.topic_watch import GONE_AFTER_MS, TopicWatch
from tiering.segments.keys import metadata_partition
from tiering.segments.records import Hold, SegmentState
from tiering.store.content import InMemory
from tiering.store.patient import PatientStore
from tiering.store.retry import Retrier, RetryPolicy
from tiering.store.s3 import S3Store, S3StoreSettings

ORDERS = TopicPartition("orders", LOG.partition)
PAYMENTS = TopicPartition("payments", OTHER_LOG.partition)


@pytest.fixture
def agent() -> Agent:
    """Two logs, led here, each with three copies of which two have expired."""
    made = Agent()
    for log in (LOG, OTHER_LOG):
        made.claim(log)
        for base in (0, 100):
            made.copy(log, base, base + 100)
        made.copy(log, 200, 300, age_ms=0)
    return made


def test_the_start_moves_and_a_grace_later_the_segments_go(agent: Agent) -> None:
    """A run moves each start as far as it may; one a grace later removes what that freed, and no more."""
    first = agent.retention.run_once()

    assert (agent.log_start(LOG), agent.log_start(OTHER_LOG)) == (200, 200)
    assert agent.requests == 0
    assert {status.reason for status in first.values()} == {"grace"}

    agent.now_ms += DAY_MS
    second = agent.retention.run_once()

    assert (agent.marked(LOG), agent.marked(OTHER_LOG)) == ({0, 100}, {0, 100})
    assert {(status.state, status.removed_segments) for status in second.values()} == {("kept", 2)}
    before = agent.requests
    agent.retention.run_once()
    assert agent.requests == before


def test_a_plan_is_a_value_and_touches_nothing(agent: Agent) -> None:
    """What a run would begin with, log by log, printable; the topic and the bucket are as they were."""
    before = {number: len(records) for number, records in agent.records.items()}

    plans = agent.retention.plan()

    assert {number: len(records) for number, records in agent.records.items()} == before
    assert {plan.topic: type(plan.act) for plan in plans} == {"orders": Advance, "payments": Advance}
    [lines] = [list(plan.lines()) for plan in plans if plan.log == LOG]
    assert lines[0].endswith("the start moves from 0 to 200")
    assert [line for line in lines if "frees [0, 100) 10000 bytes, by time" in line]

    agent.retention.run_once()
    agent.now_ms += DAY_MS
    removal = next(plan for plan in agent.retention.plan() if plan.log == LOG)
    assert isinstance(removal.act, Remove)
    assert removal.removes
    assert "removes [0, 100) 10000 bytes" in "\n".join(removal.lines())


def test_what_another_broker_leads_is_left_to_it(agent: Agent) -> None:
    """No turn, no status, nothing written."""
    agent.answers.led_by[ORDERS] = (BROKER + 1, EPOCH)

    taken = agent.retention.run_once()

    assert set(taken) == {OTHER_LOG}
    assert agent.log_start(LOG) == 0


def test_a_leader_of_an_epoch_that_it_has_not_claimed_keeps(agent: Agent) -> None:
    """T6: between election and claim nobody expires."""
    agent.answers.led_by[ORDERS] = (BROKER, EPOCH + 1)

    taken = agent.retention.run_once()

    assert (taken[LOG].state, taken[LOG].reason) == ("kept", "not_leading")
    assert agent.log_start(LOG) == 0


def test_one_logs_trouble_ends_no_other_logs_turn(agent: Agent) -> None:
    """T7: a store that fails for one log is that log's status and back-off; the other's segments go."""
    agent.retention.run_once()
    agent.now_ms += DAY_MS
    agent.fail_on = LOG.topic_id

    taken = agent.retention.run_once()

    assert (taken[LOG].state, taken[LOG].reason, taken[LOG].failures) == ("failed", "RuntimeError", 1)
    assert agent.marked(OTHER_LOG) == {0, 100}
    asked = agent.requests
    agent.retention.run_once()
    assert agent.requests == asked, "it is not asked again before its time"

    agent.fail_on = None
    agent.now_ms += HOUR_MS
    taken = agent.retention.run_once()
    assert agent.marked(LOG) == {0, 100}
    assert taken[LOG].failures == 0


def test_a_table_that_has_not_read_to_the_end_keeps(agent: Agent) -> None:
    """A hold that is in the topic, and that our table has not come to, stops both acts."""
    view = agent.metadata.view(LOG)
    assert view is not None
    number = metadata_partition(LOG, PARTITIONS)
    agent.append(LOG, b"unread", b"{}", is_read=False)

    taken = agent.retention.run_once()

    assert (taken[LOG].state, taken[LOG].reason) == ("kept", "table_doubted")
    agent.metadata.applied(number, [agent.records[number][-1]])
    agent.retention.run_once()
    assert agent.log_start(LOG) == 200


def _without_removal(policy: dict[str, Any]) -> dict[str, Any]:
    return {**policy, "topics": {"*": {**policy["topics"]["*"], "remote_deletion": False}}}


def test_where_the_policy_is_off_nobody_is_asked_where_the_topic_ends(agent: Agent) -> None:
    """Topics that are there, and of which nothing may go, cost no request; nor does forgetting nothing."""
    agent.policy = _without_removal(agent.policy)
    asked: list[int] = []

    def ends(partition: int) -> int:
        asked.append(partition)
        return len(agent.records[partition])

    agent.answers.ends = ends
    taken = agent.retention.run_once()

    assert {(status.state, status.reason) for status in taken.values()} == {("kept", "off")}
    assert (agent.log_start(LOG), agent.log_start(OTHER_LOG)) == (0, 0)
    assert asked == []


def test_what_was_removed_is_forgotten_though_the_policy_is_off_by_now(agent: Agent) -> None:
    """The records of what went long ago leave the topic, whatever may go from here on."""
    agent.retention.run_once()
    agent.now_ms += DAY_MS
    agent.retention.run_once()
    before = sum(1 for _ in agent.retention.table.removed(LOG))
    agent.policy = _without_removal(agent.policy)

    agent.now_ms += 8 * DAY_MS
    agent.retention.run_once()

    assert (before, sum(1 for _ in agent.retention.table.removed(LOG))) == (2, 0)


def test_an_end_that_nobody_tells_is_a_failure(agent: Agent) -> None:
    """Silence about where the topic ends is never taken for its end."""
    agent.answers.silent.add(METADATA)

    taken = agent.retention.run_once()

    assert {status.reason for status in taken.values()} == {"MetadataEndUnknown"}
    assert agent.log_start(LOG) == 0
    assert all("table_doubted" in plan.lines().__next__() for plan in agent.retention.plan())


def test_the_blast_limit_outlives_the_process(agent: Agent) -> None:
    """Four segments an hour: what went before a restart counts, and the fifth waits for the hour to pass."""
    agent.now_ms += 30 * DAY_MS  # so that the youngest copy has expired, too
    for base in range(300, 900, 100):
        agent.copy(LOG, base, base + 100)
    agent.change(LOG, log_start=900, occurred_at_ms=agent.now_ms - 2 * DAY_MS)
    agent.answers.led_by[PAYMENTS] = (BROKER + 1, EPOCH)

    taken = agent.retention.run_once()
    assert (taken[LOG].reason, taken[LOG].removed_segments) == ("blast_limit", 4)
    agent.restart()
    taken = agent.retention.run_once()
    assert (taken[LOG].reason, taken[LOG].removed_segments) == ("blast_limit", 0)

    agent.now_ms += HOUR_MS
    taken = agent.retention.run_once()
    assert taken[LOG].removed_segments == 4
    assert len(agent.marked(LOG)) == 8


def test_each_request_waits_for_its_turn(agent: Agent) -> None:
    """Three objects a segment, each paced."""
    agent.retention.run_once()
    agent.now_ms += DAY_MS
    agent.retention.run_once()

    assert agent.requests == 12
    assert agent.paced == 12


def _run_for(agent: Agent, wait_ms: int) -> None:
    agent.retention.run_once()
    agent.now_ms += wait_ms
    agent.retention.run_once()


def test_a_deleted_topic_is_recorded_and_removed_by_its_id_alone(agent: Agent) -> None:
    """First the record, then the grace, then all that belongs to the id, then a tombstone; others stay."""
    del agent.answers.topic_ids["orders"]
    agent.answers.led_by[PAYMENTS] = (BROKER + 1, EPOCH)

    taken = agent.retention.run_once()
    assert taken[LOG].reason == "topic_unknown", "one look is not enough"
    agent.now_ms += GONE_AFTER_MS
    agent.retention.run_once()
    view = agent.metadata.view(LOG)
    assert view is not None
    assert view.record is not None
    assert view.record.topic_deleted_at_ms == agent.now_ms
    assert agent.requests == 0

    agent.now_ms += TOPIC_GRACE_MS
    taken = agent.retention.run_once()
    assert agent.marked(LOG) == {0, 100, 200}
    assert agent.marked(OTHER_LOG) == set()

    agent.now_ms += 7 * DAY_MS
    _run_for(agent, 0)
    assert agent.retention.statuses()[LOG].state == "forgotten"
    after = agent.metadata.view(LOG)
    assert after is None or after.record is None
    assert agent.retention.run_once() == {}


def test_a_topic_made_anew_keeps_what_is_its_own(agent: Agent) -> None:
    """The name stands for another id: the old id's tier goes in time, nothing of the new one does."""
    agent.answers.topic_ids["orders"] = OTHER_LOG.topic_id
    agent.answers.led_by[PAYMENTS] = (BROKER + 1, EPOCH)

    agent.retention.run_once()
    _run_for(agent, GONE_AFTER_MS)
    _run_for(agent, TOPIC_GRACE_MS)

    assert agent.marked(LOG) == {0, 100, 200}
    assert agent.marked(OTHER_LOG) == set()


def test_a_deleted_topics_log_is_for_one_agent(agent: Agent) -> None:
    """The one beside the leader of the metadata partition."""
    del agent.answers.topic_ids["orders"]
    number = metadata_partition(LOG, PARTITIONS)
    agent.answers.led_by[TopicPartition(METADATA, number)] = (BROKER + 1, 0)

    assert LOG not in agent.retention.run_once()


def test_gone_is_said_after_a_while_of_missing_alone() -> None:
    """An answer that it is there, or no answer, makes the time begin again."""
    agent = Agent()
    watch = TopicWatch(agent.answers, now_ms=lambda: agent.now_ms)

    def look(wait_ms: int = 0) -> Presence:
        agent.now_ms += wait_ms
        return watch.presence("orders", LOG.topic_id)

    assert look() is Presence.THERE
    topic_id = agent.answers.topic_ids.pop("orders")
    assert (look(), look(GONE_AFTER_MS - 1)) == (Presence.UNKNOWN, Presence.UNKNOWN)
    agent.answers.silent.add("orders")
    assert look() is Presence.UNKNOWN
    agent.answers.silent.clear()
    assert (look(1), look(GONE_AFTER_MS)) == (Presence.UNKNOWN, Presence.GONE)
    agent.answers.topic_ids["orders"] = topic_id
    assert look() is Presence.THERE


def test_the_uploader_leaves_a_half_removed_copy_to_retention(agent: Agent) -> None:
    """A hold that comes between DELETE_STARTED and the markers is asked for by retention alone."""
    view = agent.metadata.view(LOG)
    assert view is not None
    first = agent.retention.table.segment(LOG, view.finished.segment_id(0))
    assert first is not None
    agent.put(replace(first, state=SegmentState.DELETE_STARTED, event_id="begun"))
    agent.change(LOG, log_start=200, holds=(_hold(0, 100),))

    assert agent.metadata.unfinished(LOG) == ()
    taken = agent.retention.run_once()
    assert (taken[LOG].reason, agent.marked(LOG)) == ("held", set())


def test_in_a_real_bucket_a_removal_is_a_marker(bucket: LocalBucket) -> None:
    """T5: every version is still there, and readable, under the marker; nothing else changes."""
    at = bucket.address
    session = boto3.Session(
        aws_access_key_id=at.access_key_id, aws_secret_access_key=at.secret_access_key, region_name=at.region
    )
    raw = S3Store(S3StoreSettings(bucket=at.bucket, endpoint_url=at.endpoint_url, region=at.region), session)
    retrier = Retrier(RetryPolicy(), clock=time.monotonic, sleep=time.sleep, random=random.random)
    store = PatientStore(raw, retrier)
    agent = Agent(objects=store)
    agent.claim(LOG)
    copies = [agent.copy(LOG, 0, 100), agent.copy(LOG, 100, 200, age_ms=0)]
    content = InMemory(b"bytes")
    versions = {}
    for copy in copies:
        for kind in ("log", "aux", "json"):
            key = f"{copy.key_stem}.{kind}"
            versions[key] = store.put_new(key, content, checksum_of(b"bytes"))

    agent.retention.run_once()
    agent.now_ms += DAY_MS
    agent.retention.run_once()

    expired, kept = copies
    assert not list(store.list_keys(expired.key_stem))
    assert len(list(store.list_keys(kept.key_stem))) == 3
    for key, version_id in versions.items():
        assert version_id is not None
        assert store.read_range(key, version_id, 0, 5) == b"bytes"
    listed = list(store.list_versions(expired.key_stem))
    assert sorted(each.is_delete_marker for each in listed) == [False] * 3 + [True] * 3


def _hold(start: int, end: int) -> Hold:
    return Hold(
        hold_id="hold-1", start_offset=start, end_offset=end, reason="r", placed_by="t", placed_at_ms=0
    )
