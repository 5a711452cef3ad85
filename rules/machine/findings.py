"""Findings as the machine carries them: opened once, extended, cleared or closed, never forgotten while open.

Two sorts (AUDIT_FACTS 1). Of a *state* of things: `cleared` when the condition was evaluated and is false. Of
what *happened*: it stays open until it is restored, accepted or withdrawn.

`subject` and `anchor` name a finding, with its rule (AUDIT_FACTS 13): the lower end of what is violated, and
never its end, never an event's id. A range that touches or overlaps an open finding of the same rule and
subject extends that one, for rules about stretches of a log; segments stay apart.

Owns these steps. Invariant: a finding's key never changes, whatever else of it does.
"""

from __future__ import annotations

import hashlib

from rules.catalogue import rule
from rules.machine.spans import NONE, Spans, covers, cut, join, normal
from rules.machine.state import FINDINGS_MAX, Found, LogState
from rules.severities import GRAVEST_FIRST

SEVERITIES = GRAVEST_FIRST[::-1]
# Rules whose ranges run together; of the others each segment, epoch or copy is a finding of its own.
STRETCHES = frozenset({"START-01", "START-02", "HWM-01", "HWM-02", "HWM-03"})


def finding_id(rule_id: str, major: int, subject: str, anchor: str) -> str:
    """For ever the same for the same fault: other tools key on it."""
    told = "\n".join([rule_id, str(major), subject, anchor])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def subject_of(state: LogState, subject: str) -> str:
    """Spelled out: what a subject's short name within a log stands for."""
    cluster_id, topic_id, partition = state.log
    if subject == "topic":
        return f"{cluster_id}/{topic_id}"
    log = f"{cluster_id}/{topic_id}/{partition}"
    return log if subject == "log" else f"{log}/{subject}"


def own_id(state: LogState, found: Found) -> str:
    """The id that it is told under."""
    subject = subject_of(state, found.subject)
    return finding_id(found.rule_id, rule(found.rule_id).major, subject, found.anchor)


def happened(
    state: LogState,
    rule_id: str,
    *,
    subject: str,
    anchor: str,
    severity: str,
    ranges: Spans,
    interval: tuple[int, int],
    note: str,
) -> Found | None:
    """Condemned: opened at the end of its interval, or an open finding that it touches grows."""
    touched = _touching(state, rule_id, subject, ranges)
    if touched is not None:
        touched.ranges = join(touched.ranges, ranges)
        touched.severity = worse(touched.severity, severity)
        touched.happened = (
            min(touched.happened[0], interval[0]),
            max(touched.happened[1], interval[1]),
        )
        return touched
    return opened(
        state,
        rule_id,
        subject=subject,
        anchor=anchor,
        severity=severity,
        ranges=ranges,
        interval=interval,
        note=note,
        at_ms=interval[1],
    )


def opened(
    state: LogState,
    rule_id: str,
    *,
    subject: str,
    anchor: str,
    severity: str,
    ranges: Spans,
    interval: tuple[int, int],
    note: str,
    at_ms: int,
) -> Found | None:
    key = f"{rule_id}|{subject}|{anchor}"
    known = state.findings.get(key)
    if known is not None:
        known.severity = worse(known.severity, severity)
        if known.closed_ms is None:
            known.ranges = join(known.ranges, ranges)
        known.cleared_ms = None
        return known
    if len(state.findings) >= FINDINGS_MAX:
        state.findings_left_out += 1
        return None
    found = Found(
        rule_id=rule_id,
        subject=subject,
        anchor=anchor,
        severity=severity,
        ranges=ranges,
        opened_ms=at_ms,
        happened=interval,
        note=note,
    )
    state.findings[key] = found
    return found


def worse(one: str, other: str) -> str:
    return max(one, other, key=SEVERITIES.index)


def is_open(found: Found) -> bool:
    return found.cleared_ms is None and found.closed_ms is None


def close(found: Found, at_ms: int, by: str) -> None:
    if found.closed_ms is None:
        found.closed_ms, found.closed_by = at_ms, by


def close_covered(state: LogState, ranges: Spans, at_ms: int, by: str, rule_ids: frozenset[str]) -> None:
    """What lies wholly in a restored or accepted range."""
    for found in state.findings.values():
        if found.rule_id in rule_ids and found.ranges and covers(ranges, found.ranges):
            close(found, at_ms, by)


def narrowed(state: LogState, found: Found, ranges: Spans, at_ms: int) -> None:
    """Late evidence justifies part of it, or all."""
    if not ranges:
        close(found, at_ms, "withdrawn")
    elif found.closed_ms is None:
        found.ranges = ranges


def _touching(state: LogState, rule_id: str, subject: str, ranges: Spans) -> Found | None:
    if rule_id not in STRETCHES or not ranges:
        return None
    for found in state.findings.values():
        is_same = found.rule_id == rule_id and found.subject == subject and is_open(found)
        if is_same and len(normal([*found.ranges, *ranges])) < len(found.ranges) + len(ranges):
            return found
    return None


def left(ranges: Spans, justified: Spans) -> Spans:
    return cut(ranges, justified) if ranges else NONE
