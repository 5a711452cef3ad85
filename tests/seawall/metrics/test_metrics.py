"""The page, the dashboard and the alert rules, against what the collectors say of themselves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from seawall.metrics.audit import AuditTold, audit_metrics
from seawall.metrics.collected import Collected
from seawall.metrics.dashboard import dashboard, exprs
from seawall.metrics.inventory import inventory
from seawall.metrics.page import page

REPOSITORY = Path(__file__).parents[3]
RULES = REPOSITORY / "deploy" / "prometheus" / "seawall.rules.yml"
RULES_TEST = RULES.with_name("seawall.rules.test.yml")
OURS = re.compile(r"\b(?:seawall|workers)_[a-z0-9_]+\b")
NAME = re.compile(r"(?:seawall|workers)_[a-z0-9]+(?:_[a-z0-9]+)*")
PROMTOOL = shutil.which("promtool")
with_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")


def promtool(*arguments: str, cwd: Path) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_the_page_and_the_dashboard_are_what_the_code_makes() -> None:
    """Made anew whenever a metric changes: `python -m seawall.metrics.page`, `... .dashboard`."""
    drawn = (REPOSITORY / "deploy" / "grafana" / "seawall.json").read_text(encoding="utf-8")

    assert (REPOSITORY / "docs" / "METRICS.md").read_text(encoding="utf-8") == page()
    assert json.loads(drawn) == dashboard()


def test_names_keep_to_the_scheme() -> None:
    """A prefix, small letters, one name each, words; a counter ends in _total and nothing else does."""
    all_of_them = inventory()
    names = [each.name for each in all_of_them]

    assert len(names) == len(set(names)) > 60
    for each in all_of_them:
        assert NAME.fullmatch(each.name), each
        assert (each.kind == "counter") == each.name.endswith("_total"), each
        assert each.words.endswith("."), each


def test_what_is_drawn_and_what_alerts_exists() -> None:
    """Every name of ours in an expression is a metric; each panel has its own place, and its number."""
    known = {each.name for each in inventory()}
    told = {name for expr in exprs() for name in OURS.findall(expr)}
    alerted = {name for rule in rules() for name in OURS.findall(rule["expr"])}
    panels = dashboard()["panels"]
    covered = [
        (x, y)
        for each in panels
        for place in [each["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert told - known == set()
    assert alerted - known == set()
    assert len(covered) == len(set(covered))
    assert {x for x, _ in covered} <= set(range(24))
    assert len({each["id"] for each in panels}) == len(panels)


@with_promtool
def test_prometheus_reads_each_expression_of_the_dashboard(tmp_path: Path) -> None:
    """As rules that record it."""
    listed = [{"record": f"drawn:{at}", "expr": expr} for at, expr in enumerate(exprs())]
    (tmp_path / "drawn.yml").write_text(yaml.safe_dump({"groups": [{"name": "drawn", "rules": listed}]}))

    assert f"{len(listed)} rules found" in promtool("check", "rules", "drawn.yml", cwd=tmp_path)


@with_promtool
def test_alerts_fire_when_they_should_and_not_before() -> None:
    """promtool runs what stands beside the rules."""
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES.name, cwd=RULES.parent)
    assert "SUCCESS" in promtool("test", "rules", RULES_TEST.name, cwd=RULES.parent)


def test_each_alert_has_a_case_that_fires_it_and_words_that_help() -> None:
    """Its name stands in the tests of the rules, with a sample; the words are two, and a severity."""
    cases = yaml.safe_load(RULES_TEST.read_text())["tests"]
    fired = {
        re.findall(r'alertname="(\w+)"', each["expr"])[0]
        for case in cases
        for each in case["promql_expr_test"]
        if each["exp_samples"]
    }

    assert fired == {rule["alert"] for rule in rules()}
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert all(rule["annotations"][word] for word in ("summary", "description"))


def exposed(told: AuditTold) -> list[str]:
    registry = CollectorRegistry()
    registry.register(Collected(collected=lambda: audit_metrics(told)))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_an_audit_is_told_by_its_last_run_and_what_stands() -> None:
    """Verdicts as counted, findings by rule, severity, and whether somebody answers; moments in seconds."""
    counts = {"events": 7, "verdicts": {"PASS": 3, "VIOLATION": 1}}
    run = {"as_of_ms": 5_000, "began_ms": 6_000, "ended_ms": 8_500, "counts": counts}
    found: list[dict[str, Any]] = [
        {"rule_id": "START-02", "severity": "C", "suppressed_by": None},
        {"rule_id": "START-02", "severity": "C", "suppressed_by": None},
        {"rule_id": "RET-05", "severity": "W", "suppressed_by": "x"},
    ]

    assert exposed(AuditTold(run=run, findings=found, worries=["a"], now_ms=9_000)) == [
        "seawall_audit_last_run_as_of_timestamp_seconds 5.0",
        "seawall_audit_last_run_ended_timestamp_seconds 8.5",
        "seawall_audit_last_run_seconds 2.5",
        "seawall_audit_last_run_events 7.0",
        'seawall_audit_logs{verdict="PASS"} 3.0',
        'seawall_audit_logs{verdict="VIOLATION"} 1.0',
        'seawall_audit_open_findings{is="suppressed",rule="RET-05",severity="warning"} 1.0',
        'seawall_audit_open_findings{is="open",rule="START-02",severity="critical"} 2.0',
        "seawall_audit_worries 1.0",
        "seawall_audit_metrics_timestamp_seconds 9.0",
    ]


def test_where_no_run_was_finished_nothing_is_called_zero() -> None:
    """No verdict, no count, no moment: only that it is doubted, and when that was looked at."""
    assert exposed(AuditTold(run=None, findings=(), worries=["no run was ever finished"], now_ms=9_000)) == [
        "seawall_audit_worries 1.0",
        "seawall_audit_metrics_timestamp_seconds 9.0",
    ]
