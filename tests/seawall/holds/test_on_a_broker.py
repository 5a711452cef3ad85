"""`seawall hold` as a user runs it, on a real broker and a bucket: what binds, and what comes back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.policy.change_log.kafka import TOPIC as POLICY_TOPIC
from tests.cluster.produce import Writer, create_topic, texts
from tests.faults.clean import assert_clean
from tests.faults.test_whole_system import direct_store
from tests.seawall.cli.calling import Called, call
from tests.seawall.holds.cases import environ_of, own_config, record_of
from tests.tiering.reader.live import PREFIX, tier_partition

Seawall = Callable[..., Called]


@pytest.fixture
def topic(broker: LocalCluster) -> Iterator[str]:
    """A topic of this test alone, an hour long; no policy before or after."""
    _forget_policy(broker)
    name = f"hold-{uuid.uuid4().hex[:8]}"
    create_topic(broker, name, config={"retention.ms": "3600000"})
    yield name
    _forget_policy(broker)


@pytest.fixture
def seawall(broker: LocalCluster, bucket: LocalBucket, tmp_path: Path) -> Seawall:
    environ = environ_of(broker, bucket, PREFIX, str(tmp_path))
    return lambda *arguments: call(*map(str, arguments), environ=environ)


def _forget_policy(broker: LocalCluster) -> None:
    if kafka.leaders(broker.bootstrap, POLICY_TOPIC):
        kafka.delete_topic(broker.bootstrap, POLICY_TOPIC)


def _declare(seawall: Seawall, folder: Path, topic: str, *lines: str) -> None:
    file = folder / "policy.toml"
    file.write_text("\n".join(["version = 1", f'[topics."{topic}"]', *lines, ""]))
    applied = seawall("policy", "apply", file, "--principal", "alice", "--change-id", "T", "--confirm")
    assert applied.status == 0, applied.stderr


def _held(seawall: Seawall, topic: str) -> list[dict[str, Any]]:
    holds: list[dict[str, Any]] = json.loads(seawall("hold", "list", topic, "--json").stdout)["holds"]
    return holds


def test_object_versions_are_held_until_the_last_hold_on_them_goes(
    broker: LocalCluster, bucket: LocalBucket, topic: str, seawall: Seawall
) -> None:
    """Two holds of one range: each is listed with what it binds; the versions are let go with the second."""
    Writer(broker, topic, "tier").send_all(texts(400))
    tiered = tier_partition(broker, bucket, topic)
    store = direct_store(bucket)
    first = tiered.segments[0].objects.log
    assert first is not None
    assert first.version_id is not None

    for name in ("one", "two"):
        placed = seawall(
            *("hold", "place", f"{topic}:0", "--id", f"{topic}-{name}", "--reason", "we lost a disk"),
            *("--owner", "alice", "--to", tiered.segments[0].end_offset),
        )
        assert placed.status == 0, placed.stderr
    found = _held(seawall, topic)

    assert [each["hold_id"] for each in found] == [f"{topic}-one", f"{topic}-two"]
    assert all(each["agents"] and each["object_versions"]["held"] == 3 for each in found)
    assert {(each["owner"], each["reason"], each["kafka"]) for each in found} == {
        ("alice", "we lost a disk", False)
    }
    assert store.is_held(first.key, first.version_id)
    record = record_of(broker, topic)
    assert record is not None
    assert [each.hold_id for each in record.holds] == [f"{topic}-one", f"{topic}-two"]
    for name, is_held in (("one", True), ("two", False)):
        released = seawall("hold", "release", f"{topic}-{name}", "--reason", "found it", "--confirm")
        assert (released.status, released.stderr) == (0, "")
        assert store.is_held(first.key, first.version_id) is is_held
    assert _held(seawall, topic) == []
    unknown = seawall("hold", "release", f"{topic}-one", "--reason", "again", "--confirm")
    assert unknown.status == 63
    assert_clean(broker, bucket, topic, prefix=PREFIX)


def test_kafka_is_bound_only_where_the_policy_says_so_and_gets_back_what_it_had(
    broker: LocalCluster, topic: str, seawall: Seawall, tmp_path: Path
) -> None:
    """Of a log that we do not tier: nothing at all binds it, and that is an error; with hold_kafka its
    retention is unlimited, as declared, until the last hold goes; then settings and table are as before."""
    place = ("hold", "place", f"{topic}:0", "--reason", "why", "--owner", "alice")
    _declare(seawall, tmp_path, topic, 'total_retention_ms = "1h"')
    refused = seawall(*place)
    assert refused.status == 63
    assert "hold_kafka" in refused.stderr
    _declare(seawall, tmp_path, topic, 'total_retention_ms = "1h"', "hold_kafka = true")
    before = seawall("policy", "show", topic).stdout

    for name in ("one", "two"):
        assert seawall(*place, "--id", f"{topic}-{name}").status == 3, "our agents have nothing to hold"

    assert [each["kafka"] for each in _held(seawall, topic)] == [True, True]
    assert own_config(broker, topic, "retention.ms") == "-1"
    assert seawall("policy", "check", tmp_path / "policy.toml", "--offline").status == 0
    assert "unlimited" in seawall("policy", "show", topic).stdout
    assert seawall("hold", "release", f"{topic}-one", "--reason", "x", "--confirm").status == 0
    assert own_config(broker, topic, "retention.ms") == "-1"
    assert seawall("hold", "release", f"{topic}-two", "--reason", "x", "--confirm").status == 0
    assert own_config(broker, topic, "retention.ms") == "3600000"
    assert own_config(broker, topic, "retention.bytes") is None
    assert _held(seawall, topic) == []
    assert seawall("policy", "show", topic).stdout == before
