"""A log's facts from a table that has read to the metadata topic's end, as that end is when asked.

    ask where the topic ends ──► wait until the table is there ──► look

Owns this order: whatever was in the topic before the question is in the facts, or they say that the table is
behind. Refuses to wait for ever, and to take somebody's silence about the end for an end.

Invariant: `TierFacts.end_offset` was said by the partition's leader after `facts` was called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rules.identity import LogId
from tiering.cluster.interface import OffsetsSource, TopicPartition, Unknown
from tiering.retention.errors import MetadataEndUnknown
from tiering.retention.facts import TierFacts, facts_of
from tiering.segments.digest import LogDigest
from tiering.segments.keys import metadata_partition
from tiering.segments.records import SegmentId, SegmentRecord, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.state import MetadataTopic
from tiering.uploader.metadata import Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataEnds:
    """Where the partitions of the metadata topic end, by their leaders."""

    offsets: OffsetsSource
    topic: str
    topic_id: str

    def __call__(self, partition: int) -> int:
        asked = TopicPartition(self.topic, partition)
        found = self.offsets.leader_offsets([asked])[asked]
        if isinstance(found, Unknown):
            raise MetadataEndUnknown(partition=partition, why=found.reason)
        if found.topic_id != self.topic_id:
            raise MetadataEndUnknown(partition=partition, why=f"its topic is {found.topic_id} now")
        return found.high_watermark  # nobody can read what is above it


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadToEnd:
    """One agent's table, asked only when it has read what there is. For several threads."""

    metadata: Metadata
    end_of: Callable[[int], int]

    def facts(self, log: LogId) -> TierFacts:
        return self.facts_and_digest(log)[0]

    def facts_and_digest(self, log: LogId) -> tuple[TierFacts, LogDigest | None]:
        """Both of one moment of the table."""
        end_offset = self.end_of(metadata_partition(log, self.topic.partition_count))
        self.metadata.has_read_to(log, end_offset)  # if not, the facts say so
        with self.metadata.table() as tables:
            table = tables.of(log)
            assert table is not None, "an agent's table has every partition of the topic"
            facts = facts_of(log, table.view(log), applied_to=table.position, end_offset=end_offset)
            return facts, table.digest(log)

    @property
    def topic(self) -> MetadataTopic:
        with self.metadata.table() as tables:
            return tables.topic

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        with self.metadata.table() as tables:
            table = tables.of(log)
            return None if table is None else table.segment(log, segment_id)

    def removed(self, log: LogId) -> Iterator[SegmentRecord]:
        """The followed ones in DELETE_FINISHED, in the order in which they got there."""
        yield from self._in_states(log, SegmentState.DELETE_FINISHED)

    def going(self, log: LogId) -> Iterator[SegmentRecord]:
        """The same, and those in DELETE_STARTED."""
        yield from self._in_states(log, SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED)

    def _in_states(self, log: LogId, *states: SegmentState) -> Iterator[SegmentRecord]:
        view = self.metadata.view(log)
        found = [
            each
            for each in (view.segments() if view is not None else ())
            if each.state in states and each.standing is Standing.FOLLOWED
        ]
        for summary in sorted(found, key=lambda each: each.metadata_offset):
            record = self.segment(log, summary.segment_id)
            if record is not None:
                yield record
