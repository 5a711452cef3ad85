"""The screen on tables: natively it says what it says purely, and a run comes to the same without it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.digest.spark import digest, of_logs
from audit_engine.run.evidence.spark import told
from audit_engine.run.screen import calm_in, excuse, put_in
from audit_engine.run.screen.spark import excused
from audit_engine.run.spark import AuditRun, Means, RunSummary
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.results import CALM, STATE, STATEMENTS
from rules.machine import Told
from rules.machine.calm import Calm
from tests.audit_engine.run.evidence import NOW_MS, Evidence
from tests.audit_engine.run.test_run import TERMS, beats, moved
from tests.audit_engine.run.test_screen import begun, calm_after, quiet_day
from tests.rules.machine.histories import BROKERS, LOG, MIB, TOPIC, History, fixture

HISTORIES = 240


@pytest.mark.long  # hundreds of histories on Spark
def test_natively_it_excuses_what_it_excuses_purely(spark: SparkSession, tmp_path: Path) -> None:
    """Hundreds of histories in one job, each a cluster: the same logs, statements and numbers."""
    before: dict[str, tuple[Calm, str]] = {}
    said: dict[str, list[Told]] = {}
    as_of_ms = 0
    for seed in range(HISTORIES):
        h = begun(seed)
        _, calm, words = calm_after(h, h.now_ms)
        if calm is not None and words is not None:
            name = f"cluster-{seed}"
            own, _ = quiet_day(h, seed * 3)
            before[name], said[name] = (calm, words), [moved(each, name) for each in own]
            as_of_ms = max(as_of_ms, h.now_ms)
    evidence = Evidence(spark, tmp_path)
    evidence.add(each for own in said.values() for each in own)
    columns = (
        f"cluster_id STRING, topic_id STRING, partition INT, topic STRING, state_run BIGINT, calm {CALM}"
    )
    rows = [(name, LOG.topic_id, 0, TOPIC, 1, asdict(calm), words) for name, (calm, words) in before.items()]
    carried = spark.createDataFrame(rows, f"{columns}, words STRING")

    events = told(spark.read.format("delta").load(f"{evidence.root}/{EVENTS}"))
    heard = of_logs(digest(events, as_of_ms))
    found = excused(carried, heard, from_ms=5, as_of_ms=as_of_ms).collect()

    natively = {
        row["cluster_id"]: (calm_in(row["calm"].asDict(recursive=True)), row["statement"]) for row in found
    }
    purely = {}
    for name, (calm, words) in before.items():
        after = excuse(calm, said[name], as_of_ms=as_of_ms)
        if after is not None:
            purely[name] = (after, put_in(words, after, from_ms=5, as_of_ms=as_of_ms))
    assert natively == purely
    assert 10 < len(purely) < len(before)


def days(h: History, name: str, *, is_faulty: bool) -> tuple[list[list[Told]], list[int]]:
    """Three slices: the fixture, a quiet day, and one on which broker 1's start jumps, or nothing is said."""
    ends = [0]
    h.after(hours=2)
    moments = [h.now_ms]
    ends.append(len(h.told))
    for hour in range(1, 4):
        h.after(hours=1)
        for broker in BROKERS:
            h.watermark(broker, 10_500 + hour, size_bytes=MIB, start=9_000 if h.mode == "ours" else 0)
    h.after(hours=1)
    moments.append(h.now_ms)
    ends.append(len(h.told))
    h.after(minutes=1)
    if is_faulty:
        h.start(1, 0, 3_000, local=3_000)
    h.after(hours=2)
    moments.append(h.now_ms)
    ends.append(len(h.told))
    whole = beats([moved(each, name) for each in h.told], name, *moments)
    slices: list[list[Told]] = [[], [], []]
    for each in whole:
        slices[sum(each.observed_at_ms > moment for moment in moments[:2])].append(each)
    return slices, moments


def runs(
    spark: SparkSession, folder: Path, slices: Iterable[tuple[list[Told], int]], *, has_screen: bool
) -> tuple[Evidence, list[RunSummary]]:
    evidence = Evidence(spark, folder)
    found = []
    for said, as_of_ms in slices:
        if said:
            evidence.add(said)
        means = Means(
            terms=TERMS, now_ms=lambda: NOW_MS, version="test", has_gate=False, has_screen=has_screen
        )
        found.append(AuditRun(spark, evidence.root, means).next(as_of_ms))
    return evidence, found


@pytest.mark.long  # six runs
def test_with_the_screen_and_without_it_a_run_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Three runs over three logs: equal hashes, whichever log is excused; the state of an excused one is not
    written again, and a log that was excused is folded on from it once something happens."""
    all_days = [
        days(fixture(mode), f"c-{mode}", is_faulty=mode == "none") for mode in ("none", "kip405", "ours")
    ]
    moments = [max(each[1][at] for each in all_days) for at in range(3)]
    slices = [([told for each, _ in all_days for told in each[at]], moments[at]) for at in range(3)]

    with_it, screened = runs(spark, tmp_path / "with", slices, has_screen=True)
    _, whole = runs(spark, tmp_path / "without", slices, has_screen=False)

    assert [each.content_hash for each in screened] == [each.content_hash for each in whole]
    assert screened[0].verdicts == {"PASS": 3}
    assert screened[2].verdicts == {"PASS": 2, "VIOLATION": 1}
    states = spark.read.format("delta").load(f"{with_it.root}/{STATE}").groupBy("run").count().collect()
    assert sorted((row["run"], row["count"]) for row in states) == [(1, 3), (3, 1)]
    stated = spark.read.format("delta").load(f"{with_it.root}/{STATEMENTS}")
    assert stated.count() == 9
