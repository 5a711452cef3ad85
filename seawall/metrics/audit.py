"""What the audit's tables say, as Prometheus metrics: a file for node_exporter's textfile collector.

A job that runs once a day is no server that could be scraped, and a pushed metric outlives its truth. So the
file is written by `seawall audit metrics` as often as somebody asks; what it says of time are moments, and an
alert on their age fires also when nobody writes it any more.

Owns names and labels. Invariant: without a finished run there is no verdict, no count and no moment, and no
zero in their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from rules.severities import SEVERITY_WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTold:
    """`run`: the last finished run's row, None if none ever was. `findings`: those that are open."""

    run: Mapping[str, Any] | None
    findings: Sequence[Mapping[str, Any]]
    worries: Sequence[str]
    now_ms: int


def audit_metrics(told: AuditTold) -> Iterator[Metric]:
    """Of the last finished run, and of what stands."""
    moment = _gauge("last_run_as_of_timestamp_seconds", "The moment as of which the last run judged.")
    ended = _gauge("last_run_ended_timestamp_seconds", "When the last run had its results in the tables.")
    took = _gauge("last_run_seconds", "How long the last run took.")
    events = _gauge("last_run_events", "Events that the last run took in.")
    logs = _gauge("logs", "Logs by the verdict that the last run came to.", "verdict")
    findings = _gauge(
        "open_findings",
        "Findings that stand; suppressed: somebody answers for them.",
        "rule",
        "severity",
        "is",
    )
    worries = _gauge("worries", "Reasons not to believe the last run, as `seawall audit status` names them.")
    looked = _gauge("metrics_timestamp_seconds", "When this was written.")
    if told.run is not None:
        counts = told.run["counts"]
        moment.add_metric([], told.run["as_of_ms"] / 1000)
        ended.add_metric([], told.run["ended_ms"] / 1000)
        took.add_metric([], (told.run["ended_ms"] - told.run["began_ms"]) / 1000)
        events.add_metric([], counts["events"])
        for verdict, count in sorted(counts["verdicts"].items()):
            logs.add_metric([verdict], count)
        standing = Counter(
            (
                str(each["rule_id"]),
                SEVERITY_WORDS[each["severity"]],
                "suppressed" if each["suppressed_by"] is not None else "open",
            )
            for each in told.findings
        )
        for labels, count in sorted(standing.items()):
            findings.add_metric(list(labels), count)
    worries.add_metric([], len(told.worries))
    looked.add_metric([], told.now_ms / 1000)
    yield from (moment, ended, took, events, logs, findings, worries, looked)


def _gauge(name: str, what: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"seawall_audit_{name}", what, labels=labels)
