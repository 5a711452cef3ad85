"""`seawall audit run` and what follows it, as a user runs them over tables: exit codes, --json, decisions."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats, moved
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import HOUR_MS, MINUTE_MS, TOPIC, fixture
from tests.seawall.cli.calling import Called, call

Audit = Callable[..., Called]
YEARS = str(24 * 365 * 9)  # the history's moments are long past


@pytest.fixture
def evidence(spark: SparkSession, tmp_path: Path) -> Evidence:
    return Evidence(spark, tmp_path)


@pytest.fixture
def audit(evidence: Evidence, tmp_path: Path) -> Audit:
    environ = {"SEAWALL_AUDIT__TABLES": evidence.root, "XDG_STATE_HOME": str(tmp_path)}
    return lambda *arguments: call("audit", *arguments, environ=environ)


def as_of(moment_ms: int) -> tuple[str, str]:
    return "--as-of", datetime.fromtimestamp(moment_ms / 1000, tz=timezone.utc).isoformat()


def told(ran: Called) -> Any:
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.long  # three runs, and a dozen verbs
@pytest.mark.timeout(1200)
def test_from_a_run_to_a_decision(evidence: Evidence, audit: Audit) -> None:
    """A day in order exits with 0; a loss with 1: it is listed, explained from its events, stated, let be by
    somebody; then a run exits with 3, although somebody fell silent meanwhile. `status` says the same."""
    untouched = fixture("none").after(hours=1)
    fault = trimmed_prefix("none")
    end_ms = max(fault.now_ms, untouched.now_ms)
    calm = beats([moved(each, "c-calm") for each in untouched.told], "c-calm", untouched.now_ms, end_ms)
    lost = beats([moved(each, "c-lost") for each in fault.told], "c-lost", end_ms)
    before = [each for each in calm if each.observed_at_ms <= untouched.now_ms]

    evidence.add(before)
    clean = audit("run", *as_of(untouched.now_ms), "--json", "--no-holds")
    evidence.add([each for each in calm if each not in before] + lost)
    violated = audit("run", *as_of(end_ms), "--json", "--no-holds")
    listed = audit("findings", "--json")
    root = next(each for each in told(listed) if each["rule_id"] == "START-02")
    explained = audit("explain", root["finding_id"][:12], "--json")
    stated = audit("statement", f"{TOPIC}:0", "--json")
    acked = audit("ack", root["finding_id"], "--reason", "on it", "--owner", "bob", "--json")
    for each in told(listed):
        let_be = ("--owner", "bob", "--reason", "test data", "--until", "2999-01-01")
        assert audit("suppress", each["finding_id"], *let_be).status == 0
    status = audit("status", "--stale-after-hours", YEARS, "--json")
    let_be_now = audit("run", *as_of(end_ms + MINUTE_MS), "--json", "--no-holds")
    after = audit("findings", "--json")

    assert (clean.status, told(clean)["verdict"], told(clean)["verdicts"]) == (0, "PASS", {"PASS": 1})
    assert (violated.status, told(violated)["verdict"]) == (1, "VIOLATION")
    assert told(violated)["verdicts"] == {"PASS": 1, "VIOLATION": 1}
    assert (listed.status, root["severity"], root["ranges"]) == (1, "C", [[0, 3000]])
    assert explained.status == 0
    assert told(explained)["explanation"]["is_derived"] is True
    assert any(each["kafka"] for each in told(explained)["explanation"]["cited"])
    by_cluster = {each["cluster_id"]: each for each in told(stated)}
    assert (stated.status, by_cluster["c-calm"]["verdict"]) == (1, "PASS")
    assert root["finding_id"] in by_cluster["c-lost"]["open_findings"]
    assert (acked.status, told(acked)["owner"]) == (0, "bob")
    assert (status.status, [each["run"] for each in told(status)["runs"]]) == (1, [2, 1])
    assert told(status)["worries"] == []
    assert (let_be_now.status, told(let_be_now)["open_findings"]) == (3, 0)
    assert told(let_be_now)["suppressed_findings"] == told(violated)["open_findings"]
    assert (after.status, {each["acknowledged_by"] for each in told(after)}) == (3, {"bob: on it"})


@pytest.mark.long  # two runs more
def test_silence_is_no_pass(evidence: Evidence, audit: Audit) -> None:
    """Nobody was heard for hours: 4, of the run and of `status`; a run of long ago is stale; none, too."""
    untouched = fixture("none").after(hours=1)
    nothing = audit("status", "--json")
    evidence.add(beats(untouched.told, untouched.log.cluster_id, untouched.now_ms))
    assert audit("run", *as_of(untouched.now_ms), "--no-holds").status == 0
    stale = audit("status", "--json")
    silent = audit("run", *as_of(untouched.now_ms + 6 * HOUR_MS), "--no-holds", "--json")
    status = audit("status", "--stale-after-hours", YEARS, "--json")

    assert (nothing.status, stale.status, silent.status, status.status) == (4, 4, 4, 4)
    assert told(silent)["verdicts"] == {"INDETERMINATE": 1}
    assert "nothing later was looked at" in " ".join(told(stale)["worries"])
