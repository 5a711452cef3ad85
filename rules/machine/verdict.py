"""What a log's events come to at a cut: findings as they are told, a verdict, a statement.

    VIOLATION      a finding is open, whatever else is missing, and whoever answers for it meanwhile
    INDETERMINATE  evidence is missing: of the period, or still
    SUSPECT        something holds that is inside its rule's grace
    PASS           every rule that applies was evaluated, and none is violated

"Did not look" is never PASS: a log that nothing was heard of is INDETERMINATE, and so is one whose leader's
disk nobody watches. A condition that cleared while evidence was missing is not resolved: it stays open.

Owns the words of a judgement. Invariant: a statement is a function of state, terms and period; its hash is
over everything that it says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rules.catalogue import RULES, rule_set_hash
from rules.machine import authority, coverage
from rules.machine.causes import parents, root_of
from rules.machine.findings import own_id, subject_of
from rules.machine.spans import Spans, count
from rules.machine.state import Found, LogState
from rules.machine.terms import Suppression, Terms
from rules.policy.suppressions import read_line


class Verdict(str, Enum):
    """In the order in which one hides another: the last wins."""

    PASS = "PASS"
    SUSPECT = "SUSPECT"
    INDETERMINATE = "INDETERMINATE"
    VIOLATION = "VIOLATION"


class Status(str, Enum):
    OPEN = "open"
    RESOLVED = "resolved"  # a state that was evaluated, and is false
    RESTORED = "restored"
    ACCEPTED = "accepted"
    WITHDRAWN = "withdrawn"  # late evidence justifies it


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding as others see it. `incident` is the root's id: one incident, one page."""

    finding_id: str
    rule_id: str
    severity: str
    subject: str
    anchor: str
    ranges: Spans
    status: Status
    opened_ms: int
    ended_ms: int | None
    note: str
    incident: str
    parent: str | None
    recoverable_offsets: int
    lost_offsets: int
    held_by: tuple[int, ...]
    suppressed_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is claimed of one log, for a period, from which evidence, under which rules."""

    cluster_id: str
    topic_id: str
    topic: str
    partition: int
    verdict: Verdict
    claim: str
    deployment: str
    from_ms: int
    as_of_ms: int
    not_before_ms: int | None  # what lies before its first sight is not covered
    events: int
    log_start: int | None
    high_watermark: int | None
    tiered_offsets: int
    replicas: tuple[tuple[int, str], ...]  # broker, and how much of it was seen
    applied: tuple[str, ...]
    not_applicable: tuple[str, ...]
    missing: tuple[str, ...]
    suspect: tuple[str, ...]
    open_findings: tuple[str, ...]
    suppressed_findings: tuple[str, ...]
    rule_set: str

    @property
    def hash(self) -> str:
        """SHA-256 over everything it says, in canonical JSON."""
        return hashlib.sha256(canonical(_tree(self)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    findings: tuple[Finding, ...]
    statement: Statement

    @property
    def verdict(self) -> Verdict:
        return self.statement.verdict


def judge(state: LogState, terms: Terms, *, from_ms: int, blind: Iterable[str] = ()) -> Judgement:
    """At the state's own time. `blind` says what else is missing, such as an emitter that fell silent."""
    missing = (*_missing(state, from_ms), *blind)
    findings = findings_of(state, terms, is_complete=not missing)
    suspect = tuple(sorted(_suspect(state)))
    standing = [each for each in findings if each.status is Status.OPEN]
    verdict = Verdict.PASS
    if suspect:
        verdict = Verdict.SUSPECT
    if missing:
        verdict = Verdict.INDETERMINATE
    if standing:
        verdict = Verdict.VIOLATION
    statement = _statement(state, terms, from_ms, verdict, missing, suspect, findings)
    return Judgement(findings=findings, statement=statement)


def findings_of(state: LogState, terms: Terms, *, is_complete: bool) -> tuple[Finding, ...]:
    by_child = parents(state)
    ids = {key: own_id(state, found) for key, found in state.findings.items()}
    told = []
    for key, found in state.findings.items():
        tier, brokers = coverage.recoverable(state, found.ranges)
        status = _status(found, is_complete=is_complete)
        own = terms.of_rule(found.rule_id)
        if own is not None and own.is_disabled:
            continue
        told.append(
            Finding(
                finding_id=ids[key],
                rule_id=found.rule_id,
                severity=found.severity if own is None or own.severity is None else own.severity,
                subject=subject_of(state, found.subject),
                anchor=found.anchor,
                ranges=found.ranges,
                status=status,
                opened_ms=found.opened_ms,
                ended_ms=None if status is Status.OPEN else (found.closed_ms or found.cleared_ms),
                note=found.note,
                incident=ids[root_of(key, by_child)],
                parent=ids[by_child[key]] if key in by_child else None,
                recoverable_offsets=count(tier),
                lost_offsets=0 if brokers else count(found.ranges) - count(tier),
                held_by=brokers,
                suppressed_by=_suppressed_by(state, terms, found.rule_id, ids[key]),
            )
        )
    return tuple(sorted(told, key=lambda each: (each.opened_ms, each.rule_id, each.subject, each.anchor)))


def _suppressed_by(state: LogState, terms: Terms, rule_id: str, own_id: str) -> str | None:
    """Who answers for it now, until when and why: by somebody's word about it, or by the policy's."""
    said = terms.suppresses(rule_id, state.topic, state.clock_ms, own_id)
    if said is None:
        said = next((each for each in _by_policy(state) if each.matches(rule_id, "", state.clock_ms)), None)
    return None if said is None else str(said)


def _by_policy(state: LogState) -> Iterator[Suppression]:
    for line in authority.policy_now(state).audit_suppress:
        told = read_line(line)
        yield Suppression(
            rule_id=told.rule_id,
            topic_pattern="*",
            owner=told.owner,
            reason=told.reason,
            expires_at_ms=told.expires_at_ms,
        )


def canonical(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


def judgement_hash(judgements: Iterable[Judgement]) -> str:
    """One number for a run: reruns are equal, or they are not reruns."""
    lines = sorted(
        canonical({"statement": _tree(each.statement), "findings": [_tree(one) for one in each.findings]})
        for each in judgements
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _status(found: Found, *, is_complete: bool) -> Status:
    if found.closed_ms is not None:
        by = found.closed_by
        return Status(by) if by in ("restored", "withdrawn") else Status.ACCEPTED
    if found.cleared_ms is not None and (is_complete or found.resolved_ms == found.cleared_ms):
        return Status.RESOLVED
    return Status.OPEN


def stated(state: LogState, statement: Statement) -> None:
    """What was resolved is resolved: somebody who falls silent later does not open it again."""
    if not statement.missing:
        for found in state.findings.values():
            found.resolved_ms = found.cleared_ms


def _missing(state: LogState, from_ms: int) -> tuple[str, ...]:
    """Gaps that stand, and those of the period that nothing could make up for."""
    if state.is_gone:
        return ()
    if state.born_ms is None:
        return ("nothing was heard of this log",)
    told = [
        f"{gap.sort}: {gap.detail}"
        for gap in state.gaps
        if gap.closed_ms is None
        or (gap.sort in ("cause_unknown", "coalesced", "unread_kind", "too_many") and gap.to_ms >= from_ms)
    ]
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    if state.leader_id is None:
        told.append("leadership: nobody said who leads")
    elif state.leader_id < 0:
        told.append("leadership: nobody leads, and what could be read cannot be told")
    elif leader is None:
        told.append(f"replica: nobody watches the disk of broker {state.leader_id}, which leads")
    elif leader.start is None or leader.local_start is None or state.watermark is None:
        told.append(f"replica: of broker {state.leader_id}, which leads, start or watermark is not known")
    if not authority.authorised(state, authority.TOTAL, state.clock_ms, state.clock_ms):
        told.append("retention: neither a policy nor a first sight of it is known")
    return tuple(sorted(set(told)))


def _suspect(state: LogState) -> set[str]:
    now_ms = state.clock_ms
    names: set[str] = {
        key.partition("|")[0]
        for key, pending in state.pending.items()
        if pending.since_ms <= now_ms and key not in state.findings
    } - {"RET-05"}  # what has expired waits for the next check on every healthy log
    if any(each.uncovered is None for each in state.rises):
        names.add("START-02")
    if any(not each.is_decided and each.was_led for each in state.removals):
        names.add("RET-01")
    if state.fallbacks:
        names.add("START-01")
    if any(not each.is_open for each in state.deviations):
        names.add("RET-03")
    if state.topic_deletion_due_ms is not None or any(each.sort == "request" for each in state.permits):
        names.add("OPS-01")
    return names


def _statement(
    state: LogState,
    terms: Terms,
    from_ms: int,
    verdict: Verdict,
    missing: tuple[str, ...],
    suspect: tuple[str, ...],
    findings: tuple[Finding, ...],
) -> Statement:
    mode = authority.deployment(state)
    applied = [each.id for each in RULES if each.applies_to(mode, terms.has_object_layout)]
    cluster_id, topic_id, partition = state.log
    still_open = [each for each in findings if each.status is Status.OPEN]
    disabled = {each.rule_id for each in terms.rules if each.is_disabled}
    applied = [each for each in applied if each not in disabled]
    is_let_be = bool(still_open) and all(each.suppressed_by is not None for each in still_open)
    return Statement(
        cluster_id=cluster_id,
        topic_id=topic_id,
        topic=state.topic,
        partition=partition,
        verdict=verdict,
        claim=_claim(state, verdict) + (", and somebody answers for it" if is_let_be else ""),
        deployment=mode,
        from_ms=from_ms,
        as_of_ms=state.clock_ms,
        not_before_ms=state.born_ms,
        events=state.events,
        log_start=state.start,
        high_watermark=state.watermark,
        tiered_offsets=count(coverage.tiered(state)),
        replicas=tuple(
            (broker_id, "dark" if replica.is_dark else "seen")
            for broker_id, replica in sorted(state.replicas.items())
        ),
        applied=tuple(applied),
        not_applicable=tuple(each.id for each in RULES if each.id not in applied),
        missing=missing,
        suspect=suspect,
        open_findings=tuple(each.finding_id for each in still_open if each.suppressed_by is None),
        suppressed_findings=tuple(each.finding_id for each in still_open if each.suppressed_by is not None),
        rule_set=rule_set_hash(),
    )


def _claim(state: LogState, verdict: Verdict) -> str:
    start, end = state.start, state.watermark
    whole = f"[{start}, {end})" if start is not None and end is not None else "the log"
    words = {
        Verdict.PASS: f"every committed record of {whole} can be read, and nothing that went lacks a cause",
        Verdict.SUSPECT: f"something about {whole} is inside its grace, and judged after it",
        Verdict.INDETERMINATE: f"what happened to {whole} cannot be told: evidence is missing",
        Verdict.VIOLATION: f"{whole} violates a rule, and nothing has made up for it",
    }
    return words[verdict]


def _tree(value: Any) -> dict[str, Any]:
    return {
        name: (each.value if isinstance(each, Enum) else each)
        for name in value.__slots__
        for each in [getattr(value, name)]
    }
