"""Whether the evidence itself is whole: what each emitter has said, what of it never came, who fell silent.

    hole      a number that is missing below one that was heard, or told of (by a heartbeat, by the next run)
    placed    by the log's own numbers: `fold` finds that itself, in that log alone (AUDIT_FACTS 3)
    unplaced  the rest: nobody knows what it was about, so that each log of this emitter may miss it, until
              its next baseline; where the emitter tells of no disk, until it is replayed or accepted
    silent    live, and not heard up to the cut

Owns AUD-01, AUD-02 and AUD-03. Refuses to judge logs: it hands them `evidence_gap`s, told in their own order.

Invariant: what is carried of an emitter is ranges of numbers, not numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rules.events import (
    EmitterRetired,
    Event,
    EvidenceGap,
    Heartbeat,
    HighWatermark,
    LogBaseline,
    LogEvent,
    Source,
)
from rules.machine.cluster import LOST_FOR_GOOD
from rules.machine.findings import finding_id
from rules.machine.spans import NONE, Spans, count, cut, join, normal, span
from rules.machine.terms import Terms
from rules.machine.told import Speaker, Told

HEARTBEAT_MS = 60_000  # how often a live emitter says so
SILENT_AFTER_MS = 10 * HEARTBEAT_MS
RUNS_KEPT = 8
NO_ACTS = (Heartbeat, HighWatermark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One incarnation. `told_to`: how far it is known to have counted."""

    incarnation: int
    numbers: Spans = NONE
    told_to: int = 0
    last_ms: int = 0

    @property
    def holes(self) -> Spans:
        return cut(span(0, self.told_to), self.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitterState:
    """One component beside one broker, in all its runs."""

    broker_id: int
    component: str
    runs: tuple[Run, ...] = ()
    log_numbers: Mapping[str, Spans] = field(default_factory=dict)  # of the latest run, by log
    watches_disks: bool = False
    last_ms: int = 0
    is_retired: bool = False

    @property
    def name(self) -> str:
        return f"{self.broker_id}/{self.component}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Numbers that never came, and when they must have been said.

    `placed`: by log, those that the log's own numbers account for; `unplaced`: how many none does.
    """

    speaker: Speaker
    numbers: Spans
    from_ms: int
    to_ms: int
    placed: Mapping[str, Spans]
    unplaced: int
    watches_disks: bool

    def as_gaps(self, cluster_id: str) -> tuple[Told, ...]:
        """For the logs that miss them, or for every log of this emitter: from where they are missing on."""
        about: list[str | None] = [*sorted(self.placed)]
        if self.unplaced:
            about.append(None)
        return tuple(self._gap(cluster_id, log) for log in about)

    def _gap(self, cluster_id: str, log: str | None) -> Told:
        numbers = self.numbers if log is None else self.placed[log]
        told = f"{self.speaker} {log or ''}: " + ", ".join(f"{start} to {end - 1}" for start, end in numbers)
        topic_id, _, partition = (log or "").partition(":")
        event = EvidenceGap(
            event_id=hashlib.sha256(told.encode()).hexdigest()[:32],
            occurred_at_ms=self.to_ms,
            cluster_id=cluster_id,
            topic_id=topic_id or None,
            topic=None,
            partition=int(partition) if partition else None,
            source=Source.SEAWALL,
            problem="lost" if self.watches_disks else LOST_FOR_GOOD,
            detail=f"numbers of {told} never came",
            gap_start=numbers[0][0],
            gap_end=numbers[-1][1],
            not_before_ms=self.from_ms,
        )
        speaker = self.speaker._replace(component=f"{self.speaker.component}~judge {log or ''}")
        return Told(
            event=event, speaker=speaker, seq=numbers[0][0], log_seq=None, observed_at_ms=self.from_ms
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutEmitter:
    """A finding about the evidence."""

    finding_id: str
    rule_id: str
    severity: str
    subject: str
    anchor: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What listening came to: to be carried, to be told to logs, to be shown."""

    states: Mapping[str, EmitterState]
    losses: tuple[Loss, ...]
    findings: tuple[AboutEmitter, ...]
    silent: tuple[str, ...]

    def is_blind(self, brokers: Iterable[int]) -> tuple[str, ...]:
        """Of a log on these brokers: who of its watchers is silent."""
        watching = set(brokers)
        return tuple(
            f"silent: {name}"
            for name in self.silent
            if self.states[name].broker_id in watching or not self.states[name].watches_disks
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSaid:
    """What one run said, in whatever order: all that listening asks of it. `log_numbers`: by log."""

    incarnation: int
    numbers: Spans = NONE
    told_to: int = 0
    last_ms: int = 0
    log_numbers: Mapping[str, Spans] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What an emitter said. `follows`: runs that its runs say they follow, and how far those had counted."""

    broker_id: int
    component: str
    runs: tuple[RunSaid, ...] = ()
    follows: tuple[tuple[int, int], ...] = ()
    watches_disks: bool = False

    @property
    def name(self) -> str:
        return f"{self.broker_id}/{self.component}"


class Around(NamedTuple):
    """When the last number before a run's first hole was said, and the first one behind its last."""

    before_ms: int | None
    behind_ms: int | None


NOT_AROUND = Around(None, None)


def listen(states: Mapping[str, EmitterState], said: Iterable[Told], terms: Terms, *, as_of_ms: int) -> Heard:
    """Everything that was said up to the cut, by whomever, over what was heard before."""
    every = [each for each in said if each.observed_at_ms <= as_of_ms]
    known = dict(states)
    for each in summed(every):
        known[each.name] = heard(known.get(each.name), each)
    for told in every:
        if isinstance(told.event, EmitterRetired):
            other = f"{told.event.broker_id}/{told.event.component}"
            if other in known:
                known[other] = replace(known[other], is_retired=True)
    times: dict[Speaker, list[tuple[int, int]]] = {}
    for told in every:
        times.setdefault(told.speaker, []).append((told.seq, told.observed_at_ms))
    around = {
        speaker: _around(sorted(times.get(speaker, ())), *limits)
        for state in known.values()
        for speaker, limits in holes(state).items()
    }
    return concluded(known, around, two_payloads(every), as_of_ms=as_of_ms)


def summed(said: Iterable[Told]) -> list[Said]:
    """By emitter. The native form of it is `audit_engine.run.listening`'s."""
    by_name: dict[tuple[int, str], list[Told]] = {}
    for told in said:
        by_name.setdefault((told.speaker.broker_id, told.speaker.component), []).append(told)
    return [_of_one(*name, own) for name, own in sorted(by_name.items())]


def _of_one(broker_id: int, component: str, said: list[Told]) -> Said:
    runs: dict[int, list[Told]] = {}
    for told in said:
        runs.setdefault(told.speaker.incarnation, []).append(told)
    return Said(
        broker_id=broker_id,
        component=component,
        runs=tuple(_of_run(incarnation, own) for incarnation, own in sorted(runs.items())),
        follows=tuple(sorted({told.follows for told in said if told.follows is not None})),
        watches_disks=any(isinstance(told.event, LogBaseline) for told in said),
    )


def _of_run(incarnation: int, said: list[Told]) -> RunSaid:
    logs: dict[str, list[tuple[int, int]]] = {}
    for told in said:
        if told.log_seq is not None:
            logs.setdefault(_log_of(told.event), []).append((told.log_seq, told.log_seq + 1))
    beats = [told.event.last_seq + 1 for told in said if isinstance(told.event, Heartbeat)]
    return RunSaid(
        incarnation=incarnation,
        numbers=normal((told.seq, told.seq + 1) for told in said),
        told_to=max([*(told.seq + 1 for told in said), *beats]),
        last_ms=max(told.observed_at_ms for told in said),
        log_numbers={log: normal(each) for log, each in logs.items()},
    )


def heard(before: EmitterState | None, said: Said) -> EmitterState:
    """What is known after it. Runs that were forgotten as whole stay so, whatever of them is told again."""
    state = before or EmitterState(broker_id=said.broker_id, component=said.component)
    oldest = state.runs[0].incarnation if len(state.runs) >= RUNS_KEPT else -1
    runs = {each.incarnation: each for each in state.runs}
    for each in said.runs:
        if each.incarnation in runs or each.incarnation > oldest:
            run = runs.get(each.incarnation) or Run(incarnation=each.incarnation)
            runs[each.incarnation] = replace(
                run,
                numbers=join(run.numbers, each.numbers),
                told_to=max(run.told_to, each.told_to),
                last_ms=max(run.last_ms, each.last_ms),
            )
    for earlier, last_seq in said.follows:
        if earlier in runs or earlier > oldest:
            run = runs.get(earlier) or Run(incarnation=earlier)
            runs[earlier] = replace(run, told_to=max(run.told_to, last_seq + 1))
    kept = sorted(runs.values(), key=lambda each: each.incarnation)
    whole = [each for each in kept if not each.holes][-RUNS_KEPT:]
    return replace(
        state,
        runs=tuple(each for each in kept if each.holes or each in whole),
        log_numbers=_log_numbers(state, said, kept[-1].incarnation if kept else -1),
        watches_disks=state.watches_disks or said.watches_disks,
        last_ms=max([state.last_ms, *(each.last_ms for each in said.runs)]),
    )


def _log_numbers(state: EmitterState, said: Said, newest: int) -> Mapping[str, Spans]:
    """Those of the newest run alone."""
    is_new_run = not state.runs or newest > state.runs[-1].incarnation
    numbers = {} if is_new_run else dict(state.log_numbers)
    for each in said.runs:
        if each.incarnation == newest:
            for log, spans in each.log_numbers.items():
                numbers[log] = join(numbers.get(log, NONE), spans)
    return numbers


def holes(state: EmitterState) -> dict[Speaker, tuple[int, int]]:
    """Of each run that has any, where the first begins and where the last ends."""
    return {
        Speaker(state.broker_id, state.component, run.incarnation): (run.holes[0][0], run.holes[-1][1])
        for run in state.runs
        if run.holes
    }


def _around(times: list[tuple[int, int]], first: int, end: int) -> Around:
    """`times`: each number with its moment, sorted."""
    before = [at_ms for seq, at_ms in times if seq < first]
    behind = [at_ms for seq, at_ms in times if seq >= end]
    return Around(before[-1] if before else None, behind[0] if behind else None)


def concluded(
    states: Mapping[str, EmitterState],
    around: Mapping[Speaker, Around],
    doubled: Iterable[AboutEmitter],
    *,
    as_of_ms: int,
) -> Heard:
    """What is missing and who is silent, as the states have it."""
    losses = [loss for each in states.values() for loss in _losses(each, around)]
    silent = tuple(
        sorted(
            name
            for name, each in states.items()
            if not each.is_retired and each.watches_disks and each.last_ms < as_of_ms - SILENT_AFTER_MS
        )
    )
    findings = [*doubled, *(_hole(loss) for loss in losses)]
    findings += [
        _about("AUD-03", "W", name, str(states[name].runs[-1].incarnation), "it was not heard up to the cut")
        for name in silent
    ]
    return Heard(states=states, losses=tuple(losses), findings=tuple(findings), silent=silent)


def _log_of(event: Event | None) -> str:
    if not isinstance(event, LogEvent):
        return ""
    return f"{event.log.topic_id}:{event.log.partition}"


def _losses(state: EmitterState, around: Mapping[Speaker, Around]) -> Iterable[Loss]:
    for run in state.runs:
        if not run.holes:
            continue
        speaker = Speaker(state.broker_id, state.component, run.incarnation)
        before_ms, behind_ms = around.get(speaker, NOT_AROUND)
        is_latest = run is state.runs[-1]
        placed = {log: _missing(each) for log, each in state.log_numbers.items()} if is_latest else {}
        yield Loss(
            speaker=speaker,
            numbers=run.holes,
            from_ms=before_ms or 0,
            to_ms=run.last_ms if behind_ms is None else behind_ms,
            placed={log: each for log, each in placed.items() if each},
            unplaced=max(0, count(run.holes) - sum(count(each) for each in placed.values())),
            watches_disks=state.watches_disks,
        )


def _missing(numbers: Spans) -> Spans:
    return cut(span(0, numbers[-1][1]), numbers) if numbers else NONE


def two_payloads(said: Iterable[Told]) -> Iterable[AboutEmitter]:
    """AUD-02, within what is heard at once: under one number, and under one id, whoever says it.

    A beat and a reading of the watermark are no acts: nobody tells them again under another number.
    """
    by_number: dict[tuple[Speaker, int], Event | None] = {}
    by_id: dict[str, Event] = {}
    told_of: set[tuple[str, str]] = set()
    for told in sorted(said, key=lambda each: each.order):
        name = f"{told.speaker.broker_id}/{told.speaker.component}"
        number = (told.speaker, told.seq)
        is_other = number in by_number and by_number[number] != told.event
        by_number.setdefault(number, told.event)
        anchor = f"{told.speaker.incarnation}:{told.seq}"
        if told.event is not None and not isinstance(told.event, NO_ACTS):
            known = by_id.setdefault(told.event.event_id, told.event)
            is_other |= known != told.event
        if is_other and (name, anchor) not in told_of:
            told_of.add((name, anchor))
            yield _about("AUD-02", "E", name, anchor, "one id was said with two contents")


def _hole(loss: Loss) -> AboutEmitter:
    first = loss.numbers[0][0]
    told = ", ".join(f"{start} to {end - 1}" for start, end in loss.numbers)
    name = f"{loss.speaker.broker_id}/{loss.speaker.component}"
    return _about("AUD-01", "E", name, f"{loss.speaker.incarnation}:{first}", f"numbers {told} never came")


def _about(rule_id: str, severity: str, name: str, anchor: str, note: str) -> AboutEmitter:
    subject = f"emitter {name}"
    return AboutEmitter(
        finding_id=finding_id(rule_id, 1, subject, anchor),
        rule_id=rule_id,
        severity=severity,
        subject=subject,
        anchor=anchor,
        note=note,
    )
