"""What the log's leader has on its disk, by its own word: offsets that need no tier to be read.

Owns the one question. Refuses to take the answer of another topic of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

from backup.catalogue.copies import LogCatalogue
from seawall.connections import open_cluster
from seawall.settings import Settings
from tiering.cluster.interface import LeaderOffsets, TopicPartition


@dataclass(frozen=True, slots=True)
class Replica:
    """`[start, end)`, up to the high watermark."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"


def leader_of(settings: Settings, catalogue: LogCatalogue) -> Replica | str:
    """The leader's, or why it is not known."""
    at = TopicPartition(catalogue.topic, catalogue.log.partition)
    found = open_cluster(settings, client_id="seawall-backup").leader_offsets([at])[at]
    if not isinstance(found, LeaderOffsets):
        return f"not known: {found.reason}"
    if found.topic_id != catalogue.log.topic_id:
        return "nothing: the topic was made again"
    return Replica(found.log_start, found.high_watermark)
