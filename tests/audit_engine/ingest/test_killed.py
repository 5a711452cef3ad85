"""kill -9 of a whole driver, JVM and all, while it commits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.events import stalled
from tests.audit_engine.ingest.topics import DEADLINE_S, EventTopic

KILLS = 2
EVENTS = 2_000
SCRIPT = "tests.audit_engine.ingest.ingest_until_killed"
REPOSITORY = Path(__file__).parents[3]


def _has_committed(commits: Path, count: int) -> bool:
    return len(list(commits.glob("*.json"))) >= count  # the table's making is two of them


def test_drivers_killed_among_their_commits_lose_and_repeat_nothing(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """Each event once, the sequence without a hole, and the last run goes on where the killed ones were."""
    topic = EventTopic(broker=broker, name="ingest-killed", folder=tmp_path).make(2)
    topic.publish(stalled(number) for number in range(EVENTS))
    commits = Path(topic.root) / "audit_events" / "_delta_log"
    for kill in range(KILLS):
        before = len(list(commits.glob("*.json")))
        arguments = [str(tmp_path / f"run-{kill}"), broker.bootstrap, topic.name, topic.root]
        driver = subprocess.Popen(
            [sys.executable, "-m", SCRIPT, *arguments],
            cwd=REPOSITORY,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert becomes_true(partial(_has_committed, commits, before + 4), deadline_s=DEADLINE_S)
            assert driver.poll() is None
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    tables = topic.tables(spark)
    held = sum(tables.events.standing().next_offsets.values())

    done = topic.ingest(spark, tables)

    assert 0 < held < EVENTS
    assert done.offsets == EVENTS - held
    sequences = [row["emitter_seq"] for row in tables.events.rows().select("emitter_seq").collect()]
    assert sorted(sequences) == list(range(EVENTS))
