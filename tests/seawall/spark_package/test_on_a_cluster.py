"""Ingest, run and maintain, submitted as a package to a standalone master with two workers: the same as here.

An executor and then a worker are killed under each of them; see `both`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.tables.columns import EVENTS, QUARANTINE
from audit_engine.tables.results import FINDINGS, STATE, STATEMENTS
from rules.machine import Terms
from seawall.local.bucket import LocalBucket
from tests.audit_engine.run.test_run import ALL, END_MS
from tests.cluster.secure import USER, SecureBroker
from tests.rules.machine.histories import HOUR_MS
from tests.seawall.spark_package.both import BEFORE, EARLY, Both, judging, tables_twice
from tests.seawall.spark_package.submitted import Done

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400)]  # three steps here, and there on six JVMs

FIRST_TASKS = 3  # that an executor is let do before it is killed
NAMES, SUFFIXES = ("stdout", "stderr"), (".log", ".err", ".out")


@pytest.fixture(scope="module")
def both(
    spark: SparkSession,
    secure_broker: SecureBroker,
    bucket: LocalBucket,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Both]:
    with tables_twice(spark, secure_broker, bucket, tmp_path_factory.mktemp("spark-package")) as made:
        yield made


@pytest.fixture(scope="module")
def ingested(both: Both) -> tuple[Done, Any]:
    return both.do_there("ingest", after=FIRST_TASKS), both.do_here("ingest")


def test_ingest_takes_the_same_events(both: Both, ingested: tuple[Done, Any]) -> None:
    """By TLS and SCRAM into S3A: as many offsets, and row for row the same as in a folder here."""
    there, here = ingested

    assert there.said["offsets"] == here["offsets"] > 1_000
    assert here["batches"] > 2
    for table in (EVENTS, QUARANTINE):
        assert both.evidence(both.there, table) == both.evidence(both.here, table), table
    assert both.evidence(both.here, EVENTS).total() == sum(len(each.said) for each in ALL)


@pytest.fixture(scope="module")
def judged(both: Both, ingested: tuple[Done, Any]) -> tuple[Done, Any]:
    assert ingested
    step = judging(END_MS + HOUR_MS)
    return both.do_there(*step, after=FIRST_TASKS), both.do_here(*step)


def test_a_run_comes_to_the_same(both: Both, judged: tuple[Done, Any]) -> None:
    """Verdicts, changes and the hash over all of it; and row for row states, statements and findings."""
    there, here = judged

    assert there.said == here
    assert (here["run"], here["logs"]) == (2, len(ALL))
    assert here["verdicts"]["VIOLATION"] > 10
    for table in (STATE, STATEMENTS, FINDINGS):
        assert both.results(both.there, table) == both.results(both.here, table), table
        assert both.results(both.here, table), table


@pytest.fixture(scope="module")
def later(both: Both, judged: tuple[Done, Any]) -> tuple[Any, Any]:
    """A run beyond the lateness of the one before: nothing goes on from the states of the first any more."""
    assert judged
    as_of_ms = END_MS + HOUR_MS + Terms().lateness_ms + HOUR_MS
    return both.judge_here(as_of_ms=as_of_ms, tables=both.there), both.judge_here(as_of_ms=as_of_ms)


@pytest.fixture(scope="module")
def kept(both: Both, later: tuple[Any, Any]) -> tuple[Done, Any]:
    assert later[0] == later[1]
    return both.do_there("maintain", after=FIRST_TASKS), both.do_here("maintain")


def test_upkeep_leaves_the_same(both: Both, later: tuple[Any, Any], kept: tuple[Done, Any]) -> None:
    """The closed day is one file, spent states are gone, nothing is left to do and no row is another.

    And a run that is judged again here, on what the cluster left, comes to the hash of before.
    """
    there, here = kept

    for said in (there.said, here):
        told = {each["table"]: each for each in said}
        [day] = told[EVENTS]["days"]
        assert (day["day"], day["files"] > 1, day["files_now"]) == (BEFORE, True, 1)
        assert told[STATE]["spent_states"] == EARLY
    for root in (both.there, both.here):
        left = both.do_here("maintain", "--dry-run", tables=root)
        assert [each["table"] for each in left if each.get("days") or each.get("spent_states")] == []
    assert both.evidence(both.there, EVENTS) == both.evidence(both.here, EVENTS)
    for table in (STATE, STATEMENTS, FINDINGS):
        assert both.results(both.there, table) == both.results(both.here, table), table
    again = both.do_here("run", "--again", "3", "--no-alerts", "--no-holds", tables=both.there)
    assert again["content_hash"] == later[1]["content_hash"]


def test_no_log_of_the_cluster_has_the_password(both: Both, kept: tuple[Done, Any]) -> None:
    """Neither a driver's nor a server's nor an executor's; nor a command line, which spark-submit's is."""
    assert kept
    logs = [each for each in both.package.folder.rglob("*") if each.name in NAMES or each.suffix in SUFFIXES]

    assert both.password == USER.password
    assert len(logs) > 10
    for log in logs:
        assert both.password not in log.read_text(errors="replace"), log
