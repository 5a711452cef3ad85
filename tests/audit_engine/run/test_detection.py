"""Detection and false alarms, measured through the run: random histories with random faults, judged by a run
over tables, and by the second judge, which shares no code with the machine.

SEAWALL_TEST_RUN_HISTORIES   how many, 60 unless told; thousands take an hour
SEAWALL_TEST_RUN_SEED        the first seed; the others follow it
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.outcomes import finding_of
from audit_engine.run.reading.spark import Verdicts
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats, moved
from tests.rules.machine.brute import JUDGED
from tests.rules.machine.comparing import by_brute_force, by_machine, compared
from tests.rules.machine.histories import TERMS
from tests.rules.machine.random_days import random_history

HISTORIES = int(os.environ.get("SEAWALL_TEST_RUN_HISTORIES", "60"))
FIRST_SEED = int(os.environ.get("SEAWALL_TEST_RUN_SEED", "4050000"))


@pytest.mark.long  # as many histories as anybody has patience for
@pytest.mark.timeout(7200)
def test_a_run_finds_what_is_true_and_nothing_else(
    spark: SparkSession, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each history is a cluster of one table; its events come in no order, some of them twice. By rule and to
    the offset, what the run finds is what the second judge says."""
    seeds = range(FIRST_SEED, FIRST_SEED + HISTORIES)
    histories = {f"cluster-{seed}": random_history(seed) for seed in seeds}
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
        if not each["rule_id"].startswith("AUD-"):
            by_cluster[cluster_id].append(finding_of(each))
    told: Counter[tuple[str, str]] = Counter()
    wrong: dict[str, Any] = {}
    for name, h in histories.items():
        judgement: Any = SimpleNamespace(findings=by_cluster[name])
        found, truth = by_machine(judgement), by_brute_force(h)
        for rule_id in compared(h):
            told[rule_id, "true"] += len(truth[rule_id])
            told[rule_id, "missed"] += len(truth[rule_id] - found[rule_id])
            told[rule_id, "false"] += len(found[rule_id] - truth[rule_id])
            if found[rule_id] != truth[rule_id]:
                wrong[f"{name} {rule_id}"] = (found[rule_id], truth[rule_id])
    true, missed, false = (
        sum(n for (_, sort), n in told.items() if sort == kind) for kind in ("true", "missed", "false")
    )
    measured = {
        "seeds": [seeds.start, seeds.stop],
        "events": len(said),
        "found": true - missed,
        "missed": missed,
        "false": false,
        "rate": round((true - missed) / max(1, true), 6),
        "by_rule": {rule_id: told[rule_id, "true"] for rule_id in JUDGED},
    }
    record_property("measured", measured)
    print(json.dumps(measured))  # noqa: T201  the rate and the seeds are the result

    assert wrong == {}
    assert true > HISTORIES
