"""The topic of metadata in memory, and every table that follows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rules.identity import LogId
from tests.tiering.uploader.brokers import CLUSTER_ID
from tests.tiering.uploader.world import Plan
from tiering.segments.keys import metadata_partition
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord
from tiering.uploader.metadata import Metadata

PARTITIONS = 4  # of the metadata topic


@dataclass(slots=True)
class MemoryTopic:
    """The metadata topic, the tables that follow it, and a reader's own."""

    plan: Plan
    records: dict[int, list[TopicRecord]] = field(default_factory=lambda: {n: [] for n in range(PARTITIONS)})
    followers: list[Metadata] = field(default_factory=list)
    topic: MetadataTopic = field(
        default_factory=lambda: MetadataTopic(
            cluster_id=CLUSTER_ID, topic_id="AAAAAAAAAAAAAAAAAAAAAg", partition_count=PARTITIONS
        )
    )
    reader: ReferenceTable = field(init=False)

    def __post_init__(self) -> None:
        self.reader = self.replayed()

    def append(self, log: LogId, key: bytes, value: bytes | None) -> int:
        partition = metadata_partition(log, PARTITIONS)
        for _ in self.plan.effect():
            offset = len(self.records[partition])
            record = TopicRecord(offset, key, value)
            self.records[partition].append(record)
            for table in self.reader.partitions():
                if table.partition == partition:
                    table.apply_many([record])
            for follower in self.followers:
                follower.applied(partition, [record])
        return offset

    def replayed(self, *, upto: int | None = None) -> ReferenceTable:
        """A new process's table; `upto`: one that has come no further in any partition yet."""
        tables = []
        for partition, records in self.records.items():
            table = PartitionTable(self.topic, partition, complete_from=len(records))
            table.apply_many(records[:upto])
            tables.append(table)
        return ReferenceTable(tables)
