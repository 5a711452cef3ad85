"""Emitters are heard natively, by ranges of their numbers: the same as number by number."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from audit_engine.run.evidence.spark import told
from audit_engine.run.kept.spark import Kept
from audit_engine.run.listening import said_of
from audit_engine.run.listening.spark import digested, heard
from audit_engine.run.one_log import Task, canonical
from audit_engine.run.results.spark import Results
from audit_engine.run.told import row_of
from audit_engine.tables.columns import EVENTS
from audit_engine.tables.results import EMITTERS
from rules.events import Heartbeat, LogBaseline
from rules.machine import Told
from rules.machine.emitters import Heard, listen, summed
from rules.machine.spans import normal
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats, moved
from tests.rules.machine.histories import HOUR_MS, TERMS, fixture
from tests.rules.machine.random_days import random_history

HISTORIES = 40


def rows_of(said: Iterable[Told]) -> list[dict[str, Any]]:
    """What Spark makes of one emitter's events, made by hand."""
    runs: dict[int, list[Told]] = defaultdict(list)
    for each in said:
        runs[each.speaker.incarnation].append(each)
    found: list[dict[str, Any]] = []
    for incarnation, own in runs.items():
        beats = [each.event.last_seq + 1 for each in own if isinstance(each.event, Heartbeat)]
        found.append(
            {
                "incarnation": incarnation,
                "logs": None,
                "ranges": [end for span in normal((each.seq, each.seq + 1) for each in own) for end in span],
                "last_ms": max(each.observed_at_ms for each in own),
                "watches_disks": any(isinstance(each.event, LogBaseline) for each in own),
                "follows": [part for each in own if each.follows for part in each.follows],
                "told_to": max(beats, default=None),
                "elsewhere": [],
            }
        )
        logs: dict[str, list[int]] = defaultdict(list)
        for each in own:
            if each.log_seq is not None:
                row = row_of(each)
                logs[f"{row['topic_id']}:{row['partition']}"] += [each.log_seq, each.log_seq + 1]
        found += [{"incarnation": incarnation, "logs": json.dumps(logs)}]
    return found


def maimed(said: list[Told], chance: random.Random) -> list[Told]:
    """Some lost, some told twice, one under another number, one number with another content."""
    kept = [each for each in said if chance.random() > 0.05]
    found = [*kept, *chance.sample(kept, len(kept) // 5)]
    if chance.random() < 0.3:
        one = chance.choice([each for each in kept if each.log_seq is not None])
        event: Any = one.event
        other = replace(one, event=replace(event, occurred_at_ms=event.occurred_at_ms + 1))
        found.append(other if chance.random() < 0.5 else replace(other, seq=one.seq + 1_000))
    chance.shuffle(found)
    return found


def test_what_is_summed_up_is_what_was_said() -> None:
    """Random days, maimed, with new runs of emitters that say which they follow."""
    for seed in range(150):
        chance = random.Random(seed)
        said = maimed(beats(random_history(seed).told, "c1", 2**52), chance)
        newer = [
            replace(
                each,
                speaker=each.speaker._replace(incarnation=each.speaker.incarnation + 1),
                follows=(each.speaker.incarnation, each.seq + 3) if each.seq == 0 else None,
            )
            for each in said
            if chance.random() < 0.2
        ]
        for each in summed([*said, *newer]):
            own = [
                one
                for one in [*said, *newer]
                if (one.speaker.broker_id, one.speaker.component) == (each.broker_id, each.component)
            ]
            rows = rows_of(own)
            chance.shuffle(rows)
            assert said_of(each.broker_id, each.component, rows) == each, seed


def as_put_down(cluster_id: str, name: str, found: Heard) -> dict[str, Any]:
    """What an emitter's row of `audit_emitters` has, by the machine's own words."""
    state = found.states[name]
    gaps = [
        row_of(told)
        for loss in found.losses
        if (loss.speaker.broker_id, loss.speaker.component) == (state.broker_id, state.component)
        for told in loss.as_gaps(cluster_id)
    ]
    own = [each for each in found.findings if each.subject == f"emitter {name}"]
    about = sorted((each.rule_id, each.anchor, each.note) for each in own)
    numbers = {
        "runs": [[run.incarnation, [list(each) for each in run.numbers], run.told_to] for run in state.runs],
        "log_numbers": {log: [list(each) for each in spans] for log, spans in state.log_numbers.items()},
    }
    return {"gaps": json.loads(canonical(gaps)), "about": about, **numbers}


TASK = Task(terms=TERMS, from_ms=0, as_of_ms=2**52)


def test_natively_emitters_are_heard_as_number_by_number(spark: SparkSession, tmp_path: Path) -> None:
    """Random days of as many clusters, maimed, in one table: what is carried of each emitter, the gaps that
    logs are told, and AUD-01 to AUD-03 are the machine's."""
    evidence = Evidence(spark, tmp_path)
    by_cluster: dict[str, list[Told]] = {}
    for seed in range(HISTORIES):
        name, chance = f"cluster-{seed:02}", random.Random(seed)
        h = random_history(seed) if seed % 2 else fixture("ours").after(hours=2)
        said = beats([moved(each, name) for each in h.told], name, h.now_ms)
        by_cluster[name] = maimed(said, chance) if seed % 4 else said * 2
    as_of_ms = max(each.observed_at_ms for said in by_cluster.values() for each in said) - HOUR_MS
    evidence.add(each for said in by_cluster.values() for each in said)

    rows = told(spark.read.format("delta").load(f"{evidence.root}/{EVENTS}"))
    task = replace(TASK, as_of_ms=as_of_ms)
    with Kept() as kept:
        slice_ = digested(rows, as_of_ms, kept, with_bodies=False)
        none = Results(spark, evidence.root).nothing(EMITTERS)
        natively = heard(rows, slice_, none, task, kept)[0].collect()

    assert slice_.seen.events == sum(map(len, by_cluster.values()))
    assert slice_.seen.left == sum(
        each.observed_at_ms > as_of_ms for said in by_cluster.values() for each in said
    )
    wanted = {
        (cluster_id, name): as_put_down(cluster_id, name, found)
        for cluster_id, said in by_cluster.items()
        for found in [listen({}, said, TERMS, as_of_ms=as_of_ms)]
        for name in found.states
    }
    assert {
        (row["cluster_id"], f"{row['broker_id']}/{row['component']}"): {
            "gaps": json.loads(row["gaps"]),
            "about": sorted((e["rule_id"], e["anchor"], e["note"]) for e in json.loads(row["findings"])),
            "runs": [each[:3] for each in json.loads(row["state"])["runs"]],
            "log_numbers": json.loads(row["state"])["log_numbers"],
        }
        for row in natively
    } == wanted
    assert {rule_id for each in wanted.values() for rule_id, *_ in each["about"]} >= {"AUD-01", "AUD-02"}
