"""What the log's leader has on its disk, by its own word: offsets that need no tier to be read.

Owns the one question, asked for many logs at once. Refuses to take the answer of another topic of the same
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backup.catalogue.copies import LogCatalogue
from seawall.connections import open_cluster
from seawall.settings import Settings
from tiering.cluster.interface import LeaderOffsets, TopicPartition, Unknown


@dataclass(frozen=True, slots=True)
class Replica:
    """`[start, end)`, up to the high watermark."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"


def leaders_of(settings: Settings, catalogues: Sequence[LogCatalogue]) -> list[Replica | str]:
    """Of each the leader's, or why it is not known."""
    places = [TopicPartition(each.topic, each.log.partition) for each in catalogues]
    asked = {place for place in places if place.topic}  # of a log that is forgotten not even a name is left
    cluster = open_cluster(settings, client_id="seawall-backup")
    answers = cluster.leader_offsets(asked) if asked else {}
    return [_said(answers.get(place), each) for place, each in zip(places, catalogues, strict=True)]


def _said(found: LeaderOffsets | Unknown | None, catalogue: LogCatalogue) -> Replica | str:
    if not isinstance(found, LeaderOffsets):
        return f"not known: {'its topic has no name any more' if found is None else found.reason}"
    if found.topic_id != catalogue.log.topic_id:
        return "nothing: the topic was made again"
    return Replica(found.log_start, found.high_watermark)
