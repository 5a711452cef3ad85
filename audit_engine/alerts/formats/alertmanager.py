"""Alertmanager, both ways: what it sends to its webhook receivers (version 4), and what its API v2 takes.

A finding is an alert. It is known by its labels, so a label must not change while the alert lives: a finding
that grew from an error to a critical one is two alerts, both of which fire until it ends. An alert is said to
be resolved only when its finding is not open any more.

An Alertmanager forgets: an alert that is pushed without an end is over five minutes later, so that a daily
job's would resolve by itself. Ours end past the next run, and each run pushes them again.

Owns the labels. Invariant: the same finding, thread and severity have the same labels, and so the same
fingerprint, in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.formats.words import fitted, moment, not_stopped, place, ranges, remedy
from audit_engine.alerts.message import Message, Stood
from audit_engine.alerts.news import Finding
from rules.severities import SEVERITY_WORDS

BODY_BYTES_MAX = 1_000_000
PUSH_ALERTS_MAX = 500  # in one request
NEVER = "0001-01-01T00:00:00Z"  # Go's zero time: an end that is not known

_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def labels(finding: Finding, thread: str, severity: str) -> dict[str, str]:
    where = place(finding)
    return {
        "alertname": str(finding["rule_id"]),
        "severity": SEVERITY_WORDS[severity],
        "incident": thread,
        "finding_id": str(finding["finding_id"]),
        "source": "seawall",
        **{name: where[name] for name in ("cluster", "topic_id", "partition", "part") if name in where},
    }


def about(finding: Finding) -> dict[str, str]:
    told = {
        "summary": f"{finding['rule_id']} {finding['subject']} {ranges(finding)}".rstrip(),
        "description": str(finding["note"]),
        "remedy": remedy(finding),
        "not_stopped_by_hold": not_stopped(finding),
        "ranges": ranges(finding),
        "recoverable_offsets": str(finding["recoverable_offsets"]),
        "lost_offsets": str(finding["lost_offsets"]),
        "suppressed_by": finding["suppressed_by"] or "",
    }
    return {name: value for name, value in told.items() if value}


def fingerprint(named: Mapping[str, str]) -> str:
    """As Prometheus reckons it: FNV-1a over names and values in order, each with a byte behind it."""
    reckoned = _FNV_OFFSET
    for name, value in sorted(named.items()):
        for byte in (*name.encode(), 0xFF, *value.encode(), 0xFF):
            reckoned = ((reckoned ^ byte) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return f"{reckoned:016x}"


def webhook_body(endpoint: Endpoint, message: Message) -> bytes:
    """What an Alertmanager would send of this thread, were it a group of its alerts."""

    def made(shown: Sequence[Stood]) -> dict[str, Any]:
        alerts = [_sent(each, message, severity) for each in shown for severity in each.severities]
        return {
            "receiver": endpoint.name,
            "status": "firing" if message.open_count else "resolved",
            "alerts": alerts,
            "groupLabels": {"incident": message.thread},
            "commonLabels": _common([each["labels"] for each in alerts]) or {"incident": message.thread},
            "commonAnnotations": _common([each["annotations"] for each in alerts]),
            "externalURL": "",
            "version": "4",
            "groupKey": f'{{}}:{{incident="{message.thread}"}}',
            "truncatedAlerts": message.finding_count - len(shown),
        }

    return fitted(made, message.stood, most=endpoint.findings_max, size_bytes_max=BODY_BYTES_MAX)


def _sent(stood: Stood, message: Message, severity: str) -> dict[str, Any]:
    named = labels(stood.finding, message.thread, severity)
    return {
        "status": "firing" if stood.is_open else "resolved",
        "labels": named,
        "annotations": about(stood.finding),
        "startsAt": moment(stood.finding["opened_ms"]),
        "endsAt": NEVER if stood.is_open else _ended(stood.finding, message.as_of_ms),
        "generatorURL": "",
        "fingerprint": fingerprint(named),
    }


def pushed(finding: Finding, thread: str, severity: str, *, is_open: bool, until_ms: int) -> dict[str, Any]:
    """An alert as the API takes it. `until_ms`: how long it fires if nobody pushes it again."""
    return {
        "labels": labels(finding, thread, severity),
        "annotations": about(finding),
        "startsAt": moment(finding["opened_ms"]),
        "endsAt": moment(until_ms) if is_open else _ended(finding, finding["opened_ms"]),
    }


def pushes(alerts: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """The bodies of as many requests as it takes."""
    listed = list(alerts)
    return [
        json.dumps(listed[first : first + PUSH_ALERTS_MAX]).encode()
        for first in range(0, len(listed), PUSH_ALERTS_MAX)
    ]


def _ended(finding: Finding, at_ms: int) -> str:
    """Behind its beginning: an Alertmanager refuses what ends before it starts."""
    return moment(max(finding["ended_ms"] or at_ms, finding["opened_ms"] + 1))


def _common(named: list[Mapping[str, str]]) -> dict[str, str]:
    if not named:
        return {}
    first, *others = named
    return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}
