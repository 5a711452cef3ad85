"""deploy/grafana/seawall.json: one page from the worst news down to the single loop.

python -m seawall.metrics.dashboard > deploy/grafana/seawall.json

Owns what is drawn, as data; a test holds each name in it against the collectors and lets promtool read each
expression. Counters are drawn as rates, moments as ages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 24, 8
UID, TITLE = "seawall", "Seawall"
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_BY_LOG = "{{topic}}-{{partition}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """`exprs`: what is drawn, with its legend. `red_at`: from this value on a single number is red."""

    title: str
    exprs: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    red_at: float | None = None
    words: str = ""


def _one(title: str, expr: str, words: str, *, unit: str = "short", red_at: float = 1) -> Panel:
    return Panel(title, [(expr, "")], unit=unit, kind="stat", width=4, red_at=red_at, words=words)


ROWS: Sequence[tuple[str, Sequence[Panel]]] = (
    (
        "Did we lose anything?",
        (
            _one(
                "Open critical findings",
                'sum(seawall_audit_open_findings{severity="critical",is="open"}) or vector(0)',
                "seawall audit findings",
            ),
            _one(
                "Logs in violation",
                'sum(seawall_audit_logs{verdict="VIOLATION"}) or vector(0)',
                "seawall audit report",
            ),
            _one("Reasons to doubt the audit", "sum(seawall_audit_worries)", "seawall audit status"),
            _one(
                "Age of the last verdict",
                "time() - max(seawall_audit_last_run_as_of_timestamp_seconds)",
                "A daily run, and two hours.",
                unit="s",
                red_at=26 * 3600,
            ),
            _one(
                "Retention overtakes upload",
                "sum(seawall_log_retention_overtaking) or vector(0)",
                "Logs that the broker deletes from before they are copied.",
            ),
            _one("Agents in doubt", "sum(seawall_doubt) or vector(0)", "/readyz says why."),
            Panel("Logs by verdict", [("sum by (verdict) (seawall_audit_logs)", "{{verdict}}")], width=12),
            Panel(
                "Open findings by rule",
                [
                    (
                        "sum by (rule, severity, is) (seawall_audit_open_findings)",
                        "{{rule}} {{severity}} {{is}}",
                    )
                ],
                width=12,
            ),
        ),
    ),
    (
        "Tiering",
        (
            Panel("Committed, not copied", [("topk(10, seawall_log_lag_offsets)", _BY_LOG)]),
            Panel("Age of what is not copied", [("topk(10, seawall_log_lag_seconds)", _BY_LOG)], unit="s"),
            Panel(
                "Until retention reaches the frontier",
                [("bottomk(10, seawall_log_retention_reaches_frontier_seconds)", _BY_LOG)],
                unit="s",
            ),
            Panel(
                "Copied",
                [("sum by (instance) (rate(seawall_log_copied_bytes_total[5m]))", "{{instance}}")],
                unit="Bps",
            ),
            Panel(
                "Segments that wait",
                [
                    ("topk(10, seawall_log_waiting_segments)", _BY_LOG),
                    ("sum(seawall_held_segments)", "held open"),
                ],
            ),
            Panel(
                "Tried again, and failed",
                [
                    ("sum by (error) (rate(seawall_store_retries_total[5m]))", "store: {{error}}"),
                    ("sum by (error) (rate(seawall_errors_total[5m]))", "log: {{error}}"),
                ],
                unit="ops",
            ),
            Panel("Logs by state", [("sum by (state) (seawall_log_state)", "{{state}}")]),
            Panel(
                "Frontier stands since",
                [("topk(10, seawall_log_frontier_standing_seconds)", _BY_LOG)],
                unit="s",
            ),
            Panel(
                "Behind the metadata topic",
                [("max by (instance) (seawall_metadata_lag_offsets)", "{{instance}}")],
            ),
        ),
    ),
    (
        "Evidence",
        (
            Panel(
                "Events",
                [("sum by (kind) (rate(seawall_events_total[5m]))", "{{kind}}")],
                unit="ops",
            ),
            Panel(
                "Oldest event that Kafka does not have",
                [("max by (instance) (seawall_events_pending_seconds)", "{{instance}}")],
                unit="s",
            ),
            Panel(
                "Spool, of its bound",
                [("seawall_events_pending_bytes / seawall_events_spool_limit_bytes", "{{instance}}")],
                unit="percentunit",
            ),
            Panel(
                "Events lost",
                [("sum by (instance) (increase(seawall_events_lost_total[1h]))", "{{instance}}")],
            ),
            Panel(
                "Since an observer looked",
                [
                    (
                        "time() - (seawall_observer_last_look_timestamp_seconds > 0)",
                        "{{instance}} {{observer}}",
                    )
                ],
                unit="s",
            ),
            Panel(
                "Observers that cannot look", [("sum by (observer) (seawall_observer_blind)", "{{observer}}")]
            ),
        ),
    ),
    (
        "Workers and their scaler",
        (
            Panel("Lag", [("seawall_scaler_lag_records", "{{object}}")]),
            Panel("Replicas wanted", [("seawall_scaler_replicas", "{{object}}")]),
            Panel("Verdicts", [("sum by (verdict) (seawall_scaler_verdict)", "{{verdict}}")]),
            Panel(
                "Done, retried, buried",
                [
                    ("sum by (group) (rate(workers_done_total[5m]))", "{{group}} done"),
                    ("sum by (group) (rate(workers_retried_total[5m]))", "{{group}} retried"),
                    ("sum by (group) (rate(workers_dead_letters_total[5m]))", "{{group}} buried"),
                ],
                unit="ops",
            ),
            Panel(
                "Blocked since",
                [("topk(10, workers_partition_blocking_age_s)", "{{group}} {{topic}}-{{partition}}")],
                unit="s",
            ),
            Panel("In flight", [("workers_in_flight_records", "{{group}}")]),
        ),
    ),
)


def exprs() -> Iterator[str]:
    for _, panels in ROWS:
        for panel in panels:
            yield from (expr for expr, _ in panel.exprs)


def dashboard() -> dict[str, Any]:
    return {
        "uid": UID,
        "title": TITLE,
        "tags": ["kafka", "seawall"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
            ]
        },
        "panels": [*_placed()],
    }


def _placed() -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for title, panels in ROWS:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1},
        }
        top += 1
        left, tallest = 0, 0
        for each in panels:
            height = HEIGHT // 2 if each.kind == "stat" else HEIGHT
            if left + each.width > WIDTH:
                left, top, tallest = 0, top + tallest, 0
            number += 1
            yield _drawn(each, number, {"x": left, "y": top, "w": each.width, "h": height})
            left, tallest = left + each.width, max(tallest, height)
        top += tallest


def _drawn(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red_at is not None:
        steps.append({"color": "red", "value": panel.red_at})
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.words,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expr, "legendFormat": legend}
            for at, (expr, legend) in enumerate(panel.exprs)
        ],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(dashboard(), indent=2) + "\n")
