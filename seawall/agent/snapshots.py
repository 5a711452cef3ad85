"""Keeps the agent's table on its disk now and then, so that a restart does not replay for minutes.

Owns when. Takes one partition at a time, and holds the table still only while its bytes are gathered, not
while they are written. A partition that is behind its end is left for the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tiering.segments import snapshot
from tiering.segments.kafka import topic_ends
from tiering.segments.topic import SegmentsTopic
from tiering.uploader.metadata import Metadata

FOLDER = "table"


class Snapshots:
    """For one thread."""

    def __init__(
        self,
        folder: Path,
        *,
        config: Mapping[str, str],
        topic: SegmentsTopic,
        metadata: Metadata,
        now_ms: Callable[[], int],
    ) -> None:
        self._folder = folder / FOLDER
        self._config = config
        self._topic = topic
        self._metadata = metadata
        self._now_ms = now_ms
        self._saved_at: dict[int, int] = {}  # position, by partition

    def save(self) -> int:
        """Keep what has changed since the last time; how many partitions that was."""
        asked_at_ms = self._now_ms()
        ends = topic_ends(self._config, self._topic)
        return sum(self._save(partition, end, asked_at_ms) for partition, end in ends.items())

    def _save(self, partition: int, end: int, asked_at_ms: int) -> bool:
        with self._metadata.table() as tables:
            [table] = [each for each in tables.partitions() if each.partition == partition]
            position = table.position
            if position < end or self._saved_at.get(partition) == position or not position:
                return False
            content = snapshot.snapshot_of(table, at_end_ms=asked_at_ms)
        snapshot.write(self._folder, partition, content)
        self._saved_at[partition] = position
        return True
