"""One log in one run: what was said of it since, over what is carried of it, and what that comes to.

    carried    what the run before left; None for a log that is seen for the first time
    base       an earlier run's state, where something is late: older than what `carried` has folded already
    line       what was said since; repetitions, and what is in the state already, may be among it

A log of which something is late, and for which no `base` was looked for, is not judged: the result says from
when an earlier state is needed.

Owns this one step, pure. Invariant: the same events in any order and split over any runs, as of the same last
moment, come to the same state and the same findings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from audit_engine.run.outcomes import told
from audit_engine.run.screen import words_of
from rules.identity import LogId
from rules.machine import (
    LogState,
    Reading,
    Terms,
    Told,
    decode,
    encode,
    fold_line,
    in_line,
    is_late,
    newborn,
)
from rules.machine.calm import Calm, calm_of
from rules.machine.verdict import Statement, stated
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
    """What every log of a run is judged with. `from_ms`: the moment of the run before; `accepted`: who
    takes as lost what never came, by finding."""

    terms: Terms
    from_ms: int
    as_of_ms: int
    doubts: tuple[Doubt, ...] = ()
    accepted: Mapping[str, str] = field(default_factory=dict)


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


class _CameLate(Exception):
    def __init__(self, observed_at_ms: int) -> None:
        super().__init__(observed_at_ms)
        self.observed_at_ms = observed_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What was said up to the run's moment, in its order, one after another: none of it is held.

    `facts` are those of it that have a clock of their own (`rules.machine.told`), in any order.
    """

    facts: Sequence[Told]
    said: Iterable[Told | Reading]


def judge(log: LogId, topic: str, line: Line, carried: bytes | None, task: Task) -> Judged | Late:
    """Over what the run before left."""
    state = newborn(log, topic) if carried is None else decode(carried)
    before = replace(
        newborn(log, topic), position=state.position, heard=dict(state.heard), tier_offset=state.tier_offset
    )

    def in_time() -> Iterator[Told | Reading]:
        for each in line.said:
            if is_late(before, each):
                raise _CameLate(each.observed_at_ms)
            yield each

    late_ms = [each.observed_at_ms for each in line.facts if is_late(before, each)]
    try:
        judged = _judged(state, in_line(line.facts, in_time()), task)
    except _CameLate as came:  # the first of them: what is behind it is later
        late_ms.append(came.observed_at_ms)
    return Late(observed_at_ms=min(late_ms)) if late_ms else judged


def judge_again(log: LogId, topic: str, line: Line, base: bytes | None, task: Task) -> Judged:
    """Over an earlier run's state; where there is none, from the beginning: the line is everything since."""
    state = newborn(log, topic) if base is None else decode(base)
    position = state.position
    facts = [each for each in line.facts if not _is_in(position, each)]
    said = (each for each in line.said if not _is_in(position, each))
    return _judged(state, in_line(facts, said), task)


def _judged(state: LogState, line: Iterable[Told | Reading], task: Task) -> Judged:
    after = fold_line(state, line, task.terms, as_of_ms=task.as_of_ms)
    blind = tuple(each.why for each in task.doubts if each.is_about(after))
    judgement = judged_by_rules(after, task.terms, from_ms=task.from_ms, blind=blind)
    stated(after, judgement.statement)
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


def _is_in(position: tuple[int, tuple[int, str, int], int] | None, said: Told | Reading) -> bool:
    """Whether an event that has no number in this log is folded already: all up to the position are."""
    if said.log_seq is not None or position is None:
        return False
    return (said.observed_at_ms, tuple(said.speaker), said.seq) <= position


def canonical(members: Any) -> str:
    return json.dumps(members, sort_keys=True, separators=(",", ":"))
