"""The topic `__seawall_segments` itself: which one it is, what it must be like, how far somebody has read it.

    fitness     what settings a topic of metadata must have, and what is wrong with those found
    progress    positions and ends of the partitions while somebody follows
    kafka       looks at it, makes it
    append.kafka, follow.kafka    write to it, read it

Owns these values. Refuses to know what the records mean: that is the table's.

Invariant: a SegmentsTopic is one topic for ever; another of the same name has another `topic_id`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tiering.segments.state import MetadataTopic

TOPIC = "__seawall_segments"
PARTITIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsTopic:
    """A topic of metadata that was found fit.

    Tombstones stay in it for `delete_retention_ms`, and whoever reads it within `min_compaction_lag_ms` of
    the writing sees every record.
    """

    name: str
    topic_id: str
    partition_count: int
    cluster_id: str
    delete_retention_ms: int
    min_compaction_lag_ms: int

    @property
    def identity(self) -> MetadataTopic:
        """What tables and snapshots of it are of."""
        return MetadataTopic(
            cluster_id=self.cluster_id, topic_id=self.topic_id, partition_count=self.partition_count
        )
