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

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

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

AnyTold = TypeVar("AnyTold", bound="Told | Reading")
Kinds = tuple[type[Event], ...]
TIER_FACTS: Kinds = (
    CopyStarted,
    CopyFinished,
    DeleteStarted,
    DeleteFinished,
    LeadershipClaimed,
)
KRAFT_FACTS: Kinds = (LeaderChanged, IsrChanged)
_CLOCKS = (TIER_FACTS, KRAFT_FACTS)
_CLOCK_OF: Mapping[type[Event | None], int] = {
    kind: clock for clock, kinds in enumerate(_CLOCKS) for kind in kinds
}


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


class Reading(NamedTuple):
    """One reading of a high watermark, off the disk of a replica that is told which: what is asked of nearly
    every event. `whole` tells all of it, if more is."""

    speaker: Speaker
    seq: int
    log_seq: int
    observed_at_ms: int
    occurred_at_ms: int
    leader_epoch: int
    broker_id: int
    directory_id: str
    replica_incarnation: int
    log_start: int
    high_watermark: int
    log_end: int | None
    size_bytes: int | None
    whole: Callable[[], Told]


def told_whole(told: Told | Reading) -> Told:
    return told.whole() if isinstance(told, Reading) else told


def in_order(said: Iterable[Told]) -> list[Told]:
    """Each number once, in the order in which it is judged."""
    once: dict[tuple[Speaker, int], Told] = {}
    for each in sorted(said, key=lambda each: each.order):
        once.setdefault((each.speaker, each.seq), each)
    return list(in_line([each for each in once.values() if has_own_clock(each)], once.values()))


def in_line(facts: Iterable[Told], said: Iterable[AnyTold]) -> Iterator[AnyTold | Told]:
    """The same of what is sorted already, one after another: nothing is held but `facts`, which are those of
    `said` that have a clock of their own. What is numbered in the log may come twice, side by side or not:
    who folds it knows what was heard."""
    once = {(each.speaker, each.seq): each for each in reversed([*facts])}
    waiting: tuple[deque[Told], ...] = tuple(
        deque(sorted((each for each in once.values() if _clock_of(each) == clock), key=_by_own_clock))
        for clock in range(len(_CLOCKS))
    )
    seen: set[tuple[Speaker, int]] = set()
    last: tuple[Speaker, int] | None = None
    for each in said:
        number = (each.speaker, each.seq)
        is_fact = number in once
        if number == last or number in seen:
            continue
        last = number
        if is_fact or each.log_seq is None:
            seen.add(number)
        clock = _clock_of(each)
        yield each if clock is None or not waiting[clock] else waiting[clock].popleft()


def has_own_clock(told: Told) -> bool:
    return _clock_of(told) is not None


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


def _by_own_clock(told: Told) -> tuple[int, Order]:
    return (getattr(told.event, "metadata_offset", None) or 0, told.order)


def _clock_of(told: Told | Reading) -> int | None:
    """Which of the clocks places it, if it says where."""
    if isinstance(told, Reading):
        return None
    clock = _CLOCK_OF.get(type(told.event))
    return None if clock is None or getattr(told.event, "metadata_offset", None) is None else clock
