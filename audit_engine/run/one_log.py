"""One log in one run: what was said of it since, over what is carried of it, and what that comes to.

    carried    what the run before left; None for a log that is seen for the first time
    base       an earlier run's state, where something is late: older than what `carried` has folded already
    rows       what was said since; repetitions, and what is in the state already, may be among it

A log of which something is late, and for which no `base` was looked for, is not judged: the result says from
when an earlier state is needed.

Owns this one step, pure. Invariant: the same events in any order and split over any runs, as of the same last
moment, come to the same state and the same findings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from audit_engine.run.outcomes import told
from audit_engine.run.screen import words_of
from audit_engine.run.told import told_of
from rules.identity import LogId
from rules.machine import LogState, Terms, Told, decode, encode, fold, is_late, newborn
from rules.machine.calm import Calm, calm_of
from rules.machine.verdict import Statement
from rules.machine.verdict import judge as judged_by_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Why evidence is missing: of every log, of a cluster's, or of a broker's. None: of all."""

    why: str
    cluster_id: str | None = None
    broker_id: int | None = None

    def is_about(self, state: LogState) -> bool:
        brokers = {*state.replicas, *(state.assigned or ())}
        in_cluster = self.cluster_id in (None, state.log.cluster_id)
        return in_cluster and (self.broker_id is None or self.broker_id in brokers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What every log of a run is judged with. `from_ms`: the moment of the run before."""

    terms: Terms
    from_ms: int
    as_of_ms: int
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """Something was said at `observed_at_ms` that comes before what the carried state has."""

    observed_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`findings` is canonical JSON: all that the state has, open or not any more.

    `calm` and `words`: by what the next run may excuse it, and what is stated of it then.
    """

    state: bytes
    position_ms: int
    findings: str
    statement: Statement
    has_blast: bool
    calm: Calm | None
    words: str | None

    @property
    def statement_json(self) -> str:
        """What its hash is over."""
        return canonical({name: getattr(self.statement, name) for name in self.statement.__slots__})


def judge(
    log: LogId, topic: str, rows: Iterable[Mapping[str, Any]], carried: bytes | None, task: Task
) -> Judged | Late:
    """Over what the run before left."""
    state = newborn(log, topic) if carried is None else decode(carried)
    said = _said(rows, task)
    if late := [each.observed_at_ms for each in said if is_late(state, each)]:
        return Late(observed_at_ms=min(late))
    return _judged(state, said, task)


def judge_again(
    log: LogId, topic: str, rows: Iterable[Mapping[str, Any]], base: bytes | None, task: Task
) -> Judged:
    """Over an earlier run's state; where there is none, from the beginning: `rows` is everything since."""
    state = newborn(log, topic) if base is None else decode(base)
    said = [each for each in _said(rows, task) if not _is_in(state, each)]
    return _judged(state, said, task)


def _judged(state: LogState, said: list[Told], task: Task) -> Judged:
    after = fold(state, said, task.terms, as_of_ms=task.as_of_ms)
    blind = tuple(each.why for each in task.doubts if each.is_about(after))
    judgement = judged_by_rules(after, task.terms, from_ms=task.from_ms, blind=blind)
    words = words_of(judgement.statement)
    return Judged(
        state=encode(after),
        position_ms=-1 if after.position is None else after.position[0],
        findings=canonical([told(each) for each in judgement.findings]),
        statement=judgement.statement,
        has_blast=bool(after.blast),
        calm=None if words is None else calm_of(after, task.terms),
        words=words,
    )


def _said(rows: Iterable[Mapping[str, Any]], task: Task) -> list[Told]:
    return [each for each in map(told_of, rows) if each.observed_at_ms <= task.as_of_ms]


def _is_in(state: LogState, said: Told) -> bool:
    """Whether an event that has no number in this log is folded already: all up to the position are."""
    if said.log_seq is not None or state.position is None:
        return False
    return (said.observed_at_ms, tuple(said.speaker), said.seq) <= state.position


def canonical(members: Any) -> str:
    return json.dumps(members, sort_keys=True, separators=(",", ":"))
