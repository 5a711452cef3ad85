"""Who leads, for an agent whose workers ask at once: from the metadata log on this host, or the admin API.

Owns the lock around sources that are for one thread, and the memory of what epoch each replica's own files
gave at the last survey.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock

from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import Leadership, LeadershipSource, TopicDescriber, TopicPartition, Unknown
from tiering.cluster.leadership import AdminLeadership, FirstKnown, KraftLeadership
from tiering.cluster.log_dirs import metadata_log_in
from tiering.cluster.metadata_log import MetadataLogFollower


class SharedLeadership:
    """A LeadershipSource for several threads."""

    def __init__(self, cluster: TopicDescriber, *, broker_id: int, log_dirs: Iterable[Path]) -> None:
        self._epochs: Mapping[TopicPartition, int | None] = {}
        admin = AdminLeadership(cluster, broker_id=broker_id, local_epoch=self._local_epoch)
        metadata_log = metadata_log_in(log_dirs)
        sources: list[LeadershipSource] = [admin]
        if metadata_log is not None:
            kraft = KraftLeadership(MetadataLogFollower(metadata_log), now_ms=_now_ms)
            sources.insert(0, kraft)
        self.metadata_log = metadata_log
        self._source = FirstKnown(sources)
        self._lock = Lock()

    def surveyed(self, host: HostSurvey) -> None:
        """What the last survey found."""
        self._epochs = {partition: local.local_epoch for partition, local in host.live.items()}

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]:
        with self._lock:
            return self._source.leadership(partitions)

    def _local_epoch(self, partition: TopicPartition) -> int | None:
        return self._epochs.get(partition)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
