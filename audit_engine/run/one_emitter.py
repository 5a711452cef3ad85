"""One emitter in one run: what it said since, over how far it was heard before, and what of it never came.

    gaps      what logs must be told of as missing, as rows like those of `audit_events`; a gap that the run
              before told already is in their states, and its end is told when it stands no more: it came
              after all, or somebody accepts that it never will
    findings  AUD-01 to AUD-03; what was said with two contents stays found, whatever is heard later

Owns this one step and the form of an emitter's state; what is missing is `rules.machine.emitters`' to say.

Invariant: a number is heard or missing, and told as missing once a log, until it comes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from audit_engine.run.decisions import GAP
from audit_engine.run.one_log import Task, canonical
from audit_engine.run.told import row_of, told_of
from rules.catalogue import rule
from rules.events.emitters import MADE_GOOD
from rules.machine import Speaker
from rules.machine.emitters import (
    AboutEmitter,
    Around,
    EmitterState,
    Run,
    Said,
    concluded,
    heard,
    holes,
    two_payloads,
)
from rules.machine.findings import finding_id
from rules.machine.spans import NONE, join

HAPPENED = frozenset({"AUD-02"})
ENDS_KEPT = 1_000  # of gaps that stand no more, for logs that are folded again from a state that has them


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardBefore:
    """Of the run before, as it was put down."""

    state: str
    gaps: str
    findings: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listened:
    """`gaps`: all that stand; `new_gaps`: those that no run has told yet; `holes`: by run, where they lie."""

    state: str
    gaps: str
    new_gaps: str
    findings: str
    is_silent: bool
    watches_disks: bool
    holes: list[dict[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What a run has of an emitter. `doubled`: rows under one number or id, others' among them; `around`: by
    its runs."""

    said: Said | None
    doubled: Sequence[Mapping[str, Any]] = ()
    around: Mapping[int, Around] = field(default_factory=dict)
    is_retired: bool = False


def listen_to(
    cluster_id: str, broker_id: int, component: str, of_it: Slice, before: HeardBefore | None, task: Task
) -> Listened:
    name = f"{broker_id}/{component}"
    state = None if before is None else _read(json.loads(before.state))
    if of_it.said is not None:
        state = heard(state, of_it.said)
    state = state or EmitterState(broker_id=broker_id, component=component)
    if of_it.is_retired:
        state = replace(state, is_retired=True)
    state, why = _accepting(cluster_id, state, before, task)
    doubled = [
        each
        for each in two_payloads([told_of(row) for row in of_it.doubled])
        if each.subject == f"emitter {name}"
    ]
    around = {Speaker(broker_id, component, run): each for run, each in of_it.around.items()}
    found = concluded({name: state}, around, doubled, as_of_ms=task.as_of_ms)
    gaps = [row_of(told) for loss in found.losses for told in loss.as_gaps(cluster_id)]
    told_before = [] if before is None else json.loads(before.gaps)
    ends = [each for each in told_before if _is_end(each)][-ENDS_KEPT:]
    ended = [
        _end_of(each, why, task.as_of_ms) for each in told_before if not _is_end(each) and each not in gaps
    ]
    findings = [_told(cluster_id, each) for each in found.findings]
    known = {each["finding_id"] for each in findings}
    if before is not None:
        findings += [
            each
            for each in json.loads(before.findings)
            if each["rule_id"] in HAPPENED and each["finding_id"] not in known
        ]
    return Listened(
        state=canonical(_written(state)),
        gaps=canonical([*gaps, *ends, *ended]),
        new_gaps=canonical([*(each for each in gaps if each not in told_before), *ended]),
        findings=canonical(findings),
        is_silent=name in found.silent,
        watches_disks=state.watches_disks,
        holes=[
            {"incarnation": speaker.incarnation, "first": first, "end": end}
            for speaker, (first, end) in holes(state).items()
        ],
    )


def _accepting(
    cluster_id: str, state: EmitterState, before: HeardBefore | None, task: Task
) -> tuple[EmitterState, str]:
    """Numbers that somebody takes as lost count as heard: those that the run before missed already."""
    if before is None or not task.accepted:
        return state, ""
    missed = {run.incarnation: run.holes for run in _read(json.loads(before.state)).runs}
    runs, found = [], []
    for run in state.runs:
        known = missed.get(run.incarnation, NONE)
        anchor = f"{run.incarnation}:{known[0][0]}" if known else ""
        own_id = finding_id(GAP, rule(GAP).major, f"{cluster_id}/emitter {state.name}", anchor)
        if known and own_id in task.accepted:
            found.append(task.accepted[own_id])
            runs.append(replace(run, numbers=join(run.numbers, known)))
        else:
            runs.append(run)
    return replace(state, runs=tuple(runs)), "; ".join(dict.fromkeys(found))


def _is_end(row: Mapping[str, Any]) -> bool:
    return bool(json.loads(row["body"])["problem"] == MADE_GOOD)


def _end_of(row: Mapping[str, Any], why: str, at_ms: int) -> dict[str, Any]:
    """Of a gap that logs were told of: it stands no more, from this run's moment on."""
    body = json.loads(row["body"])
    body |= {"problem": MADE_GOOD, "not_before_ms": None}
    body["detail"] += f"; {why}" if why else ""
    return {
        **row,
        "event_id": f"{row['event_id']}-{at_ms}",
        "emitter_component": f"{row['emitter_component']}~end",
        "occurred_at_ms": at_ms,
        "observed_at_ms": at_ms,
        "body": canonical(body),
    }


def _told(cluster_id: str, about: AboutEmitter) -> dict[str, Any]:
    """Broker 1 of one cluster is not broker 1 of another."""
    subject = f"{cluster_id}/{about.subject}"
    members = {name: getattr(about, name) for name in about.__slots__}
    own_id = finding_id(about.rule_id, rule(about.rule_id).major, subject, about.anchor)
    return members | {"subject": subject, "finding_id": own_id}


def _written(state: EmitterState) -> dict[str, Any]:
    return {
        "broker_id": state.broker_id,
        "component": state.component,
        "runs": [[run.incarnation, run.numbers, run.told_to, run.last_ms] for run in state.runs],
        "log_numbers": dict(state.log_numbers),
        "watches_disks": state.watches_disks,
        "last_ms": state.last_ms,
        "is_retired": state.is_retired,
    }


def _read(members: dict[str, Any]) -> EmitterState:
    runs = tuple(
        Run(incarnation=incarnation, numbers=_spans(numbers), told_to=told_to, last_ms=last_ms)
        for incarnation, numbers, told_to, last_ms in members["runs"]
    )
    numbers = {log: _spans(each) for log, each in members["log_numbers"].items()}
    return EmitterState(**members | {"runs": runs, "log_numbers": numbers})


def _spans(listed: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end in listed)
