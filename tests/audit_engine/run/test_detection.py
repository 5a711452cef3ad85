"""Detection and false alarms, measured through the run: random histories with random faults, judged by a run
over tables, and by the second judge, which shares no code with the machine: of the log, its tier, its limits,
and of watermarks that rise.

SEAWALL_TEST_RUN_HISTORIES   how many, 60 unless told; thousands take an hour
SEAWALL_TEST_RUN_SEED        the first seed; the others follow it
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.outcomes import finding_of
from audit_engine.run.reading.spark import Verdicts
from rules.machine import Told
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats, moved
from tests.rules.machine.brute_emitters import JUDGED as HEARD
from tests.rules.machine.brute_emitters import EmitterJudge
from tests.rules.machine.brute_limits import LimitsJudge, too_fast
from tests.rules.machine.brute_tiers import TierJudge
from tests.rules.machine.comparing import (
    by_brute_force,
    by_machine,
    compared,
    hours_by_machine,
    is_a_matter_of_words,
    kept_by_machine,
    made_of_nothing_by_machine,
    tiers_by_machine,
)
from tests.rules.machine.histories import TERMS, History
from tests.rules.machine.random_days import random_history
from tests.rules.machine.random_limits import random_limits, random_rises
from tests.rules.machine.random_tiers import random_tier
from tests.rules.machine.test_second_judge_of_emitters import random_words

HISTORIES = int(os.environ.get("SEAWALL_TEST_RUN_HISTORIES", "60"))
FIRST_SEED = int(os.environ.get("SEAWALL_TEST_RUN_SEED", "4050000"))
Compared = Iterator[tuple[str, set[Any], set[Any]]]  # of a rule: what was found, what is true


def days_compared(h: History, judgement: Any) -> Compared:
    found, truth = by_machine(judgement), by_brute_force(h)
    yield from ((rule_id, found[rule_id], truth[rule_id]) for rule_id in compared(h))


def tiers_compared(h: History, judgement: Any) -> Compared:
    (ever, last), (ever_true, last_true) = tiers_by_machine(judgement), TierJudge(h.told, h.now_ms).judge()
    yield from ((rule_id, ever[rule_id], ever_true[rule_id]) for rule_id in ever_true)
    yield from ((f"{rule_id} still", last[rule_id], last_true[rule_id]) for rule_id in last_true)


def limits_compared(h: History, judgement: Any) -> Compared:
    judge = LimitsJudge(h.told, h.now_ms)
    yield "RET-05", kept_by_machine(judgement), judge.kept_too_long()
    if not is_a_matter_of_words(h):
        yield "OPS-02", hours_by_machine(judgement), {hour for hour, _ in too_fast([judge])}


def rises_compared(h: History, judgement: Any) -> Compared:
    judge = LimitsJudge(h.told, h.now_ms)
    yield "HWM-03", made_of_nothing_by_machine(judgement), set(judge.made_of_nothing())


SORTS: dict[str, tuple[Callable[[int], History], Callable[[History, Any], Compared]]] = {
    "days": (random_history, days_compared),
    "tiers": (random_tier, tiers_compared),
    "limits": (random_limits, limits_compared),
    "rises": (random_rises, rises_compared),
}


@pytest.mark.long  # as many histories as anybody has patience for
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("sort", SORTS)
def test_a_run_finds_what_is_true_and_nothing_else(
    spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None], sort: str
) -> None:
    """Each history is a cluster of one table; its events come in no order, some of them twice. By rule and to
    the offset, what the run finds is what the second judge says."""
    made, compare = SORTS[sort]
    seeds = range(FIRST_SEED, FIRST_SEED + HISTORIES)
    histories = {f"cluster-{seed}": made(seed) for seed in seeds}
    end_ms = max(h.now_ms for h in histories.values())
    said = []
    for name, h in histories.items():
        h.now_ms = end_ms
        own = beats([moved(each, name) for each in h.told], name, end_ms)
        said += [*own, *own[:: random.Random(name).randint(2, 9)]]
    random.Random(FIRST_SEED).shuffle(said)
    evidence = Evidence(spark, tmp_path)
    evidence.add(said)
    evidence.audit(TERMS).next(end_ms)

    by_cluster: dict[str, list[Any]] = {name: [] for name in histories}
    for each in Verdicts(spark, evidence.root).findings():
        cluster_id = str(each["subject"]).partition("/")[0]
        is_of_log = each["anchor"] == "scrub"  # the rest of AUD-* is of emitters, and of runs
        if is_of_log or not each["rule_id"].startswith("AUD-"):
            by_cluster[cluster_id].append(finding_of(each))
    told: Counter[tuple[str, str]] = Counter()
    wrong: dict[str, Any] = {}
    for name, h in histories.items():
        for rule_id, found, truth in compare(h, SimpleNamespace(findings=by_cluster[name])):
            told[rule_id, "true"] += len(truth)
            told[rule_id, "missed"] += len(truth - found)
            told[rule_id, "false"] += len(found - truth)
            if found != truth:
                wrong[f"{name} {rule_id}"] = (found, truth)
    true, missed, false = (
        sum(n for (_, of), n in told.items() if of == kind) for kind in ("true", "missed", "false")
    )
    measured = {
        "sort": sort,
        "seeds": [seeds.start, seeds.stop],
        "events": len(said),
        "found": true - missed,
        "missed": missed,
        "false": false,
        "rate": round((true - missed) / max(1, true), 6),
        "by_rule": {rule_id: count for (rule_id, kind), count in sorted(told.items()) if kind == "true"},
    }
    record_property("measured", measured)
    print(json.dumps(measured))  # noqa: T201  the rate and the seeds are the result

    assert wrong == {}
    assert true > HISTORIES


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_run_hears_what_is_true_of_emitters(
    spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Holes, doubles and silence of random emitters, each history a cluster: AUD-01 to AUD-03 by emitter and
    number, as the second judge says."""
    seeds = range(FIRST_SEED, FIRST_SEED + HISTORIES)
    words = {f"cluster-{seed}": random_words(seed) for seed in seeds}
    end_ms = max(ended_ms for _, _, ended_ms in words.values())
    said = {
        name: [later(moved(each, name), end_ms - ended_ms) for each in told]
        for name, (told, _, ended_ms) in words.items()
    }
    evidence = Evidence(spark, tmp_path)
    evidence.add(each for own in said.values() for each in own)
    evidence.audit(TERMS).next(end_ms)

    found: dict[str, dict[str, set[Any]]] = {name: {rule_id: set() for rule_id in HEARD} for name in said}
    for each in Verdicts(spark, evidence.root).findings():
        cluster_id, _, emitter = str(each["subject"]).partition("/emitter ")
        if each["rule_id"] in HEARD and emitter:
            found[cluster_id][each["rule_id"]].add((emitter, each["anchor"]))
    truth = {name: EmitterJudge(own, own, end_ms).judge() for name, own in said.items()}
    fired = {rule_id: sum(bool(each[rule_id]) for each in truth.values()) for rule_id in HEARD}
    measured = {"seeds": [seeds.start, seeds.stop], "events": sum(map(len, said.values())), "fired": fired}
    record_property("measured", measured)
    print(json.dumps(measured))  # noqa: T201  the rate and the seeds are the result

    wrong = {
        f"{name} {rule_id}": (found[name][rule_id], truth[name][rule_id])
        for name in said
        for rule_id in HEARD
        if found[name][rule_id] != truth[name][rule_id]
    }
    assert wrong == {}
    assert all(0 < count < HISTORIES for count in fired.values()), fired


def later(told: Told, by_ms: int) -> Told:
    """The same, said so much later."""
    event: Any = told.event
    at_ms = event.occurred_at_ms + by_ms
    return replace(
        told, event=replace(event, occurred_at_ms=at_ms), observed_at_ms=told.observed_at_ms + by_ms
    )
