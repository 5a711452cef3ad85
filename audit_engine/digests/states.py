"""What the agents said of their tables: the last few offsets of each broker and log.

A broker's older incarnations are forgotten with the first word of a newer one: that table is gone, and what
the new one holds of a log is not known before the log's next record.

Owns these values in memory, bounded by logs and by offsets a log. Refuses to remember a mismatch: it is told
once, when the second side of it is heard, and the events themselves are the evidence.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from audit_engine.wire import Envelope
from rules.events import TierState
from rules.identity import LogId
from tiering.outcome import Failed, Inconclusive, Outcome, Problem, Verified
from tiering.retention.digests import Said

OFFSETS_KEPT = 8  # of each broker and log: so far may one agent's table be behind another's
LOGS_MAX = 100_000


class StateAt(NamedTuple):
    """One table of one log, after the record at this offset of the metadata topic."""

    metadata_partition: int
    metadata_offset: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Tables that read the same records and hold different ones. `groups`: the largest first."""

    log: LogId
    metadata_partition: int
    metadata_offset: int
    groups: tuple[tuple[str, tuple[int, ...]], ...]  # a digest, and the brokers that say it

    def __str__(self) -> str:
        said = "; ".join(
            f"brokers {', '.join(map(str, brokers))} have {digest}" for digest, brokers in self.groups
        )
        return f"at offset {self.metadata_offset} {said}"


def disagreement(log: LogId, states: Mapping[int, StateAt]) -> Disagreement | None:
    """What is wrong with states by broker, all at one place of the metadata topic; None if they are alike."""
    by_digest: dict[str, list[int]] = {}
    for broker_id, state in sorted(states.items()):
        by_digest.setdefault(state.digest, []).append(broker_id)
    if len(by_digest) < 2:
        return None
    places = {state[:2] for state in states.values()}
    assert len(places) == 1, "only equal offsets compare"
    [(partition, offset)] = places
    groups = sorted(by_digest.items(), key=lambda group: (-len(group[1]), group[0]))
    return Disagreement(
        log=log,
        metadata_partition=partition,
        metadata_offset=offset,
        groups=tuple((digest, tuple(brokers)) for digest, brokers in groups),
    )


def agreement(
    log: LogId,
    said: Mapping[int, Collection[StateAt]],
    brokers: Collection[int],
    *,
    metadata_partition: int,
    metadata_offset: int,
) -> Outcome:
    """Whether all these brokers say one digest at one offset. A broker that said none leaves it open.

    A mismatch is one, whoever is missing, and also with a broker that was not asked for.
    """
    place = (metadata_partition, metadata_offset)
    there = {broker: at for broker, states in said.items() for at in states if at[:2] == place}
    if found := disagreement(log, there):
        problem = Problem(kind="digest_mismatch", detail=str(found), offset=metadata_offset)
        return Failed((problem,))
    if not brokers:
        return Inconclusive("nobody was named who should agree")
    missing = sorted(set(brokers) - there.keys())
    if missing:
        return Inconclusive(f"brokers {missing} have not said theirs at offset {metadata_offset}")
    return Verified()


class _OfBroker:
    """The last states of one broker and log, by offset."""

    __slots__ = ("incarnation", "states")

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.states: OrderedDict[tuple[int, int], StateAt] = OrderedDict()


class TierStates:
    """Hears every agent. Safe to use from many threads. It is a tiering.retention.digests.Digests."""

    def __init__(
        self,
        *,
        is_wanted: Callable[[LogId], bool] = lambda _: True,
        offsets_kept: int = OFFSETS_KEPT,
        logs_max: int = LOGS_MAX,
    ) -> None:
        self._is_wanted = is_wanted
        self._offsets_kept = offsets_kept
        self._logs_max = logs_max
        self._newest: dict[int, int] = {}  # incarnation, by broker
        self._logs: OrderedDict[LogId, dict[int, _OfBroker]] = OrderedDict()
        self._lock = Lock()

    def hear(self, envelope: Envelope) -> Disagreement | None:
        """Take what was said; a mismatch with what others said of the same offset, if this is news."""
        event, emitter = envelope.event, envelope.emitter
        if not isinstance(event, TierState) or event.source is not None:  # another's tier
            return None
        with self._lock:
            newest = max(self._newest.get(emitter.broker_id, emitter.incarnation), emitter.incarnation)
            self._newest[emitter.broker_id] = newest
            if emitter.incarnation < newest or not self._is_wanted(event.log):
                return None
            state = StateAt(event.metadata_partition, event.metadata_offset, event.digest)
            if not self._keep(event.log, emitter.broker_id, newest, state):
                return None
            return disagreement(event.log, self._at(event.log, state))

    def of(self, log: LogId) -> Mapping[int, Said]:
        """The newest of each broker."""
        newest = {broker: max(states, key=lambda at: at[:2]) for broker, states in self.states(log).items()}
        return {broker: Said(state.metadata_offset, state.digest) for broker, state in newest.items()}

    def states(self, log: LogId) -> Mapping[int, tuple[StateAt, ...]]:
        """By broker all that is remembered, by rising offset."""
        with self._lock:
            return {
                broker: tuple(sorted(kept.states.values()))
                for broker, kept in self._logs.get(log, {}).items()
                if kept.incarnation == self._newest[broker]
            }

    def agreement(
        self, log: LogId, brokers: Collection[int], *, metadata_partition: int, metadata_offset: int
    ) -> Outcome:
        """Whether all these brokers' tables hold the same of the log, after the record at that offset."""
        return agreement(
            log,
            self.states(log),
            brokers,
            metadata_partition=metadata_partition,
            metadata_offset=metadata_offset,
        )

    def _keep(self, log: LogId, broker_id: int, incarnation: int, state: StateAt) -> bool:
        """Whether it was not known, or known otherwise."""
        of_log = self._logs.setdefault(log, {})
        self._logs.move_to_end(log)
        if len(self._logs) > self._logs_max:
            self._logs.popitem(last=False)
        kept = of_log.get(broker_id)
        if kept is None or kept.incarnation != incarnation:
            kept = of_log[broker_id] = _OfBroker(incarnation)
        is_news = kept.states.get(state[:2]) != state
        kept.states[state[:2]] = state
        while len(kept.states) > self._offsets_kept:
            del kept.states[min(kept.states)]
        return is_news and state[:2] in kept.states

    def _at(self, log: LogId, place: StateAt) -> dict[int, StateAt]:
        """What each broker's newest incarnation says at the place of that state."""
        return {
            broker: kept.states[place[:2]]
            for broker, kept in self._logs[log].items()
            if kept.incarnation == self._newest[broker] and place[:2] in kept.states
        }
