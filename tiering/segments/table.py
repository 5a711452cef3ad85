"""The reference table: what the metadata topic says, replayed in order, in bounded memory.

One PartitionTable a partition of the topic; a log's records are all in one, so the partitions may be read in
any order between them. ReferenceTable puts them together and finds the one that a log is in.

    apply        the next record of a partition: followed, or set aside with a finding
    apply_many   many, in fewer steps where nothing can depend on the order within (`bulk_fold`)
    view         one log as it stands: `frontier` and `coverage` are functions of it
    digest       what other tables can be compared with

Owns the order of application. Refuses to act: an agent that is not caught up has a table like any other, and
must ask `caught_up_to` before it deletes anything.

Invariant (T6): what is followed of a log is the same in every table that read the topic to the same offset,
past the end at which its replay began. Memory: see `memory_bytes`; bench/reference_table.py states it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from tiering.outcome import Inconclusive
from tiering.segments.bulk_fold import follow_many
from tiering.segments.digest import LogDigest
from tiering.segments.findings import Finding, Reason
from tiering.segments.frontier import frontier
from tiering.segments.keys import log_key, metadata_partition, parse_key, segment_key
from tiering.segments.log_fold import follow_log
from tiering.segments.logs import LogState
from tiering.segments.records import LogId, SegmentId, SegmentRecord, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.segment_fold import follow_segment
from tiering.segments.state import MetadataTopic, TableState
from tiering.segments.view import LogView, view_of

VIEWS = 256  # logs whose view is kept until they change

_DELETING = SegmentState.DELETE_STARTED.value.encode("ascii")


class TopicRecord(NamedTuple):
    """A record of one partition of the metadata topic, as it is stored there."""

    offset: int
    key: bytes
    value: bytes | None


class PartitionTable:
    """The table of one partition. `complete_from`: the partition's end when the replay began."""

    def __init__(self, topic: MetadataTopic, partition: int, *, complete_from: int) -> None:
        self._state = TableState(topic, partition, complete_from)
        self._views: OrderedDict[int, tuple[int, LogView]] = OrderedDict()

    @classmethod
    def resumed(cls, state: TableState, *, complete_from: int) -> PartitionTable:
        """A table that goes on from a snapshot's state; the partition ends at `complete_from` now."""
        table = cls(state.topic, state.partition, complete_from=complete_from)
        state.resumed_at, state.complete_from = state.position, complete_from
        table._state = state
        return table

    @property
    def state(self) -> TableState:
        """For snapshots; nobody else reads it."""
        return self._state

    @property
    def topic(self) -> MetadataTopic:
        return self._state.topic

    @property
    def partition(self) -> int:
        return self._state.partition

    @property
    def position(self) -> int:
        """The offset of the record that comes next."""
        return self._state.position

    @property
    def complete_from(self) -> int:
        return self._state.complete_from

    @property
    def memory_bytes(self) -> int:
        """What the table takes for its segments; views that were asked for come on top, VIEWS at most."""
        return self._state.memory_bytes

    def __len__(self) -> int:
        """How many segments have a row."""
        return len(self._state.store)

    def caught_up_to(self, end_offset: int) -> bool:
        """Whether everything below `end_offset` was applied."""
        return self._state.position >= end_offset

    def skip_to(self, offset: int) -> None:
        """There is nothing to read below `offset`: compaction and markers leave offsets without a record."""
        self._state.position = max(self._state.position, offset)

    def apply(self, offset: int, key: bytes, value: bytes | None) -> list[Finding]:
        """Take the next record. One that was applied before is delivered again, and changes nothing."""
        state = self._state
        if offset < state.position:
            return []
        state.position = offset + 1
        name = parse_key(key)
        if name is None:
            detail = f"the key {key[:80]!r} is not one of ours"
            return [Finding(reason=Reason.FOREIGN_KEY, offset=offset, key=key, detail=detail)]
        number = state.log_number(name)
        if number is None:
            detail = f"partition {state.partition} is not where this log belongs"
            return [Finding(reason=Reason.WRONG_PARTITION, offset=offset, key=key, detail=detail)]
        log = state.logs[number]
        if name.segment_id is None:
            found = follow_log(state, number, name, offset, key, value)
        elif value is not None and _DELETING in value and offset >= state.complete_from:
            found = self._apply_deletion(number, offset, key, value)
        else:
            found = follow_segment(state, number, name, offset, key, value)
        log.offset = offset
        log.revision += 1
        return found

    def _apply_deletion(self, number: int, offset: int, key: bytes, value: bytes) -> list[Finding]:
        """A legal deletion is below the log's start, or of a copy that covers nothing alone (T5)."""
        name = parse_key(key)
        assert name is not None
        before = frontier(self._view(number))
        found = follow_segment(self._state, number, name, offset, key, value)
        self._state.logs[number].revision += 1
        after = frontier(self._view(number))
        if isinstance(before, Inconclusive) or isinstance(after, Inconclusive):
            return found
        if after.offset < before.offset:
            detail = f"the frontier falls from {before.offset} to {after.offset}"
            found.append(Finding(reason=Reason.COVERAGE_LOST, offset=offset, key=key, detail=detail))
        return found

    def apply_many(self, records: Sequence[TopicRecord]) -> list[Finding]:
        """`apply` of each, in order; the same findings, by rising offset."""
        state = self._state
        offset_of = attrgetter("offset")
        begin = bisect_left(records, state.position, key=offset_of)
        end = bisect_left(records, state.complete_from, lo=begin, key=offset_of)
        found = follow_many(state, records[begin:end], self.apply)
        for offset, key, value in records[end:]:
            found += self.apply(offset, key, value)
        return found

    def logs(self) -> Iterator[LogId]:
        """Every log of which a record was read."""
        return (self._state.log_id(log) for log in self._state.logs if log.offset >= 0)

    def view(self, log: LogId) -> LogView | None:
        """The log as it stands; None if no record of it was read."""
        number = self._number(log)
        return None if number is None else self._view(number)

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        """The whole record of a segment, followed or set aside."""
        row = self._state.store.index.get(segment_key(log, segment_id))
        if row is None or self._state.store.rows["standing"][row] == Standing.UNREADABLE:
            return None
        return self._state.record(row)

    def segment_value(self, log: LogId, segment_id: SegmentId) -> bytes | None:
        """The same as it is stored: what the leader's agent writes again over a record that shadows it."""
        row = self._state.store.index.get(segment_key(log, segment_id))
        return None if row is None else self._state.value(row)

    def followed_at(self, log: LogId, segment_id: SegmentId) -> int | None:
        """Where the record of a segment is that is followed; None if none is."""
        row = self._state.store.index.get(segment_key(log, segment_id))
        if row is None or self._state.store.rows["standing"][row] != Standing.FOLLOWED:
            return None
        return int(self._state.store.rows["offset"][row])

    def digest(self, log: LogId) -> LogDigest | None:
        """What other tables can be compared with. The first one after a replay takes the time of them all."""
        number = self._number(log)
        if number is None:
            return None
        self._state.make_digests()
        found = self._state.logs[number]
        return LogDigest(
            log=log, offset=found.offset, digest=found.digest, complete_from=self._state.complete_from
        )

    def members(self, log: LogId) -> tuple[tuple[str, str], ...]:
        """What the digest sums up: each key with the SHA-256 of itself and its value, by rising key."""
        number = self._number(log)
        if number is None:
            return ()
        self._state.make_digests()
        found, store = self._state.logs[number], self._state.store
        named = {log_key(log): found.own_digest or b""}
        for row in found.rows:
            named[store.keys[row] or b""] = store.rows["digest"][row].tobytes()
        return tuple((key.decode("ascii"), each.hex()) for key, each in sorted(named.items()) if any(each))

    def _number(self, log: LogId) -> int | None:
        if log.cluster_id != self.topic.cluster_id:
            return None
        number = self._state.log_numbers.get(log_key(log))
        return None if number is None or self._state.logs[number].offset < 0 else number

    def _view(self, number: int) -> LogView:
        log: LogState = self._state.logs[number]
        kept = self._views.get(number)
        if kept is None or kept[0] != log.revision:
            kept = (log.revision, view_of(self._state, number))
            self._views[number] = kept
        self._views.move_to_end(number)
        if len(self._views) > VIEWS:
            self._views.popitem(last=False)
        return kept[1]


class ReferenceTable:
    """The tables of all partitions, or of those that an agent needs."""

    def __init__(self, tables: Sequence[PartitionTable]) -> None:
        assert tables
        assert all(each.topic == tables[0].topic for each in tables)
        self._topic = tables[0].topic
        self._tables = {each.partition: each for each in tables}

    @property
    def topic(self) -> MetadataTopic:
        return self._topic

    def of(self, log: LogId) -> PartitionTable | None:
        """The table that a log's records are in; None if it is none of these."""
        return self._tables.get(metadata_partition(log, self._topic.partition_count))

    def partitions(self) -> Iterator[PartitionTable]:
        return iter(self._tables.values())

    def view(self, log: LogId) -> LogView | None:
        table = self.of(log)
        return None if table is None else table.view(log)

    def logs(self) -> Iterator[LogId]:
        for table in self._tables.values():
            yield from table.logs()
