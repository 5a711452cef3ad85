"""Which offsets of which partition are in the store, as the topic of metadata says now.

The table is filled by the thread that follows the topic and read by all others, under one lock. What was made
of a log is kept until the log changes.

Owns that lock and those pictures. Refuses to guess: a log of which nothing certain is known is not tiered,
and its broker answers for all of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from rules.identity import LogId
from tiering.outcome import Inconclusive
from tiering.reader.interface import TieredLog
from tiering.segments.coverage import coverage
from tiering.segments.findings import Finding
from tiering.segments.records import LogRecord, SegmentId, SegmentRecord
from tiering.segments.table import ReferenceTable, TopicRecord
from tiering.segments.view import LogView

PICTURES_MAX = 4096


class TierTable:
    """Of one cluster. Safe to use from many threads."""

    def __init__(
        self,
        table: ReferenceTable,
        cluster_id: str,
        *,
        on_finding: Callable[[int, Finding], None] = lambda *_: None,
    ) -> None:
        self._table = table
        self._of_partition = {each.partition: each for each in table.partitions()}
        self.cluster_id = cluster_id
        self._on_finding = on_finding
        self.forgotten = 0  # pictures over PICTURES_MAX: made again when they are needed
        self._lock = Lock()
        self._pictures: OrderedDict[LogId, tuple[LogView, TieredLog | None]] = OrderedDict()

    def applied(self, partition: int, records: Sequence[TopicRecord]) -> None:
        """Take the next records of a partition of the topic of metadata."""
        with self._lock:
            found = self._of_partition[partition].apply_many(records)
        for finding in found:
            self._on_finding(partition, finding)

    def log(self, topic_id: str, partition: int) -> TieredLog | None:
        """What of a partition is in the store; None if nothing is."""
        log = LogId(self.cluster_id, topic_id, partition)
        with self._lock:
            view = self._table.view(log)
            if view is None:
                return None
            kept = self._pictures.get(log)
            if kept is None or kept[0] is not view:
                kept = (view, self._picture(log, view))
                self._pictures[log] = kept
                while len(self._pictures) > PICTURES_MAX:
                    self._pictures.popitem(last=False)
                    self.forgotten += 1
            self._pictures.move_to_end(log)
            return kept[1]

    def position(self, log: LogId) -> int:
        """The offset of the topic of metadata up to which a log's records are known."""
        with self._lock:
            table = self._table.of(log)
            return 0 if table is None else table.position

    def _picture(self, log: LogId, view: LogView) -> TieredLog | None:
        found = coverage(view)
        is_deleted = view.record is not None and view.record.topic_deleted_at_ms is not None
        if is_deleted or isinstance(found, Inconclusive):
            return None
        tiered = TieredLog(log=log, coverage=found, segment=lambda segment_id: self.segment(log, segment_id))
        return tiered if tiered.start < tiered.end else None

    def log_record(self, log: LogId) -> LogRecord | None:
        """What the topic of metadata says of a log as a whole, its gaps among it."""
        with self._lock:
            view = self._table.view(log)
            return None if view is None else view.record

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        """A segment's record as it is now."""
        with self._lock:
            table = self._table.of(log)
            return None if table is None else table.segment(log, segment_id)
