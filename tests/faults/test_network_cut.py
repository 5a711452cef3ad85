"""The network between an agent and its cluster is cut: what the agent cannot know, it does not act on."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from seawall.local import kafka
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.faults.agents import Agent, agent_beside
from tests.faults.clean import assert_clean
from tests.faults.scrub import tiered_records, tiered_to
from tests.faults.test_whole_system import closed_ends, direct_store, replayed, settings_of
from tests.faults.wire import Cut, WiredBroker
from tests.seawall.agent import told as evidence
from tiering.segments.records import LogId
from tiering.segments.table import ReferenceTable

DEADLINE_S = 90.0
SEGMENT_BYTES = 64 * 1024
COPIED_FIRST = 200  # records
DECIDED_IN_THE_DARK = 400
VALUE_BYTES = 600


@pytest.fixture(scope="module")
def wired_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WiredBroker]:
    """One broker, and its agents' way to it."""
    cluster = WiredBroker(tmp_path_factory.mktemp("wired"))
    with cluster:
        yield cluster


def value(number: int) -> bytes:
    return b"%06d" % number + b"." * VALUE_BYTES


@dataclass
class Watched:
    """One agent and its log, looked at again and again; `states`: all that the log was ever seen in."""

    broker: WiredBroker
    bucket: LocalBucket
    agent: Agent
    topic: str
    since_ms: int
    states: set[str] = field(default_factory=set)

    def look(self) -> str:
        """The state that the log is in, by the agent's own word."""
        lines = self.agent.page("metrics").decode().splitlines()
        mine = [each for each in lines if each.startswith("seawall_log_state") and self.topic in each]
        [state] = [re.search(r'state="(\w+)"', each) for each in mine if each.endswith(" 1.0")] or [None]
        found = "none" if state is None else state[1]
        self.states.add(found)
        return found

    def metric(self, name: str) -> float:
        lines = self.agent.page("metrics").decode().splitlines()
        found = [each for each in lines if each.startswith((f"{name}{{", f"{name} "))]
        return sum(float(each.rpartition(" ")[2]) for each in found)

    def objects(self) -> set[tuple[str, str]]:
        """Every version under the topic's prefix."""
        client: Any = self.bucket.client()
        pages = client.get_paginator("list_object_versions")
        return {
            (each["Key"], each["VersionId"])
            for page in pages.paginate(Bucket=self.bucket.name, Prefix=self.topic)
            for kind in ("Versions", "DeleteMarkers")
            for each in page.get(kind, [])
        }

    def local_segments(self) -> list[Path]:
        """On the broker's disk, those that are about to be removed included."""
        [log_dir] = self.broker.log_dirs()
        return sorted((log_dir / f"{self.topic}-0").glob("*.log*"))

    def frontier(self) -> int:
        table = replayed(self.broker)
        return max((tiered_to(table, log) for log in _logs(table, self.topic)), default=0)

    def wait(self, condition: Callable[[], bool], wanted: str) -> None:
        wait_until(condition, name="the agent", wanted=wanted, deadline_s=DEADLINE_S)


def _logs(table: ReferenceTable, topic: str) -> list[LogId]:
    found = {log: view for log in table.logs() if (view := table.view(log)) is not None}
    return [log for log, view in found.items() if view.record is not None and view.record.topic == topic]


@pytest.fixture
def watched(wired_broker: WiredBroker, bucket: LocalBucket, tmp_path: Path) -> Iterator[Watched]:
    """An agent that reaches its broker by the wire alone."""
    topic = f"cut-{uuid.uuid4().hex[:8]}"
    quickly = {"file.delete.delay.ms": "100"}
    produce.create_topic(wired_broker, topic, segment_bytes=SEGMENT_BYTES, config=quickly)
    settings = settings_of(wired_broker, bucket.address.endpoint_url, bucket.name, topic, topic)
    settings = settings.replace(wired_broker.bootstrap, wired_broker.wired_bootstrap)
    since_ms = time.time_ns() // 1_000_000
    with agent_beside(wired_broker, tmp_path, settings, bucket.address) as agent:
        yield Watched(wired_broker, bucket, agent, topic, since_ms)


@pytest.mark.jvm
@pytest.mark.parametrize(
    "how", [Cut.REFUSED, pytest.param(Cut.SILENT, marks=pytest.mark.long)], ids=lambda how: how.name.lower()
)
def test_while_it_is_cut_nothing_is_copied_and_nothing_held_is_let_go(how: Cut, watched: Watched) -> None:
    """Closed segments wait for a transaction, held open, when the wire is cut. In the dark the transaction is
    committed, and retention takes the files: the log is `unknown` and never `not_led`, nothing reaches the
    bucket, what is held stays held. Once the wire is whole, every record is copied from what was held, no
    gap is recorded, no event is missing, and the bucket is clean."""
    broker, topic = watched.broker, watched.topic
    values = [value(number) for number in range(COPIED_FIRST + DECIDED_IN_THE_DARK)]
    kafka.produce(broker.bootstrap, topic, values[:COPIED_FIRST])
    watched.wait(lambda: watched.frontier() > COPIED_FIRST / 3, "what is closed to be copied")
    writer = produce.transactional(broker, topic, f"{topic}-writer")
    writer.begin()
    for each in values[COPIED_FIRST:]:
        writer.send(each)
    writer.flush()
    [closed_end] = closed_ends(broker, topic).values()
    waits = int(DECIDED_IN_THE_DARK * VALUE_BYTES / SEGMENT_BYTES) - 1
    watched.wait(
        lambda: watched.metric("seawall_held_segments") >= waits and watched.look() == "waiting",
        f"{waits} closed segments to be held and to wait for the transaction",
    )
    held, copied = watched.metric("seawall_held_segments"), watched.objects()
    watched.states.clear()

    with broker.wire.cut(how):
        writer.commit()
        kafka.set_config(broker.bootstrap, topic, {"retention.bytes": "1"})
        watched.wait(lambda: len(watched.local_segments()) == 1, "retention to take what is closed")
        watched.wait(lambda: watched.look() == "unknown", "the log to be unknown")
        taken = broker.wire.taken
        if how is Cut.SILENT:  # whoever gave up has asked again, and was not answered either
            watched.wait(lambda: broker.wire.taken > taken, "another try")
        in_the_dark = watched.look(), watched.objects()
        held_in_the_dark = watched.metric("seawall_held_segments")
        assert watched.agent.probe("healthz").get("ok"), "a cut is no reason to restart the agent"

    assert in_the_dark == ("unknown", copied)
    assert held_in_the_dark >= held  # a segment that retention closed to remove it may have come to them
    assert "not_led" not in watched.states
    watched.wait(lambda: watched.frontier() >= closed_end, "all that was held to be copied")
    watched.wait(lambda: watched.look() == "up_to_date", "nothing to be left to do")
    watched.wait(lambda: watched.metric("seawall_held_segments") == 0, "nothing to be held any more")
    assert watched.agent.process.stop(grace_s=30.0), "it ended by itself"
    table = replayed(broker)
    [log] = _logs(table, topic)
    read = [record.value for record in tiered_records(table, direct_store(watched.bucket), log)]
    assert read == values[: len(read)]
    assert len(read) >= closed_end - 1  # but for the commit's own marker
    said = evidence.told(broker, since_ms=watched.since_ms)
    assert said.runs
    assert evidence.holes(said) == []
    assert_clean(broker, watched.bucket, topic, prefix=topic)
