"""What an agent says of itself: alive, ready, and in numbers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from rules.identity import LogId
from seawall.agent.errors import AddressTaken
from seawall.agent.health import Health
from seawall.agent.http import HttpEndpoint
from seawall.agent.metrics import AgentMetrics, Tally
from tiering.uploader.holder import HoldTotals
from tiering.uploader.status import STATES, LogStatus

LOG = LogId("c1", "CgkTzsXgRlOwPTRJHnL2yg", 3)


@dataclass
class World:
    """An endpoint over values that a test sets."""

    now: int = 1_000_000
    statuses: dict[LogId, LogStatus] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    address: str = ""

    def __post_init__(self) -> None:
        self.health = Health(now_ms=lambda: self.now, stuck_after_ms=5_000)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        """A metric's values by the values of its labels, in the order of the labels' names."""
        _, text = self.get("/metrics")
        return {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name
        }


@pytest.fixture
def world() -> Iterator[World]:
    """An endpoint that serves."""
    made = World()
    registry = CollectorRegistry()
    registry.register(
        AgentMetrics(
            statuses=lambda: made.statuses,
            held=lambda: HoldTotals(count=2, size_bytes=20, pinned_bytes=10, refused_count=1),
            metadata_lag=lambda: {0: 5},
            doubts=made.health.doubts,
            tally=made.tally,
            now_ms=lambda: made.now,
        )
    )
    http = HttpEndpoint("127.0.0.1:0", health=made.health, registry=registry)
    made.address = http.address
    yield made
    http.close()


def test_ready_is_more_than_alive(world: World) -> None:
    """A doubt takes the agent out of ready, with its name, and does not get it restarted."""
    world.health.beat("upload")
    world.health.doubt("table", "12 records behind")
    status, said = world.get("/readyz")

    assert (status, json.loads(said)) == (503, {"ok": False, "doubts": {"table": "12 records behind"}})
    assert world.get("/healthz")[0] == 200
    world.health.doubt("table", "")
    assert world.get("/readyz")[0] == 200


def test_loop_that_does_not_come_round_is_not_alive(world: World) -> None:
    """A loop that hangs is seen from outside, by name; one that has come round again is well."""
    world.health.beat("upload")
    world.now += 5_001
    status, said = world.get("/healthz")

    assert (status, json.loads(said)["doubts"]) == (503, {"upload": "silent for 5001 ms"})
    assert world.get("/readyz")[0] == 503
    world.health.beat("upload")
    assert world.get("/healthz")[0] == 200


def test_metrics_tell_each_log(world: World) -> None:
    """Lag, frontier and state by topic, partition and topic id; states are all there, one of them 1."""
    world.statuses[LOG] = LogStatus(
        log=LOG,
        topic="orders",
        state="stalled",
        frontier=70,
        may_leave_below=100,
        waiting_segments=2,
        waiting_bytes=4096,
        moved_at_ms=world.now - 2_500,
    )
    of_log = ("3", "orders", LOG.topic_id)

    assert world.samples("seawall_log_frontier_offset") == {of_log: 70}
    assert world.samples("seawall_log_lag_offsets") == {of_log: 30}
    assert world.samples("seawall_log_waiting_bytes") == {of_log: 4096}
    assert world.samples("seawall_log_frontier_standing_seconds") == {of_log: 2.5}
    states = {labels[1]: value for labels, value in world.samples("seawall_log_state").items()}
    assert states == {name: float(name == "stalled") for name in STATES}


def test_what_is_not_known_is_not_a_number(world: World) -> None:
    """A log whose frontier nobody knows has no frontier metric, instead of a zero."""
    world.statuses[LOG] = LogStatus(log=LOG, topic="orders", state="unknown")

    assert world.samples("seawall_log_frontier_offset") == {}
    assert world.samples("seawall_log_waiting_segments")


def test_metrics_tell_the_agent(world: World) -> None:
    """What is held, how far the table is behind, doubts, and counts by class."""
    world.health.doubt("policy", "not read")
    world.tally.error("NotLeading")
    world.tally.error("NotLeading")
    world.tally.event("copy_finished")

    assert world.samples("seawall_held_pinned_bytes") == {(): 10}
    assert world.samples("seawall_held_refused_segments") == {(): 1}
    assert world.samples("seawall_metadata_lag_offsets") == {("0",): 5}
    assert world.samples("seawall_doubt") == {("policy",): 1}
    assert world.samples("seawall_errors_total") == {("NotLeading",): 2}
    assert world.samples("seawall_events_total") == {("copy_finished",): 1}


def test_unknown_page_names_those_there_are(world: World) -> None:
    """A wrong path is a 404 that helps."""
    status, said = world.get("/metric")

    assert status == 404
    assert "/metrics" in said


def test_taken_address_is_a_clear_error(world: World) -> None:
    """Two agents on one port: the second says so, and what to set."""
    with pytest.raises(AddressTaken, match=r"agent\.listen"):
        HttpEndpoint(world.address, health=world.health, registry=CollectorRegistry())
