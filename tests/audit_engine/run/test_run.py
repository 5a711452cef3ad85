"""Runs over real tables: the same judgement as the machine's, whatever way the evidence took to get there.

The seventeen faults and the untouched fixtures are one table, a cluster each, as a day's evidence would be.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.errors import AsOfAhead, AsOfBeforeLastRun, NoSuchRun, NothingIngested
from audit_engine.run.outcomes import told as as_json
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.spark import RunSummary
from audit_engine.tables.results import FINDINGS, RUNS, STATEMENTS
from rules.events import Heartbeat, LogEvent
from rules.identity import LogId
from rules.machine import Speaker, Terms, Told, fold, newborn
from rules.machine.verdict import Judgement, Verdict, judge
from tests.audit_engine.run.evidence import NOW_MS, Evidence
from tests.rules.machine.faults import FAULTS
from tests.rules.machine.histories import HOUR_MS, LOG, MINUTE_MS, T0_MS, TOPIC, fixture

TERMS = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A history in a cluster of its own."""

    name: str
    cluster_id: str
    said: tuple[Told, ...]
    end_ms: int

    def judged(self, as_of_ms: int) -> Judgement:
        """What the machine says, without Spark."""
        log = LogId(self.cluster_id, LOG.topic_id, LOG.partition)
        said = [each for each in self.said if not isinstance(each.event, Heartbeat)]  # about no log
        state = fold(newborn(log, TOPIC), said, TERMS, as_of_ms=as_of_ms)
        return judge(state, TERMS, from_ms=0)


def moved(told: Told, cluster_id: str) -> Told:
    """The same, said in another cluster."""
    event = told.event
    assert event is not None
    if isinstance(event, LogEvent):
        return replace(told, event=replace(event, log=event.log._replace(cluster_id=cluster_id)))
    about: Any = event  # all others name their cluster
    return replace(told, event=replace(about, cluster_id=cluster_id))


def beats(said: Iterable[Told], cluster_id: str, *moments_ms: int) -> list[Told]:
    """Each emitter says at these moments that it lives, behind what it said before."""
    found = list(said)
    for at_ms in moments_ms:
        last: dict[Speaker, int] = {}
        for each in found:
            if each.observed_at_ms <= at_ms:
                last[each.speaker] = max(each.seq, last.get(each.speaker, 0))
        for speaker, seq in sorted(last.items()):
            event = Heartbeat(
                event_id=f"beat {cluster_id} {speaker} {at_ms}",
                occurred_at_ms=at_ms,
                cluster_id=cluster_id,
                last_seq=seq,
                log_count=1,
                log_seqs_digest="",
                lost_count=0,
                metadata_offset=None,
            )
            found = [
                replace(each, seq=each.seq + 1) if each.speaker == speaker and each.seq > seq else each
                for each in found
            ]
            found.append(Told(event=event, speaker=speaker, seq=seq + 1, log_seq=None, observed_at_ms=at_ms))
    return found


def scenarios() -> list[Scenario]:
    histories = [(fault.name, fault.make(fault.mode)) for fault in FAULTS]
    histories += [(f"untouched {mode}", fixture(mode).after(hours=2)) for mode in ("kip405", "ours", "none")]
    end_ms = max(history.now_ms for _, history in histories)
    found = []
    for number, (name, history) in enumerate(histories):
        cluster_id = f"cluster-{number:02}"
        said = beats((moved(told, cluster_id) for told in history.told), cluster_id, CUT_MS, end_ms)
        found.append(Scenario(name=name, cluster_id=cluster_id, said=tuple(said), end_ms=end_ms))
    return found


CUT_MS = T0_MS + 20 * MINUTE_MS
ALL = scenarios()
END_MS = ALL[0].end_ms


def found(verdicts: Verdicts) -> dict[str, list[dict[str, object]]]:
    """What stands after the last run about logs, by cluster."""
    by_cluster: dict[str, list[dict[str, object]]] = {each.cluster_id: [] for each in ALL}
    for each in verdicts.findings():
        if each["rule_id"].startswith("AUD-"):
            continue
        by_cluster[str(each["subject"]).partition("/")[0]].append(each)
    return by_cluster


def by_id(findings: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(findings, key=lambda each: str(each["finding_id"]))


@pytest.fixture(scope="module")
def in_one_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, RunSummary]:
    """Everything twice and in any order of arrival, judged in one run."""
    evidence = Evidence(spark, tmp_path_factory.mktemp("one"))
    said = [told for each in ALL for told in each.said] * 2
    random.Random(405).shuffle(said)
    evidence.add(said)
    docs = Path(evidence.root).parent / "docs"
    return evidence, evidence.audit(TERMS, has_gate=True, docs=docs).next(END_MS)


def test_each_fault_is_found_as_the_machine_finds_it(
    spark: SparkSession, in_one_run: tuple[Evidence, RunSummary]
) -> None:
    """Through tables, Spark and back: the same findings, ids and verdicts as the machine's by itself."""
    evidence, summary = in_one_run
    verdicts = Verdicts(spark, evidence.root)
    stated = {each["cluster_id"]: each for each in verdicts.statements(TOPIC, 0)}
    standing = found(verdicts)

    for each in ALL:
        judged = each.judged(END_MS)
        assert by_id(standing[each.cluster_id]) == by_id([as_json(one) for one in judged.findings]), each.name
        assert stated[each.cluster_id]["verdict"] == judged.verdict.value, each.name
        assert stated[each.cluster_id]["statement_hash"] == judged.statement.hash, each.name
    assert (summary.run, summary.logs, summary.verdict) == (1, len(ALL), Verdict.VIOLATION)
    assert summary.verdicts["PASS"] >= 3


def test_a_run_judged_again_comes_to_the_same(
    spark: SparkSession, in_one_run: tuple[Evidence, RunSummary]
) -> None:
    """The same evidence as of the same moment: one row of the run, one hash; rows of the attempt before are
    nobody's."""
    evidence, first = in_one_run
    before = found(Verdicts(spark, evidence.root))

    again = evidence.audit(TERMS, has_gate=True).again(1)

    assert again.content_hash == first.content_hash
    assert found(Verdicts(spark, evidence.root)) == before
    assert spark.read.format("delta").load(f"{evidence.root}/{RUNS}").count() == 1
    assert spark.read.format("delta").load(f"{evidence.root}/{STATEMENTS}").count() == 2 * len(ALL)
    with pytest.raises(NoSuchRun):
        evidence.audit(TERMS).again(7)


def test_several_runs_and_late_evidence_come_to_the_same(
    spark: SparkSession, in_one_run: tuple[Evidence, RunSummary], tmp_path: Path
) -> None:
    """A run in the middle of each history, a tenth of its events arriving only after it; then the rest. What
    is missing is told while it is missing. The findings are those of one run, each was opened once, and a
    third run with nothing new changes nothing."""
    evidence = Evidence(spark, tmp_path)
    chance = random.Random(405)
    early: list[Told] = []
    late: list[Told] = []
    for told in (told for each in ALL for told in each.said):
        is_early = told.observed_at_ms <= CUT_MS and chance.random() > 0.1
        (early if is_early else late).append(told)

    evidence.add(early)
    first = evidence.audit(TERMS).next(CUT_MS)
    missing = open_findings(spark, evidence, "AUD-01")
    evidence.add(late)
    second = evidence.audit(TERMS).next(END_MS)
    third = evidence.audit(TERMS).next(END_MS)

    assert (first.run, second.run, third.run) == (1, 2, 3)
    assert len(missing) > len(ALL)
    assert open_findings(spark, evidence, "AUD-01") == []
    assert second.refolded > 0
    one_run = found(Verdicts(spark, in_one_run[0].root))
    several = found(Verdicts(spark, evidence.root))
    for each in ALL:
        assert by_id(several[each.cluster_id]) == by_id(one_run[each.cluster_id]), each.name
    assert third.changes == {}
    opened = spark.read.format("delta").load(f"{evidence.root}/{FINDINGS}").where("change = 'opened'")
    assert opened.count() == opened.select("finding_id").distinct().count()


def open_findings(spark: SparkSession, evidence: Evidence, rule_id: str) -> list[str]:
    told = Verdicts(spark, evidence.root).findings()
    return [each["subject"] for each in told if each["rule_id"] == rule_id and each["status"] == "open"]


def test_an_event_that_never_came_is_no_pass(spark: SparkSession, tmp_path: Path) -> None:
    """One event of an untouched log is missing: AUD-01 and INDETERMINATE. It lay in quarantine, is taken up
    at its old offset: resolved, PASS."""
    [untouched] = [each for each in ALL if each.name == "untouched kip405"]
    of_log = [each for each in untouched.said if each.log_seq is not None and each.observed_at_ms < CUT_MS]
    lost = of_log[len(of_log) // 2]
    evidence = Evidence(spark, tmp_path)
    evidence.add((each for each in untouched.said if each != lost), quarantined=3)

    without = evidence.audit(TERMS).next(END_MS)
    missing = open_findings(spark, evidence, "AUD-01")
    evidence.replay(lost, offset=3)
    whole = evidence.audit(TERMS).next(END_MS)

    assert missing == [f"{untouched.cluster_id}/emitter {lost.speaker.broker_id}/{lost.speaker.component}"]
    assert (without.verdict, without.verdicts) == (Verdict.INDETERMINATE, {"INDETERMINATE": 1})
    assert (whole.verdict, whole.verdicts) == (Verdict.PASS, {"PASS": 1})
    assert whole.changes == {"resolved": 1}


def test_what_cannot_be_judged_is_refused(
    spark: SparkSession, in_one_run: tuple[Evidence, RunSummary], tmp_path: Path
) -> None:
    """An empty table, a moment before the last run's, one still to come: each says so, and no run is left."""
    evidence, _ = in_one_run

    with pytest.raises(NothingIngested):
        Evidence(spark, tmp_path).audit(TERMS).next(1)
    with pytest.raises(AsOfBeforeLastRun):
        evidence.audit(TERMS).next(END_MS - 1)
    with pytest.raises(AsOfAhead):
        evidence.audit(TERMS).next(NOW_MS + 1)

    assert len(Verdicts(spark, evidence.root).runs(10)) == 1


def test_the_gate_finds_nothing_amiss_in_an_ordinary_slice(
    spark: SparkSession, in_one_run: tuple[Evidence, RunSummary]
) -> None:
    """All that is expected of a slice is so, and Great Expectations has written its pages."""
    evidence, _ = in_one_run

    [row] = Verdicts(spark, evidence.root).runs(1)

    assert {each["name"]: each["is_met"] for each in row["gate"]} == dict.fromkeys(
        ("volume", "read", "quarantined", "clocks"), True
    )
    assert (Path(evidence.root).parent / "docs" / "index.html").exists()


def test_a_log_of_which_something_may_be_missing_is_doubted(spark: SparkSession, tmp_path: Path) -> None:
    """Clocks an hour ahead of the broker's, and emitters that fell silent: INDETERMINATE, both named."""
    [untouched] = [each for each in ALL if each.name == "untouched none"]
    evidence = Evidence(spark, tmp_path, at_ms=END_MS - HOUR_MS)
    evidence.add(untouched.said)

    summary = evidence.audit(TERMS, has_gate=True).next(END_MS + HOUR_MS)

    verdicts = Verdicts(spark, evidence.root)
    [row] = verdicts.runs(1)
    [stated] = verdicts.statements(TOPIC, 0)
    assert {each["name"] for each in row["gate"] if not each["is_met"]} == {"clocks"}
    assert summary.verdicts == {"INDETERMINATE": 1}
    assert any("clocks run ahead" in each for each in stated["missing"])
    assert any(each.startswith("silent: ") for each in stated["missing"])
    assert len(open_findings(spark, evidence, "AUD-03")) >= 3
