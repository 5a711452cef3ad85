"""Rules over many logs: RET-03's ten topics, OPS-02's hours, and one id for what several logs found.

    merged     the same finding of several logs (a topic's) is one: the worst severity, the earliest opening
    session    undeclared changes of many topics, each within a quarter of an hour of the next: RET-03 is C,
               and all of them one incident
    blast      segments that no retention explains, by topic and hour

Owns what no single log can say. Invariant: the result does not depend on the order of logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rules.machine import authority
from rules.machine.findings import SEVERITIES, finding_id
from rules.machine.state import LogState
from rules.machine.terms import HOUR_MS
from rules.machine.verdict import Finding, Status
from rules.policy.values import Permission

SESSION_MS = 15 * 60_000
TOPICS_MIN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Blast:
    """One topic's hour above its limit."""

    finding_id: str
    cluster_id: str
    topic_id: str
    hour: int
    segments: int
    limit: int


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By id. A finding is open as long as it is in any of the logs."""
    by_id: dict[str, Finding] = {}
    for each in sorted(findings, key=lambda one: (one.finding_id, one.opened_ms, one.note)):
        known = by_id.get(each.finding_id)
        by_id[each.finding_id] = each if known is None else _both(known, each)
    return sessions(sorted(by_id.values(), key=lambda one: (one.opened_ms, one.rule_id, one.finding_id)))


def _both(one: Finding, other: Finding) -> Finding:
    still_open = [each for each in (one, other) if each.status is Status.OPEN]
    standing = still_open[0] if still_open else max(one, other, key=lambda each: each.ended_ms or 0)
    return replace(
        one,
        severity=max(one.severity, other.severity, key=SEVERITIES.index),
        status=standing.status,
        ended_ms=standing.ended_ms,
    )


def sessions(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Of RET-03, those that were opened close to each other: ten topics at once are no one's slip."""
    every = list(findings)
    changed = sorted(
        (each for each in every if each.rule_id == "RET-03" and each.status is not Status.WITHDRAWN),
        key=lambda each: (each.opened_ms, each.finding_id),
    )
    groups: list[list[Finding]] = []
    for each in changed:
        if groups and each.opened_ms - groups[-1][-1].opened_ms <= SESSION_MS:
            groups[-1].append(each)
        else:
            groups.append([each])
    incidents: dict[str, str] = {}
    for group in groups:
        if len({each.subject for each in group}) >= TOPICS_MIN:
            incidents |= {each.finding_id: group[0].finding_id for each in group}
    return tuple(_in_session(each, incidents) for each in every)


def _in_session(each: Finding, incidents: Mapping[str, str]) -> Finding:
    severity = "C" if each.finding_id in incidents else each.severity
    return replace(each, severity=severity, incident=incidents.get(each.incident, each.incident))


def blasts(states: Iterable[LogState]) -> tuple[Blast, ...]:
    """OPS-02, in tumbling hours."""
    counts: dict[tuple[str, str, int], int] = {}
    limits: dict[tuple[str, str], int] = {}
    for state in states:
        policy = authority.policy_now(state)
        if policy.record_deletion is Permission.FREE:
            continue
        topic = (state.log.cluster_id, state.log.topic_id)
        limits[topic] = policy.blast_limit_segments_per_hour
        for hour, segments in state.blast.items():
            key = (*topic, hour)
            counts[key] = counts.get(key, 0) + segments
    found = []
    for (cluster_id, topic_id, hour), segments in sorted(counts.items()):
        limit = limits[cluster_id, topic_id]
        if segments > limit:
            subject = f"{cluster_id}/{topic_id}"
            found.append(
                Blast(
                    finding_id=finding_id("OPS-02", 1, subject, str(hour * HOUR_MS)),
                    cluster_id=cluster_id,
                    topic_id=topic_id,
                    hour=hour,
                    segments=segments,
                    limit=limit,
                )
            )
    return tuple(found)
