"""`seawall tier` as a user runs it, on a topic of a real broker that is tiered into a real bucket."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.kafka import admin_client
from tests.cluster.produce import Writer, create_topic, texts
from tests.faults.clean import assert_clean
from tests.seawall.cli.calling import Called, call, environ_of
from tests.tiering.reader.live import Tiered, store_of, tier_partition
from tiering.segments.codec import encode_segment
from tiering.segments.kafka import KafkaAppender, check_topic
from tiering.segments.keys import segment_key
from tiering.segments.records import SegmentId, SegmentObjects, SegmentState
from tiering.store.content import InMemory
from tiering.store.keys import KeyLayout, ObjectKind, SegmentKey

TOPIC = "tier-verbs"
PREFIX = "reader-tests"  # where `tier_partition` puts its objects
Seawall = Callable[..., Called]


@pytest.fixture(scope="module")
def tiered(broker: LocalCluster, bucket: LocalBucket) -> Iterator[Tiered]:
    """A few closed segments, all of them copied, and an active one; scrubbed at the end of all tests."""
    create_topic(broker, TOPIC)
    Writer(broker, TOPIC, "tier").send_all(texts(400))
    yield tier_partition(broker, bucket, TOPIC)
    assert_clean(broker, bucket, TOPIC, prefix=PREFIX)


@pytest.fixture
def seawall(broker: LocalCluster, bucket: LocalBucket) -> Seawall:
    """`seawall tier ...` with settings for both."""
    environ = environ_of(broker, bucket.address, PREFIX) | {"COLUMNS": "100"}
    return lambda *arguments: call("tier", *map(str, arguments), environ=environ)


def rows(ran: Called, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ran.stdout)[name]
    return found


def test_status_says_where_every_offset_is(tiered: Tiered, broker: LocalCluster, seawall: Seawall) -> None:
    """Frontier, segments and bytes are those that were copied; what the broker cut is in the tier alone."""
    cut = tiered.segments[0].end_offset
    admin = admin_client(broker.bootstrap)  # dropped before the answer is there, it would cancel the request
    for done in admin.delete_records([TopicPartition(TOPIC, 0, cut)]).values():
        done.result(30)

    shown, told = seawall("status", TOPIC), seawall("status", TOPIC, "--json")

    assert (shown.status, told.status) == (0, 0)
    [log] = rows(told, "logs")
    assert (log["log_start"], log["local_start"], log["frontier"]) == (0, cut, tiered.end)
    assert log["high_watermark"] == log["frontier"] + log["lag_offsets"]
    assert log["tiered_segments"] == len(tiered.segments)
    assert log["tiered_bytes"] == sum(each.size_bytes for each in tiered.segments)
    assert [part["where"] for part in log["coverage"]] == ["tiered", "both", "local"]
    # A new topic's leader epoch may rise once more after the claim that the fixture wrote.
    assert {each["kind"] for each in log["troubles"]} <= {"claim_behind"}
    line = next(line for line in shown.stdout.splitlines() if line.startswith(f"{TOPIC}-0  ="))
    assert "=#" in line
    assert "#-" in line


def test_status_of_what_is_not_tiered_is_not_called_clean(tiered: Tiered, seawall: Seawall) -> None:
    """A topic that there is not: nothing was looked at, and that is exit 4."""
    ran = seawall("status", "no-such-topic")

    assert (ran.status, ran.stdout) == (4, "nothing of no-such-topic is tiered\n")


def test_an_attempt_that_died_is_shown_and_then_removed(
    tiered: Tiered, broker: LocalCluster, bucket: LocalBucket, seawall: Seawall
) -> None:
    """In flight for a day; past its grace an orphan, removed by --delete --confirm and nothing else is."""
    store = store_of(bucket)
    before = {found.key for found in store.list_keys(f"{PREFIX}/")}
    keys = leave_an_attempt(tiered, broker, bucket)

    in_flight = seawall("orphans", TOPIC, "--json")
    assert in_flight.status == 0
    assert [each["verdict"] for each in rows(in_flight, "attempts")] == ["in_flight"]
    assert json.loads(in_flight.stdout)["referenced"]["segments"] == len(tiered.segments)

    dry = seawall("orphans", TOPIC, "--grace", "0", "--delete")
    assert dry.status == 1
    assert "stalled" in dry.stdout
    assert "nothing was changed; do it with --confirm" in dry.stderr
    assert {found.key for found in store.list_keys(f"{PREFIX}/")} == before | keys

    done = seawall("orphans", TOPIC, "--grace", "0", "--delete", "--confirm")
    assert (done.status, done.stderr) == (0, "")
    assert "removed 1 of 1 orphans" in done.stdout
    assert {found.key for found in store.list_keys(f"{PREFIX}/")} == before
    assert {found.key for found in store.list_versions(f"{PREFIX}/")} >= keys

    again = seawall("orphans", TOPIC, "--grace", "0", "--json")
    assert rows(again, "attempts") == []
    assert json.loads(again.stdout)["referenced"]["segments"] == len(tiered.segments)
    assert seawall("status", TOPIC).status == 0


def test_the_bucket_alone_tells_what_the_topic_holds(
    tiered: Tiered, bucket: LocalBucket, seawall: Seawall
) -> None:
    """Every copy's record, to the byte; a .json that is deleted is a difference, named with its segment."""
    same = seawall("rebuild", TOPIC, "--from-bucket")
    assert same.status == 0
    assert same.stdout == f"{len(tiered.segments)} copies are the same in bucket and topic, to the byte; " + (
        "0 differences\n"
    )

    hidden = tiered.segments[1]
    key = f"{hidden.key_stem}.json"
    marker = store_of(bucket).mark_deleted(key)
    ran = seawall("rebuild", TOPIC, "--from-bucket", "--json")
    bucket.client().delete_object(Bucket=bucket.name, Key=key, VersionId=str(marker))

    assert ran.status == 1
    [difference] = rows(ran, "differences")
    assert (difference["kind"], difference["segment_id"]) == ("json_deleted", hidden.segment_id)
    assert difference["base_offset"] == hidden.base_offset


def test_a_topic_that_holds_records_is_never_filled(tiered: Tiered, seawall: Seawall) -> None:
    """Only one that was lost is: exit 47, with the words what to do."""
    ran = seawall("rebuild", "--from-bucket", "--write", "--confirm")

    assert (ran.status, ran.stdout) == (47, "")
    assert "nothing was written" in ran.stderr


def leave_an_attempt(tiered: Tiered, broker: LocalCluster, bucket: LocalBucket) -> set[str]:
    """What a copy leaves that is killed after its .log: COPY_STARTED, and that object."""
    segment_id = SegmentId(str(uuid.uuid4()))
    last = tiered.segments[-1]
    key = SegmentKey(log=tiered.log, base_offset=last.base_offset, segment_id=segment_id)
    layout = KeyLayout(PREFIX)
    begun = replace(
        last,
        segment_id=segment_id,
        key_stem=layout.stem(key),
        objects=SegmentObjects(),
        state=SegmentState.COPY_STARTED,
        event_id=str(uuid.uuid4()),
        occurred_at_ms=time.time_ns() // 1_000_000,
    )
    config = {"bootstrap.servers": broker.bootstrap}
    with KafkaAppender(config, check_topic(config)) as appender:
        appender.append(tiered.log, segment_key(tiered.log, segment_id), encode_segment(begun))
    content = InMemory(b"half a copy")
    log_object = layout.key(key, ObjectKind.LOG)
    store_of(bucket).put_new(log_object, content, content.checksum)
    return {log_object}
