"""What the other agents' tables hold of a log, as they last said it in `tier_state`.

Owns the newest word of each broker on each log. Refuses to compare: equal digests mean something only at
equal offsets, and that is `local`'s to see. Agents say only what is comparable (`LogDigest.comparable`).

Invariant: what is forgotten for want of room, or was never heard, is missing; and what is missing keeps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple, Protocol

from rules.events import TierState
from rules.identity import LogId
from tiering.outcome import Inconclusive
from tiering.segments.frontier import frontier
from tiering.segments.table import ReferenceTable

LOGS_MAX = 100_000


class Said(NamedTuple):
    """One broker's table of one log, at one offset of the metadata topic. `digest`: 64 hexadecimal digits."""

    metadata_offset: int
    digest: str


class Digests(Protocol):
    """Knows what was said last."""

    def of(self, log: LogId) -> Mapping[int, Said]:
        """By broker, this agent's own among them or not."""


def tier_state(
    table: ReferenceTable, log: LogId, *, new_id: Callable[[], str], now_ms: Callable[[], int]
) -> TierState | None:
    """What an agent says of a log after each of its records; None while no table may be held to it."""
    partition, view = table.of(log), table.view(log)
    digest = None if partition is None else partition.digest(log)
    if partition is None or view is None or view.record is None or digest is None or not digest.comparable:
        return None
    reached = frontier(view)
    assert not isinstance(reached, Inconclusive), "a log with a record has a frontier"
    return TierState(
        event_id=new_id(),
        occurred_at_ms=now_ms(),
        log=log,
        topic=view.record.topic,
        leader_epoch=view.record.claim_epoch,
        metadata_partition=partition.partition,
        metadata_offset=digest.offset,
        digest=digest.hex(),
        tiered_start=reached.start,
        frontier=reached.offset,
        segment_count=len(view.finished.keys),
        size_bytes=int(view.finished.sizes_bytes.sum()),
    )


class DigestBoard:
    """Keeps it in memory. Safe to use from many threads."""

    def __init__(self, *, logs_max: int = LOGS_MAX) -> None:
        self._logs_max = logs_max
        self._said: OrderedDict[LogId, dict[int, Said]] = OrderedDict()
        self._lock = Lock()

    def hear(self, broker_id: int, event: TierState) -> None:
        """A broker's agent said this. What comes late changes nothing; the same offset said anew, does."""
        said = Said(event.metadata_offset, event.digest)
        with self._lock:
            of_log = self._said.setdefault(event.log, {})
            before = of_log.get(broker_id)
            if before is None or said.metadata_offset >= before.metadata_offset:
                of_log[broker_id] = said
            self._said.move_to_end(event.log)
            if len(self._said) > self._logs_max:
                self._said.popitem(last=False)

    def of(self, log: LogId) -> Mapping[int, Said]:
        with self._lock:
            return dict(self._said.get(log, {}))
