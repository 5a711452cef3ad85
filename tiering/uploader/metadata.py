"""The metadata topic as one agent uses it: publish a record, and know that it is followed.

Publishing is not enough. Kafka takes any record; whether it counts is decided by every reader alike when it
comes to it, behind whatever others wrote meanwhile. So a record is published, then our own table is waited
for until it has passed it, and then the table is asked.

Owns that order, and the lock around the table. Refuses to read or write Kafka: `Appender` does, and whoever
follows the topic calls `applied`.

Invariant: `publish` returns only for a record that the table follows; anything else is NotFollowed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import Protocol

from rules.identity import LogId
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.findings import Finding
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import LogRecord, SegmentRecord
from tiering.segments.table import ReferenceTable, TopicRecord
from tiering.segments.view import LogView
from tiering.uploader.errors import MetadataSilent, NotFollowed

READ_BACK_DEADLINE_S = 60.0
FINDINGS_KEPT_MAX = 10_000


class Appender(Protocol):
    """Appends to the metadata topic."""

    def append(self, log: LogId, key: bytes, value: bytes) -> int:
        """The offset, once the topic holds the record on enough replicas (acks=all)."""


class Metadata:
    """One agent's table and its way to write."""

    def __init__(
        self, table: ReferenceTable, appender: Appender, *, deadline_s: float = READ_BACK_DEADLINE_S
    ) -> None:
        self._table = table
        self._appender = appender
        self._deadline_s = deadline_s
        self._changed = Condition()
        self._findings: OrderedDict[tuple[int, int], Finding] = OrderedDict()  # by partition and offset

    def applied(
        self,
        partition: int,
        records: Sequence[TopicRecord],
        on_finding: Callable[[Finding], None] = lambda _: None,
    ) -> None:
        """Take the next records of a partition of the topic, in their order."""
        with self._changed:
            [table] = [each for each in self._table.partitions() if each.partition == partition]
            for finding in table.apply_many(records):
                self._findings[partition, finding.offset] = finding
                while len(self._findings) > FINDINGS_KEPT_MAX:
                    self._findings.popitem(last=False)
                on_finding(finding)
            self._changed.notify_all()

    def is_caught_up(self, log: LogId) -> bool:
        """Whether the table has followed all that the topic held of the log when its replay began."""
        with self._changed:
            table = self._table.of(log)
            return table is not None and table.caught_up_to(table.complete_from)

    def publish(self, record: SegmentRecord) -> int:
        """Publish a segment's record; its offset once it is followed."""
        key = segment_key(record.log, record.segment_id)
        offset = self._append_and_wait(record.log, key, encode_segment(record), record.segment_id)
        with self._changed:
            table = self._table.of(record.log)
            followed_at = None if table is None else table.followed_at(record.log, record.segment_id)
        if followed_at is None or followed_at < offset or self._is_set_aside(record.log, offset):
            raise self._not_followed(record.log, offset, record.segment_id, record.state.value)
        return offset

    def publish_log(self, record: LogRecord) -> int:
        """Publish a log's record; its offset once it is followed."""
        offset = self._append_and_wait(record.log, log_key(record.log), encode_log(record), "")
        view = self.view(record.log)
        followed = view is not None and view.record_offset is not None and view.record_offset >= offset
        if not followed or self._is_set_aside(record.log, offset):
            raise self._not_followed(record.log, offset, "-", f"claim {record.claim_epoch}")
        return offset

    def has_read_to(self, log: LogId, end_offset: int) -> bool:
        """Whether our table has, within the deadline, all below an offset of the log's partition."""
        with self._changed:
            table = self._table.of(log)
            assert table is not None, "an agent's table has every partition of the topic"
            return self._changed.wait_for(lambda: table.caught_up_to(end_offset), timeout=self._deadline_s)

    def view(self, log: LogId) -> LogView | None:
        """The log as our table has it now."""
        with self._changed:
            return self._table.view(log)

    def unfinished(self, log: LogId) -> tuple[SegmentRecord, ...]:
        """The log's followed attempts that have not come to their end, removals of such among them.

        The removal of a copy that was finished is `retention`'s: it alone asks for holds before it goes on.
        """
        with self._changed:
            view, table = self._table.view(log), self._table.of(log)
            if view is None or table is None:
                return ()
            found = [table.segment(log, each) for each in view.unfinished()]
            return tuple(record for record in found if record is not None and not _was_finished(record))

    def shadowed(self, log: LogId) -> tuple[SegmentRecord | LogRecord, ...]:
        """Records that compaction would lose: followed, but not the last of their keys in the topic.

        Of segments only committed copies: whatever else is shadowed is abandoned, not written again.
        """
        with self._changed:
            view, table = self._table.view(log), self._table.of(log)
            if view is None or table is None:
                return ()
            keys = set(view.shadowed())
            found: list[SegmentRecord | LogRecord] = []
            if log_key(log) in keys and view.record is not None:
                found.append(view.record)
            for row, key in enumerate(view.finished.keys):
                record = table.segment(log, view.finished.segment_id(row)) if key in keys else None
                if record is not None:
                    found.append(record)
            return tuple(found)

    @contextmanager
    def table(self) -> Iterator[ReferenceTable]:
        """The table itself, held still."""
        with self._changed:
            yield self._table

    def _append_and_wait(self, log: LogId, key: bytes, value: bytes, what: str) -> int:
        offset = self._appender.append(log, key, value)
        with self._changed:
            table = self._table.of(log)
            assert table is not None, "an agent's table has every partition of the topic"
            if not self._changed.wait_for(lambda: table.position > offset, timeout=self._deadline_s):
                raise MetadataSilent(log=log, offset=offset, segment_id=what, waited_s=self._deadline_s)
        return offset

    def _is_set_aside(self, log: LogId, offset: int) -> bool:
        """Whether our own record was not followed, though one behind it, somebody else's of the key, was."""
        found = self._finding(log, offset)
        return found is not None and not found.reason.followed

    def _finding(self, log: LogId, offset: int) -> Finding | None:
        with self._changed:
            table = self._table.of(log)
            return self._findings.get((table.partition, offset)) if table is not None else None

    def _not_followed(self, log: LogId, offset: int, segment_id: str, state: str) -> NotFollowed:
        found = self._finding(log, offset)
        why = f"{found.reason.value}: {found.detail}" if found is not None else "another record replaced it"
        return NotFollowed(log=log, segment_id=segment_id, state=state, why=why)


def _was_finished(record: SegmentRecord) -> bool:
    return record.objects.log is not None
