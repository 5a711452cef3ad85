"""What a run reads and what is kept for later ones: no row left out, no state that nobody can need."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from audit_engine.run.errors import SliceIncomplete, StatesGone
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.spent.spark import remove_spent_states
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.results import STATE
from audit_engine.tables.spark import EvidenceTable
from rules.machine import Terms, Told
from rules.machine.verdict import Verdict
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats, moved
from tests.rules.machine.histories import DAY_MS, MIB, History, fixture


def days(h: History, count: int) -> tuple[list[list[Told]], list[int]]:
    """A slice a day: the fixture, then two readings of each day, by brokers that beat."""
    h.after(hours=2)
    moments = [h.now_ms]
    for day in range(1, count):
        h.after(hours=24)
        h.watermark(1, 10_500 + day, size_bytes=MIB, start=0)
        h.watermark(2, 10_500 + day, size_bytes=MIB, start=0)
        moments.append(h.now_ms)
    whole = beats([moved(each, "c1") for each in h.told], "c1", *moments)
    slices: list[list[Told]] = [[] for _ in moments]
    for each in whole:
        slices[sum(each.observed_at_ms > moment for moment in moments[:-1])].append(each)
    return slices, moments


def test_rows_under_a_day_that_is_long_past_are_judged_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Ingest's clock lags by a year on the second day: its rows are found by their count, and judged. Rows
    that were removed from the table are missed: nothing is judged without them."""
    slices, moments = days(fixture("none"), 2)
    evidence = Evidence(spark, tmp_path)
    evidence.add(slices[0])
    audit = evidence.audit(Terms())
    audit.next(moments[0])
    evidence.add(slices[1], day="2024-11-18")

    lagging = audit.next(moments[1])
    counts = Verdicts(spark, evidence.root).runs(1)[0]["counts"]

    assert (lagging.events, lagging.verdict) == (len(slices[1]), Verdict.PASS)
    assert counts["by_day"] is False

    table = DeltaTable.forPath(spark, f"{evidence.root}/{EVENTS}")
    alter = f"ALTER TABLE delta.`{evidence.root}/{EVENTS}` SET TBLPROPERTIES ('delta.appendOnly' = "
    spark.sql(f"{alter}'false')")
    table.delete("ingest_day = DATE '2024-11-18' AND kind = 'heartbeat'")
    spark.sql(f"{alter}'true')")
    with pytest.raises(SliceIncomplete):
        audit.again(2)


def test_what_ingest_adds_while_a_run_is_cut_is_not_half_of_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a look at the table's last number and one at its last offsets a commit comes, as beside any
    ingest that goes on: both are of one commit, and all rows of it are judged."""
    slices, moments = days(fixture("none"), 2)
    evidence = Evidence(spark, tmp_path)
    evidence.add(slices[0])
    honest = EvidenceTable._last_number

    def overtaken(table: EvidenceTable) -> int:
        number = honest(table)
        monkeypatch.setattr(EvidenceTable, "_last_number", honest)
        evidence.add(slices[1])
        return number

    monkeypatch.setattr(EvidenceTable, "_last_number", overtaken)
    ran = evidence.audit(Terms()).next(moments[1])

    assert (ran.events, ran.verdict) == (len(slices[0]) + len(slices[1]), Verdict.PASS)


@pytest.mark.long  # seven runs
def test_states_that_no_run_can_need_go_and_all_others_stay(spark: SparkSession, tmp_path: Path) -> None:
    """Six days, of which the days with something late leave a state; what is older than the newest behind a
    horizon of two days is removed. What comes late then is judged as ever, the last run is judged again, and
    one that went on from what is gone is not."""
    terms = Terms(lateness_ms=2 * DAY_MS)
    slices, moments = days(fixture("none"), 7)
    late = {day: next(each for each in slices[day] if each.log_seq is not None) for day in (1, 4, 5)}
    evidence = Evidence(spark, tmp_path)
    for day, moment in enumerate(moments[:6]):
        from_before = [late[day - 1]] if day in (2, 5) else []
        evidence.add([*from_before, *(each for each in slices[day] if each is not late.get(day))])
        evidence.audit(terms).next(moment)
    states = spark.read.format("delta").load(f"{evidence.root}/{STATE}")
    before = {row["run"] for row in states.select("run").collect()}

    would = remove_spent_states(spark, evidence.root, terms, is_dry_run=True)
    removed = remove_spent_states(spark, evidence.root, terms)
    more = remove_spent_states(spark, evidence.root, terms)
    states = spark.read.format("delta").load(f"{evidence.root}/{STATE}")
    after = {row["run"] for row in states.select("run").collect()}
    evidence.add([late[5], *slices[6]])
    last = evidence.audit(terms).next(moments[6])

    assert would == removed == len(before) - len(after)
    assert after < before
    assert max(before) in after
    assert more == 0
    assert (last.refolded, last.verdict) == (1, Verdict.PASS)
    assert evidence.audit(terms).again(7).content_hash == last.content_hash
    with pytest.raises(StatesGone):
        evidence.audit(terms).again(2)


@pytest.mark.long  # four runs
def test_no_run_is_judged_again_over_less_than_it_went_on_from(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is heard of a log for longer than the horizon: its older states go, but for what the last run
    went on from. A run in between is refused, and not judged without."""
    terms = Terms(lateness_ms=2 * DAY_MS)
    slices, moments = days(fixture("none"), 2)
    evidence = Evidence(spark, tmp_path)
    runs = []
    for said, moment in [*zip(slices, moments, strict=True), ([], moments[1] + 5 * DAY_MS)]:
        evidence.add(said)
        runs.append(evidence.audit(terms).next(moment))
    runs.append(evidence.audit(terms).next(moments[1] + 6 * DAY_MS))

    removed = remove_spent_states(spark, evidence.root, terms)
    again = evidence.audit(terms).again(4)

    assert removed
    assert again.content_hash == runs[3].content_hash
    with pytest.raises(StatesGone):
        evidence.audit(terms).again(3)
