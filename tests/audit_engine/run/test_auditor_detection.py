"""The auditor held against what was done to it: random weeks of daily runs over one set of tables.

What a week does is written down when it is done: commits of others to the table of events, days without a
run, a cluster that is forgotten, spools that are found after days, a screen that believes everything. After
each run AUD-04 to AUD-07 are exactly that.

SEAWALL_TEST_WEEKS       how many, 3 unless told
SEAWALL_TEST_WEEKS_SEED  the first seed; the others follow it
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.canary import CLUSTER, canary
from audit_engine.run.reading.spark import Verdicts
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.results import STATE, STATEMENTS
from rules.events import Heartbeat
from rules.machine import Speaker, Terms, Told
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import moved
from tests.rules.machine.histories import DAY_MS, HOUR_MS, MINUTE_MS, fixture

WEEKS = int(os.environ.get("SEAWALL_TEST_WEEKS", "3"))
FIRST_SEED = int(os.environ.get("SEAWALL_TEST_WEEKS_SEED", "7300000"))
DAYS = 7
TERMS = Terms()
CADENCE_MS = 26 * HOUR_MS
HORIZON_MS = 4 * DAY_MS
FORGOTTEN = "c2"  # a cluster of one log
Named = tuple[str, str, str]  # a rule, a subject, an anchor


class Week:
    """Daily runs, what is done between them, and what must be found after each."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.spark = spark
        self.evidence = Evidence(spark, folder)
        self.now_ms = 0
        self.happened: set[Named] = set()  # stays found
        self.lasts: set[Named] = set()  # until the next run
        self.done: Counter[str] = Counter()

    @property
    def table(self) -> str:
        return f"{self.evidence.root}/{EVENTS}"

    def begins(self) -> None:
        h = fixture("none").after(hours=2)
        said = [moved(each, name) for each in h.told for name in ("c1", FORGOTTEN)]
        self.evidence.add(said)
        self.runs(h.now_ms)

    def a_day_goes_by(self, number: int) -> None:
        last_ms = self.now_ms
        now_ms = last_ms + self.rng.choice(
            (20 * HOUR_MS, DAY_MS, DAY_MS, CADENCE_MS, CADENCE_MS + 1, 50 * HOUR_MS)
        )
        self.lasts = set()
        if now_ms - last_ms > CADENCE_MS:
            self._is_found("AUD-05", "runs", "cadence", lasts=True)
        said = [beat(8, 7, number, now_ms - MINUTE_MS)]
        for spool in range(self.rng.choice((0, 0, 1, 2))):
            said += self._spool(10 * number + spool, last_ms - HORIZON_MS)
        self.rng.shuffle(said)
        self.evidence.add(said)
        for act in self.rng.sample(ACTS, self.rng.choice((1, 1, 2))):
            self._touches(act)
        if self.rng.random() < 0.25 and self._forgets():
            self._is_found("AUD-05", "runs", "logs", lasts=True)
        with pytest.MonkeyPatch.context() as patch:
            if self.rng.random() < 0.4:
                self._believes_everything(patch, number + 1, now_ms)
            self.runs(now_ms)

    def runs(self, as_of_ms: int) -> None:
        self.evidence.audit(TERMS).next(as_of_ms)
        self.now_ms = as_of_ms

    def found(self) -> set[Named]:
        return {
            (each["rule_id"], each["subject"], each["anchor"])
            for each in Verdicts(self.spark, self.evidence.root).findings()
            if "AUD-04" <= each["rule_id"] <= "AUD-07" and each["status"] == "open"
        }

    def _is_found(self, rule_id: str, subject: str, anchor: str, *, lasts: bool = False) -> None:
        (self.lasts if lasts else self.happened).add((rule_id, subject, anchor))
        self.done[f"{rule_id} {anchor}" if lasts else rule_id] += 1

    def _spool(self, incarnation: int, horizon_ms: int) -> list[Told]:
        """Of an agent that nobody had heard: some of it on this side of the horizon, some on that."""
        first = self.rng.randint(0, 50)
        steps = sorted(self.rng.choice((-DAY_MS, -HOUR_MS, -1, 0, 1, HOUR_MS, DAY_MS)) for _ in range(4))
        if steps[0] < 0:
            self._is_found("AUD-06", f"c1/emitter 9/agent/{incarnation}", str(first))
        return [beat(9, incarnation, first + at, horizon_ms + step) for at, step in enumerate(steps)] * 2

    def _touches(self, act: Callable[[Week], int]) -> None:
        """`act` says how many of its commits, from its first on, are not ours."""
        before = self.version()
        strange = act(self)
        assert self.version() >= before + max(1, strange), act.__name__
        self.done[act.__name__] += 1
        for version in range(before + 1, before + 1 + strange):
            self._is_found("AUD-04", f"tables/{EVENTS}", str(version))

    def version(self) -> int:
        [last] = DeltaTable.forPath(self.spark, self.table).history(1).collect()
        return int(last["version"])

    def alter(self, what: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.table}` {what}")

    def _forgets(self) -> bool:
        """Somebody cleans up the tables of results."""
        if self.done["AUD-05 logs"]:
            return False
        for name in (STATE, STATEMENTS):
            table = DeltaTable.forPath(self.spark, f"{self.evidence.root}/{name}")
            table.delete(F.col("cluster_id") == FORGOTTEN)
        return True

    def _believes_everything(self, patch: pytest.MonkeyPatch, run: int, now_ms: int) -> None:
        """The screen takes any word of a log about itself for what it knows; it never hears of topics."""
        patch.setattr("audit_engine.run.screen.spark._agrees", lambda *_: F.lit(True))
        if all(each.log_seq is not None for each in canary(run, now_ms).since):
            self._is_found("AUD-07", CLUSTER, "found", lasts=True)


def beat(broker: int, incarnation: int, seq: int, at_ms: int) -> Told:
    event = Heartbeat(
        event_id=f"beat {broker} {incarnation} {seq}",
        occurred_at_ms=at_ms,
        cluster_id="c1",
        last_seq=seq - 1,
        log_count=0,
        log_seqs_digest="",
        lost_count=0,
        metadata_offset=None,
    )
    speaker = Speaker(broker, "agent", incarnation)
    return Told(event=event, speaker=speaker, seq=seq, log_seq=None, observed_at_ms=at_ms)


def files_are_joined(week: Week) -> int:
    DeltaTable.forPath(week.spark, week.table).optimize().executeCompaction()
    return 0


def append_only_is_said_again(week: Week) -> int:
    week.alter("SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    return 0


def rows_are_deleted(week: Week) -> int:
    """And appendOnly put back, as if nothing had been."""
    week.alter("SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    table = DeltaTable.forPath(week.spark, week.table)
    [oldest] = table.toDF().agg(F.min("kafka_offset")).collect()
    table.delete(F.col("kafka_offset") == oldest[0])
    week.alter("SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    return 2


def append_only_is_unset(week: Week) -> int:
    week.alter("UNSET TBLPROPERTIES ('delta.appendOnly')")
    week.alter("SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    return 1


def a_property_is_set(week: Week) -> int:
    week.alter("SET TBLPROPERTIES ('seen.by' = 'somebody')")
    return 1


def rows_are_added(week: Week) -> int:
    """By no ingest: an old row once more."""
    rows = week.spark.read.format("delta").load(week.table).orderBy("kafka_offset").limit(1)
    rows.write.format("delta").mode("append").save(week.table)
    return 1


ACTS: tuple[Callable[[Week], int], ...] = (
    files_are_joined,
    append_only_is_said_again,
    rows_are_deleted,
    append_only_is_unset,
    a_property_is_set,
    rows_are_added,
)


@pytest.mark.long  # seven runs a week
@pytest.mark.timeout(7200)
def test_a_run_finds_what_was_done_to_the_auditor_and_nothing_else(
    spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """After every run of every week; and each thing was done at least once."""
    done: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + WEEKS):
        week = Week(spark, tmp_path / str(seed), seed)
        week.begins()
        for number in range(1, DAYS):
            week.a_day_goes_by(number)
            assert week.found() == week.happened | week.lasts, f"seed {seed}, day {number}: {week.done}"
        done += week.done
    seeds = [FIRST_SEED, FIRST_SEED + WEEKS]
    measured = {"seeds": seeds, "runs": WEEKS * DAYS, "done": dict(sorted(done.items()))}
    record_property("measured", measured)
    print(json.dumps(measured))  # noqa: T201  the rate and the seeds are the result

    said = {"AUD-04", "AUD-05 cadence", "AUD-05 logs", "AUD-06", "AUD-07 found"}
    assert said | {each.__name__ for each in ACTS} <= set(done)
