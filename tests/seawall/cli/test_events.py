"""`seawall events` as a user runs it: the kinds from the classes, the events from a real topic."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from audit_engine.spool import EmitterName, Spool
from audit_engine.topic.kafka import Publisher, ensure_audit_topic
from rules.events import KINDS, Event, LogStartAdvanced, SegmentClosed, TopicCreated
from seawall.cli.events import tail
from seawall.events.examples import CLUSTER_ID, example, example_envelope
from seawall.events.kafka import hear
from seawall.events.lines import line
from seawall.local.broker import LocalCluster
from tests.seawall.cli.calling import Called, call

Seawall = Callable[..., Called]
DEADLINE_S = 60.0
TOPIC = f"events-{uuid.uuid4().hex[:8]}"  # what others say on the same broker is no concern here


@pytest.fixture
def seawall(broker: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Seawall:
    """`seawall events tail ...` against the broker, which has a topic of events for it alone."""
    ensure_audit_topic({"bootstrap.servers": broker.bootstrap}, name=TOPIC)
    monkeypatch.setattr(tail, "TOPIC", TOPIC)
    environ = {"SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap, "COLUMNS": "100"}
    return lambda *arguments: call("events", "tail", *arguments, environ=environ)


def _of(kind: type[Event], topic: str) -> Event:
    return replace(example(kind), topic=topic)  # type: ignore[call-arg]


def _publish(broker: LocalCluster, folder: Path, *events: Event) -> None:
    with Spool(folder / f"{uuid.uuid4().hex}.db", EmitterName(CLUSTER_ID, 7, "observer")) as spool:
        spool.emit_many(events)
        publisher = Publisher(spool, {"bootstrap.servers": broker.bootstrap}, topic=TOPIC)
        assert publisher.stop(DEADLINE_S)


def test_list_names_every_kind() -> None:
    """One line a kind, with when it is said; --json has the same."""
    lines = call("events", "list").stdout.splitlines()
    rows = json.loads(call("events", "list", "--json").stdout)

    assert [each.split()[0] for each in lines[1:]] == [kind.kind for kind in KINDS]
    assert [row["kind"] for row in rows] == [kind.kind for kind in KINDS]
    assert all(row["said_when"] in each for row, each in zip(rows, lines[1:], strict=True))


def test_show_tells_meaning_fields_and_an_example() -> None:
    """What a reader of the topic needs to know of a kind, without the source."""
    shown = call("events", "show", "log_start_advanced")

    assert shown.status == 0
    assert "Does not say who moved it." in shown.stdout
    assert "not_before_ms" in shown.stdout
    assert '"new_start": 9000' in shown.stdout


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_show_knows_every_kind_for_programs(kind: type[Event]) -> None:
    """--json has every field with its type, and the example under the kind's own name."""
    told = json.loads(call("events", "show", kind.kind, "--json").stdout)

    assert told["example"]["kind"] == kind.kind
    assert {"event_id", "occurred_at_ms"} <= {each["name"] for each in told["fields"]}


def test_an_unknown_kind_is_a_mistake_of_the_command_line() -> None:
    """It is told where the names are, and nothing is asked of any cluster."""
    for arguments in (("show", "log_start_moved"), ("tail", "--kind", "log_start_moved")):
        refused = call("events", *arguments)

        assert refused.status == 2
        assert "seawall events list" in refused.stderr


@pytest.mark.parametrize("start", ["yesterday", "1500"])
def test_a_time_that_is_none_is_refused(start: str) -> None:
    """An offset has no meaning across the partitions of the topic."""
    refused = call("events", "tail", "--from", start, "--bootstrap", "localhost:1")

    assert refused.status == 2
    assert "is not a time" in refused.stderr


def test_a_line_is_one_line() -> None:
    """A topic or a text of an event cannot break out of its line, or move the cursor."""
    event = replace(example(LogStartAdvanced), topic="orders\n\x1b[2J", reason_hint="because\r\nof")  # type: ignore[call-arg]
    envelope = replace(example_envelope(LogStartAdvanced), event=event)

    said = line(envelope, "now")

    assert said.isprintable()
    assert "orders??[2J-3" in said


@pytest.mark.jvm
def test_tail_prints_what_lies_there_and_ends(seawall: Seawall, broker: LocalCluster, tmp_path: Path) -> None:
    """Only the topic and kind that were asked for, in order, one line an event; logs and topics alike."""
    topic = f"tail-{uuid.uuid4().hex[:8]}"
    said = (_of(TopicCreated, topic), _of(SegmentClosed, topic), _of(LogStartAdvanced, topic))
    _publish(broker, tmp_path, *said, _of(SegmentClosed, "another"))

    plain = seawall("--topic", topic)
    of_kind = seawall("--topic", topic, "--kind", "segment_closed", "--json", "--from", "10m")

    assert plain.status == 0
    by_kind = {each.split()[1]: each for each in plain.stdout.splitlines()}
    assert by_kind.keys() == {"topic_created", "segment_closed", "log_start_advanced"}
    assert f"{topic}-3  7/observer #2  " in by_kind["log_start_advanced"]
    assert f" {topic}  7/observer #0  " in by_kind["topic_created"]
    assert "old_start 8000  new_start 9000" in by_kind["log_start_advanced"]
    [row] = [json.loads(each) for each in of_kind.stdout.splitlines()]
    assert (row["kind"], row["topic"], row["emitter_seq"]) == ("segment_closed", topic, 1)
    assert row["kafka"]["offset"] >= 0


@pytest.mark.jvm
def test_tail_from_a_time_to_come_finds_nothing_and_ends(seawall: Seawall) -> None:
    """The end is the end, also where nothing lies before it."""
    ended = seawall("--from", f"@{time.time_ns() // 1_000_000 + 3_600_000}")

    assert (ended.status, ended.stdout) == (0, "")


@pytest.mark.jvm
def test_a_record_that_is_no_event_is_told_and_passed(seawall: Seawall, broker: LocalCluster) -> None:
    """What else lies in the topic does not end the reading, and does not go unsaid."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(TOPIC, b"no event")
    assert producer.flush(DEADLINE_S) == 0

    read = seawall()

    assert read.status == 3
    assert "is no event" in read.stderr


@pytest.mark.jvm
def test_following_hears_what_comes_later(seawall: Seawall, broker: LocalCluster, tmp_path: Path) -> None:
    """After the end it goes on, and the next event is there as soon as Kafka has it."""
    topic = f"follow-{uuid.uuid4().hex[:8]}"
    _publish(broker, tmp_path, _of(SegmentClosed, topic))
    config = {"bootstrap.servers": broker.bootstrap}

    with closing(hear(config, since_ms=0, is_endless=True, topic=TOPIC)) as heard:  # type: ignore[type-var]
        first = next(each for each in heard if topic.encode() in (each.value or b""))
        _publish(broker, tmp_path, _of(LogStartAdvanced, topic))
        later = next(each for each in heard if topic.encode() in (each.value or b""))

    assert b'"kind":"segment_closed"' in (first.value or b"")
    assert b'"kind":"log_start_advanced"' in (later.value or b"")
