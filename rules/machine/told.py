"""An event, its place among all that its emitter said, and the one order in which a log's events are judged.

    by what was heard      observed_at_ms, which never falls in one run of an emitter, then emitter and number
    among KRaft's facts    their offset in the metadata log, whoever read them
    among the tier's       their offset in the metadata topic, whoever read them

Arrival says nothing: Kafka's offset is a position (AUDIT_FACTS 2). The two logical clocks come before wall
clocks, so that two hosts' clocks cannot turn a copy and its deletion around: `in_order` hands the places that
such facts have among the rest to them in their own order.

Owns the value and the order. Refuses to drop anything but a repetition of one number.

Invariant: the order is a function of the set of what was said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rules.events import (
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    Event,
    EvidenceGap,
    IsrChanged,
    LeaderChanged,
    LeadershipClaimed,
    LogEvent,
    TopicEvent,
)
from rules.identity import LogId

TIER_FACTS = (CopyStarted, CopyFinished, DeleteStarted, DeleteFinished, LeadershipClaimed)
KRAFT_FACTS = (LeaderChanged, IsrChanged)


class Speaker(NamedTuple):
    """One run of one component beside one broker: the envelope's emitter."""

    broker_id: int
    component: str
    incarnation: int

    def __str__(self) -> str:
        return f"{self.broker_id}/{self.component}/{self.incarnation}"


class Order(NamedTuple):
    observed_at_ms: int
    speaker: Speaker
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """`event` is None for a kind that is not known here: its number counts, and nothing else of it.

    `follows`: the run before this one and its last number, of a run's first event alone.
    """

    event: Event | None
    speaker: Speaker
    seq: int
    log_seq: int | None
    observed_at_ms: int
    kind: str = ""
    follows: tuple[int, int] | None = None

    @property
    def order(self) -> Order:
        return Order(self.observed_at_ms, self.speaker, self.seq)


def in_order(said: Iterable[Told]) -> list[Told]:
    """Each number once, in the order in which it is judged."""
    once: dict[tuple[Speaker, int], Told] = {}
    for each in said:
        once.setdefault((each.speaker, each.seq), each)
    line = sorted(once.values(), key=lambda each: each.order)
    _by_own_clock(line, TIER_FACTS)
    _by_own_clock(line, KRAFT_FACTS)
    return line


def concerns(event: Event, log: LogId, topic: str) -> bool:
    """Whether an event is to be told to the machine of this log; those about the cluster are told to all."""
    if isinstance(event, LogEvent):
        return event.log == log
    if getattr(event, "cluster_id", log.cluster_id) != log.cluster_id:
        return False
    if isinstance(event, TopicEvent):
        return event.topic_id == log.topic_id
    topic_id = getattr(event, "topic_id", None)
    if topic_id is not None and topic_id != log.topic_id:
        return False
    if isinstance(event, EvidenceGap) and event.partition not in (None, log.partition):
        return False
    return getattr(event, "topic", None) in (None, topic)


def _by_own_clock(line: list[Told], kinds: tuple[type[Event], ...]) -> None:
    places = [at for at, each in enumerate(line) if _own_clock(each, kinds) is not None]
    facts = sorted((line[at] for at in places), key=lambda each: (_own_clock(each, kinds) or 0, each.order))
    for at, fact in zip(places, facts, strict=True):
        line[at] = fact


def _own_clock(told: Told, kinds: tuple[type[Event], ...]) -> int | None:
    offset: int | None = getattr(told.event, "metadata_offset", None)
    return offset if isinstance(told.event, kinds) else None
