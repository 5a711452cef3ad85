"""A metadata topic of one partition, in memory: what is appended, tables that read it, and its compaction."""

from __future__ import annotations

from dataclasses import replace

from tests.tiering.segments.strategies import CLUSTER_ID, LOG
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.coverage import Coverage, coverage
from tiering.segments.findings import Finding
from tiering.segments.frontier import Frontier, frontier
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import LogRecord, SegmentRecord, SegmentState
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, TopicRecord
from tiering.segments.view import LogView

TOPIC = MetadataTopic(cluster_id=CLUSTER_ID, topic_id="kQfXJ2mZQ5e1bYv0x3rT8w", partition_count=1)
ALL_HISTORY = 2**62


def new_table(complete_from: int = 0) -> PartitionTable:
    """A table that has seen everything from the beginning, unless told of a time before `complete_from`."""
    return PartitionTable(TOPIC, 0, complete_from=complete_from)


def compacted(records: list[TopicRecord]) -> list[TopicRecord]:
    """The last record of each key, in its place; tombstones are gone as well."""
    last = {record.key: record for record in records}
    return sorted(record for record in last.values() if record.value is not None)


class Topic:
    """Every record, and a table that follows them one by one."""

    def __init__(self) -> None:
        self.records: list[TopicRecord] = []
        self.table = new_table()
        self.findings: list[Finding] = []

    def append_raw(self, key: bytes, value: bytes | None) -> list[Finding]:
        record = TopicRecord(len(self.records), key, value)
        self.records.append(record)
        found = self.table.apply(*record)
        self.findings += found
        return found

    def append(self, *records: SegmentRecord | LogRecord) -> list[Finding]:
        """Append records; the findings of the last."""
        found: list[Finding] = []
        for record in records:
            if isinstance(record, LogRecord):
                found = self.append_raw(log_key(record.log), encode_log(record))
            else:
                found = self.append_raw(segment_key(record.log, record.segment_id), encode_segment(record))
        return found

    def copy(self, *records: SegmentRecord) -> None:
        """Append the start of each copy, then its end."""
        for record in records:
            self.append(replace(record, state=SegmentState.COPY_STARTED), record)

    def claim(self, record: LogRecord) -> list[Finding]:
        """Append a log's record as its writer would: based on the last, earlier claims repeated."""
        view = self.table.view(record.log)
        if view is not None and view.record is not None:
            own = [claim for claim in view.claims if claim.epoch == record.claim_epoch]
            earlier = view.claims_to_repeat() + (() if own else view.claims[-1:])
            record = replace(
                record,
                based_on=view.record_offset,
                claim_offset=own[0].offset if own else None,
                earlier_claims=earlier,
            )
        return self.append(record)

    @property
    def view(self) -> LogView:
        found = self.table.view(LOG)
        assert found is not None
        return found

    @property
    def frontier(self) -> Frontier:
        found = frontier(self.view)
        assert isinstance(found, Frontier)
        return found

    @property
    def coverage(self) -> Coverage:
        found = coverage(self.view)
        assert isinstance(found, Coverage)
        return found
