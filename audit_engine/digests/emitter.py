"""Says what this agent's table holds of a log, after each of the log's records that it applied.

It stands between the follower of the metadata topic and the table: records are applied in pieces that hold at
most one record of any log, and after each piece the state of the logs in it is taken. So every agent says a
digest at the offset of every record, and they meet. In a batch with more than RECORDS_OF_A_LOG of one log,
which is an agent that was away, only some of them are said, the last always: there quiet logs meet.

Nothing is said of offsets below the end that the topic had when the replay began (`LogDigest.comparable`):
compaction has hidden records there, and a restart would look like a mismatch.

Owns when it is said. Refuses to compare: that is `states`.

Invariant: a `tier_state` at offset o holds the digest after exactly the records up to o.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from audit_engine.digests.states import Disagreement
from rules.events import LogEvent, TierSet, TierState
from rules.identity import LogId
from tiering.outcome import Inconclusive
from tiering.segments.frontier import frontier
from tiering.segments.keys import parse_key
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord
from tiering.segments.view import LogView

RECORDS_OF_A_LOG = 16
SETS_REMEMBERED = 10_000
SET_EVERY_MS = 600_000  # of one log: a table that is wrong differs at every record from now on
NOT_KNOWN = -1


class Tables(Protocol):
    """The agent's table and its lock: tiering.uploader.metadata.Metadata."""

    def applied(self, partition: int, records: Sequence[TopicRecord]) -> None: ...

    def table(self) -> AbstractContextManager[ReferenceTable]: ...


class TierStateEmitter:
    """`applied` is what the follower is given instead of the table's own."""

    def __init__(
        self,
        tables: Tables,
        emit_many: Callable[[Sequence[LogEvent]], None],
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._tables = tables
        self._emit_many = emit_many
        self._now_ms = now_ms
        self._new_id = new_id
        self._sets_said: OrderedDict[LogId, tuple[int, int]] = OrderedDict()  # at which offset, when

    def applied(self, partition: int, records: Sequence[TopicRecord]) -> None:
        """Apply the next records of a partition, in their order, and say what the table holds then."""
        with self._tables.table() as table:
            complete_from = _partition(table, partition).complete_from
        said: list[LogEvent] = []
        for piece in _pieces(records, complete_from):
            self._tables.applied(partition, piece)
            if piece[-1].offset >= complete_from:
                said += self._states(partition, piece)
        if said:
            self._emit_many(said)

    def disagreed(self, found: Disagreement) -> None:
        """Say in full what our table holds of the log: once an offset, not again within SET_EVERY_MS."""
        with self._tables.table() as table:
            of_log = table.of(found.log)
            if of_log is None or of_log.partition != found.metadata_partition:
                return  # somebody wrote this who is no agent of this metadata topic
            digest, members = of_log.digest(found.log), of_log.members(found.log)
            view = of_log.view(found.log)
        now_ms = self._now_ms()
        said_of, said_at_ms = self._sets_said.get(found.log, (NOT_KNOWN, None))
        is_due = said_at_ms is None or abs(now_ms - said_at_ms) >= SET_EVERY_MS
        if digest is None or view is None or said_of == digest.offset or not is_due:
            return
        self._sets_said[found.log] = (digest.offset, now_ms)
        self._sets_said.move_to_end(found.log)
        if len(self._sets_said) > SETS_REMEMBERED:
            self._sets_said.popitem(last=False)
        topic, leader_epoch = _label(view)
        self._emit_many(
            [
                TierSet(
                    event_id=self._new_id(),
                    occurred_at_ms=now_ms,
                    log=found.log,
                    topic=topic,
                    leader_epoch=leader_epoch,
                    metadata_partition=found.metadata_partition,
                    metadata_offset=digest.offset,
                    members=members,
                )
            ]
        )

    def _states(self, partition: int, piece: Sequence[TopicRecord]) -> Iterator[TierState]:
        with self._tables.table() as table:
            of_partition = _partition(table, partition)
            last = {_log(table.topic.cluster_id, each.key): each.offset for each in piece}
            for log, offset in last.items():
                state = None if log is None else self._state(of_partition, log, offset)
                if state is not None:
                    yield state

    def _state(self, table: PartitionTable, log: LogId, offset: int) -> TierState | None:
        digest, view = table.digest(log), table.view(log)
        if digest is None or view is None or digest.offset != offset or not digest.comparable:
            return None
        reached = frontier(view)
        topic, leader_epoch = _label(view)
        known = None if isinstance(reached, Inconclusive) else reached
        return TierState(
            event_id=self._new_id(),
            occurred_at_ms=self._now_ms(),
            log=log,
            topic=topic,
            leader_epoch=leader_epoch,
            metadata_partition=table.partition,
            metadata_offset=offset,
            digest=digest.hex(),
            tiered_start=known.start if known else NOT_KNOWN,
            frontier=known.offset if known else NOT_KNOWN,
            segment_count=len(view.finished.bases),
            size_bytes=int(view.finished.sizes_bytes.sum()),
        )


def _partition(table: ReferenceTable, partition: int) -> PartitionTable:
    [found] = [each for each in table.partitions() if each.partition == partition]
    return found


def _label(view: LogView) -> tuple[str, int]:
    """The topic's name and the highest claim's epoch, as far as the log's own record tells."""
    topic = view.record.topic if view.record is not None else ""
    return topic, view.claims[-1].epoch if view.claims else NOT_KNOWN


def _log(cluster_id: str, key: bytes) -> LogId | None:
    name = parse_key(key)
    return None if name is None else LogId(cluster_id, name.topic_id, name.partition)


def _pieces(records: Sequence[TopicRecord], complete_from: int) -> Iterator[Sequence[TopicRecord]]:
    """The records in order; from `complete_from` on, a piece ends before a second record of a log.

    A log with more than RECORDS_OF_A_LOG of them ends no piece, and is told where others do, and at the end.
    """
    replayed = sum(1 for each in records if each.offset < complete_from)
    if replayed:
        yield records[:replayed]
    live = records[replayed:]
    logs = [_log("", each.key) for each in live]
    many = {log for log, count in Counter(logs).items() if count > RECORDS_OF_A_LOG}
    start: int = 0
    seen: set[LogId] = set()
    for at, log in enumerate(logs):
        if log is None or log in many:
            continue
        if log in seen:
            yield live[start:at]
            start, seen = at, set()
        seen.add(log)
    if start < len(live):
        yield live[start:]
