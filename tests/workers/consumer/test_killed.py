"""kill -9 of consumers and of brokers, and rebalances without end, on real ones.

SEAWALL_TEST_WORKER_STORMS sets the rounds of the storm (2 unless told; 50 is for a quiet hour) and its seed
is printed by a run that fails: SEAWALL_TEST_WORKER_SEED replays its kills.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.workers.consumer import child
from tests.workers.consumer.killed import DEADLINE_S, demo, end, fill
from workers.testing import ledger

STORMS = int(os.environ.get("SEAWALL_TEST_WORKER_STORMS", "2"))
SEED = int(os.environ.get("SEAWALL_TEST_WORKER_SEED", "3"))
CONSUMERS = 3
RECORDS_A_ROUND = 300


def test_a_killed_consumer_loses_nothing_and_repeats_little(broker: LocalCluster, tmp_path: Path) -> None:
    """Paper 003's demo in short, killed on the way; `python -m bench workers_demo` is the whole of it."""
    report = demo(broker, tmp_path, records=300, work_s=0.02, at_once=10, kills=1)

    assert report.lost == 0
    assert report.repeated_finished + report.repeated_running <= report.repeats_bound


@pytest.mark.timeout(600 + 60 * STORMS)
def test_a_storm_of_kills_and_rebalances(cluster3: LocalCluster, tmp_path: Path) -> None:
    """Three brokers, three consumers; each round kills one of either. No loss, no key overtaken."""
    draw = random.Random(SEED)
    topic, path = f"storm-{SEED}", tmp_path / "storm.ledger"
    kafka.create_topic(cluster3.bootstrap, topic, partitions=6, replication=3)
    client = {
        "bootstrap.servers": cluster3.bootstrap,
        "group.id": topic,
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 500,
    }
    killed: set[int] = set()

    running = [child.start(path, client, topic, at_once=4, work_s=0.005) for _ in range(CONSUMERS)]
    try:
        for number in range(STORMS):
            fill(cluster3, topic, RECORDS_A_ROUND)
            _wait_for(path, number * RECORDS_A_ROUND + draw.randrange(1, RECORDS_A_ROUND))
            victim = running.pop(draw.randrange(len(running)))
            victim.kill()
            victim.wait()
            killed.add(victim.pid)
            running.append(child.start(path, client, topic, at_once=4, work_s=0.005))
            node = draw.choice(sorted(cluster3.nodes))
            cluster3.kill(node)
            _wait_for(path, (number + 1) * RECORDS_A_ROUND - RECORDS_A_ROUND // 4)
            cluster3.restart(node)
        _wait_for(path, STORMS * RECORDS_A_ROUND)
    finally:
        end(running)

    lines = ledger.read(path)
    assert len(ledger.ended(lines)) == STORMS * RECORDS_A_ROUND
    ledger.assert_keys_in_order(lines, killed=frozenset(killed))


def _wait_for(path: Path, count: int) -> None:
    wait_until(
        lambda: len(ledger.ended(ledger.read(path))) >= count,
        name=f"seed {SEED}",
        wanted=f"{count} records handled",
        deadline_s=DEADLINE_S,
    )
