"""What an agent has told at `__seawall_audit`, and that nothing of it is missing.

Deliveries may repeat, each under its own number; an act may be told again by a later run, under its own id.
What is left without these is what happened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from audit_engine.wire import Envelope, decode
from rules.events import Event, Heartbeat, LogEvent, ReplicaEvent
from rules.identity import LogId
from seawall.events.kafka import hear
from seawall.local.broker import LocalCluster

COMPONENT = "agent"
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class Told:
    """The runs of one agent in their order, each without repetitions, in the order of its numbers."""

    runs: tuple[tuple[Envelope, ...], ...]
    deliveries: int

    @property
    def envelopes(self) -> list[Envelope]:
        return [each for run in self.runs for each in run]

    @property
    def acts(self) -> list[Event]:
        """Each act once, where it was told first. Told again, it must be the same."""
        found: dict[str, Event] = {}
        for each in self.envelopes:
            assert isinstance(each.event, Event), f"{each.kind} is not known"
            first = found.setdefault(each.event.event_id, each.event)
            assert first == each.event, "one id is one act"
        return list(found.values())

    def of(self, kind: type[E], topic: str) -> list[E]:
        """The acts of this kind about a topic."""
        return [
            each for each in self.acts if isinstance(each, kind) and getattr(each, "topic", None) == topic
        ]


def told(cluster: LocalCluster, *, since_ms: int, broker_id: int = 1) -> Told:
    """All that a broker's agents have told in runs that began from this time on."""
    deliveries: dict[tuple[int, int], Envelope] = {}
    count = 0
    for heard in hear({"bootstrap.servers": cluster.bootstrap}, since_ms=since_ms):
        envelope = decode(heard.value)
        emitter = envelope.emitter
        if emitter[:2] == (broker_id, COMPONENT) and emitter.incarnation >= since_ms:
            count += 1
            first = deliveries.setdefault((emitter.incarnation, envelope.emitter_seq), envelope)
            assert first == envelope, "one number is one event"
    runs: defaultdict[int, list[Envelope]] = defaultdict(list)
    for (incarnation, _), envelope in sorted(deliveries.items()):
        runs[incarnation].append(envelope)
    return Told(tuple(tuple(run) for run in runs.values()), count)


def holes(found: Told) -> list[str]:
    """Every hole in the numbers: within a run, of a log within it, and between a run and the next."""
    wrong: list[str] = []
    before: Envelope | None = None
    for run in found.runs:
        first, last = run[0], run[-1]
        name = f"run {first.emitter.incarnation}"
        if [each.emitter_seq for each in run] != list(range(len(run))):
            wrong.append(f"{name} has {len(run)} events up to {last.emitter_seq}")
        for log, seqs in _log_seqs(run).items():
            if seqs != list(range(len(seqs))):
                wrong.append(f"{name} has {seqs} of {log}")
        follows = None if before is None else (before.emitter.incarnation, before.emitter_seq)
        if first.follows != follows:
            wrong.append(f"{name} follows {first.follows}, and what is there ends with {follows}")
        wrong += _beats(name, run)
        before = last
    for life, ordinals in _ordinals(found.acts).items():
        if ordinals != list(range(len(ordinals))):
            wrong.append(f"{life} has the ordinals {ordinals}")
    return wrong


def _log_seqs(run: Sequence[Envelope]) -> Mapping[LogId, list[int | None]]:
    seqs: defaultdict[LogId, list[int | None]] = defaultdict(list)
    for each in run:
        if isinstance(each.event, LogEvent):
            seqs[each.event.log].append(each.log_seq)
    return seqs


def _beats(name: str, run: Sequence[Envelope]) -> Iterable[str]:
    """Each heartbeat says what was counted before it, and the hash of each log's last number."""
    last: dict[LogId, int] = {}
    for each in run:
        if isinstance(each.event, LogEvent):
            last[each.event.log] = each.log_seq or 0
        if isinstance(each.event, Heartbeat):
            lines = (f"{log.topic_id}:{log.partition}:{seq}\n" for log, seq in sorted(last.items()))
            counted = (each.emitter_seq - 1, len(last), sha256("".join(lines).encode()).hexdigest())
            said = (each.event.last_seq, each.event.log_count, each.event.log_seqs_digest)
            if said != counted:
                yield f"{name} says {said} at {each.emitter_seq}, and it is {counted}"


def _ordinals(acts: Iterable[Event]) -> Mapping[tuple[LogId, int | None], list[int]]:
    """In the order of the disk's own time, as the last run tells again what one before had not got out."""
    found: defaultdict[tuple[LogId, int | None], list[int]] = defaultdict(list)
    for each in acts:
        if isinstance(each, ReplicaEvent):
            found[each.log, each.replica_incarnation].append(each.ordinal)
    return found
