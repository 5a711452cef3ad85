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

from rules.events import EmitterRetired, Event, EvidenceGap, Heartbeat, LogBaseline, LogEvent, Source
from rules.machine.cluster import LOST_FOR_GOOD
from rules.machine.findings import finding_id
from rules.machine.spans import NONE, Spans, count, cut, join, span
from rules.machine.terms import Terms
from rules.machine.told import Speaker, Told, in_order

HEARTBEAT_MS = 60_000  # how often a live emitter says so
SILENT_AFTER_MS = 10 * HEARTBEAT_MS
RUNS_KEPT = 8
LOSSES_KEPT = 1_000


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


def listen(states: Mapping[str, EmitterState], said: Iterable[Told], terms: Terms, *, as_of_ms: int) -> Heard:
    """Everything that was said up to the cut, by whomever, over what was heard before."""
    every = [each for each in said if each.observed_at_ms <= as_of_ms]
    findings = list(_two_payloads(every))
    known = dict(states)
    times: dict[Speaker, list[tuple[int, int]]] = {}
    for told in in_order(every):
        name = f"{told.speaker.broker_id}/{told.speaker.component}"
        before = known.get(name) or EmitterState(
            broker_id=told.speaker.broker_id, component=told.speaker.component
        )
        known[name] = _heard(before, told)
        times.setdefault(told.speaker, []).append((told.seq, told.observed_at_ms))
        if isinstance(told.event, EmitterRetired):
            other = f"{told.event.broker_id}/{told.event.component}"
            if other in known:
                known[other] = replace(known[other], is_retired=True)
    losses = [loss for each in known.values() for loss in _losses(each, times)]
    findings += [_hole(loss) for loss in losses]
    silent = tuple(
        sorted(
            name
            for name, each in known.items()
            if not each.is_retired and each.watches_disks and each.last_ms < as_of_ms - SILENT_AFTER_MS
        )
    )
    findings += [
        _about("AUD-03", "W", name, str(known[name].runs[-1].incarnation), "it was not heard up to the cut")
        for name in silent
    ]
    return Heard(states=known, losses=tuple(losses), findings=tuple(findings), silent=silent)


def _heard(state: EmitterState, told: Told) -> EmitterState:
    runs = {each.incarnation: each for each in state.runs}
    run = runs.get(told.speaker.incarnation) or Run(incarnation=told.speaker.incarnation)
    reached = told.seq + 1
    if isinstance(told.event, Heartbeat):
        reached = max(reached, told.event.last_seq + 1)
    runs[run.incarnation] = replace(
        run,
        numbers=join(run.numbers, span(told.seq, told.seq + 1)),
        told_to=max(run.told_to, reached),
        last_ms=max(run.last_ms, told.observed_at_ms),
    )
    if told.follows is not None:
        earlier, last_seq = told.follows
        before = runs.get(earlier) or Run(incarnation=earlier)
        runs[earlier] = replace(before, told_to=max(before.told_to, last_seq + 1))
    newest = max(runs)
    kept = sorted(runs.values(), key=lambda each: each.incarnation)
    whole = [each for each in kept if not each.holes][-RUNS_KEPT:]
    is_new_run = bool(state.runs) and newest > state.runs[-1].incarnation
    numbers = {} if is_new_run else dict(state.log_numbers)
    if told.log_seq is not None and told.speaker.incarnation == newest:
        log = _log_of(told.event)
        numbers[log] = join(numbers.get(log, NONE), span(told.log_seq, told.log_seq + 1))
    return replace(
        state,
        runs=tuple(each for each in kept if each.holes or each in whole),
        log_numbers=numbers,
        watches_disks=state.watches_disks or isinstance(told.event, LogBaseline),
        last_ms=max(state.last_ms, told.observed_at_ms),
    )


def _log_of(event: Event | None) -> str:
    if not isinstance(event, LogEvent):
        return ""
    return f"{event.log.topic_id}:{event.log.partition}"


def _losses(state: EmitterState, times: Mapping[Speaker, list[tuple[int, int]]]) -> Iterable[Loss]:
    for run in state.runs:
        if not run.holes:
            continue
        speaker = Speaker(state.broker_id, state.component, run.incarnation)
        heard = sorted(times.get(speaker, ()))
        first, end = run.holes[0][0], run.holes[-1][1]
        before = [at_ms for seq, at_ms in heard if seq < first]
        behind = [at_ms for seq, at_ms in heard if seq >= end - 1]
        is_latest = run is state.runs[-1]
        placed = {log: _missing(each) for log, each in state.log_numbers.items()} if is_latest else {}
        yield Loss(
            speaker=speaker,
            numbers=run.holes,
            from_ms=before[-1] if before else 0,
            to_ms=behind[0] if behind else run.last_ms,
            placed={log: each for log, each in placed.items() if each},
            unplaced=max(0, count(run.holes) - sum(count(each) for each in placed.values())),
            watches_disks=state.watches_disks,
        )


def _missing(numbers: Spans) -> Spans:
    return cut(span(0, numbers[-1][1]), numbers) if numbers else NONE


def _two_payloads(said: Iterable[Told]) -> Iterable[AboutEmitter]:
    """AUD-02, within what is heard at once: under one number, and under one id, whoever says it."""
    by_number: dict[tuple[Speaker, int], Event | None] = {}
    by_id: dict[str, Event] = {}
    told_of = set()
    for told in sorted(said, key=lambda each: each.order):
        name = f"{told.speaker.broker_id}/{told.speaker.component}"
        number = (told.speaker, told.seq)
        is_other = number in by_number and by_number[number] != told.event
        by_number.setdefault(number, told.event)
        anchor = f"{told.speaker.incarnation}:{told.seq}"
        if told.event is not None and not isinstance(told.event, Heartbeat):
            known = by_id.setdefault(told.event.event_id, told.event)
            is_other |= known != told.event
        if is_other and anchor not in told_of:
            told_of.add(anchor)
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
