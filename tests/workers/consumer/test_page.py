"""docs/WORKERS.md is true: its examples run, and its names are those of the snapshot."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.cluster.produce import Writer
from tests.workers.consumer.worlds import finish, joined, settle, world
from workers.consumer.metrics import OF_PARTITION, WHOLE, ConsumerMetrics
from workers.consumer.outcomes import Retry
from workers.consumer.snapshot import Counts, PartitionSnapshot, Snapshot

PAGE = Path(__file__).parents[3] / "docs" / "WORKERS.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def example(number: int) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(EXAMPLES[number], f"{PAGE.name}, example {number + 1}", "exec"), names)
    return names


def test_the_example_delivers(broker: LocalCluster) -> None:
    """Each value is delivered, skipped, tried again or given up, as its handler says."""
    names = example(0)
    for topic in ("alerts", "alerts-dead"):
        kafka.create_topic(broker.bootstrap, topic)
    writer = Writer(broker, "alerts", "example")
    writer.send_all([b"one", None, b"malformed", b"busy", b"two"], key=b"k")
    stop = threading.Event()
    serving = threading.Thread(target=names["serve"], args=(broker.bootstrap, stop), daemon=True)
    serving.start()

    wait_until(lambda: len(names["delivered"]) == 3, name="example", wanted="three values", deadline_s=60)
    stop.set()
    serving.join(60)

    assert names["delivered"] == [b"one", b"busy", b"two"]
    assert not serving.is_alive()


def test_the_example_of_the_kit_runs() -> None:
    """As it stands on the page."""
    assert "world" in example(1)


def test_the_metrics_have_the_names_of_the_snapshot() -> None:
    """Every number of a snapshot is a metric, and every metric is one of its fields."""
    made = world(b"a", b"b")
    member = joined(made)
    finish(member, 0, Retry(9))
    settle(made)
    registry = CollectorRegistry()
    registry.register(ConsumerMetrics(snapshot=member.consumer.snapshot, group="g"))
    text = generate_latest(registry).decode()

    assert {*WHOLE, "partitions", "counts"} == set(Snapshot.__dataclass_fields__)
    assert {*OF_PARTITION, "partition"} == set(PartitionSnapshot.__dataclass_fields__)
    assert 'workers_retrying{group="g"} 1.0' in text
    assert 'workers_partition_position{group="g",partition="0",topic="t"} 2.0' in text
    for name in Counts.__dataclass_fields__:
        assert f"workers_{name}_total{{" in text


@pytest.mark.parametrize("name", ["snapshot", "queue_depth", "blocking_offset", "stall_after_s"])
def test_the_page_names_what_there_is(name: str) -> None:
    """The words that a reader will look for."""
    assert name in PAGE.read_text(encoding="utf-8")
