"""Opens the tier that the settings name: its table, replayed from the metadata topic, and its bucket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seawall.settings import Settings
from tiering.reader.interface import Objects
from tiering.segments.table import ReferenceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What there is to read from."""

    table: ReferenceTable
    objects: Objects


def open_tier(settings: Settings, progress: Callable[[int, int], None]) -> Tier:
    """Raises what is missing of the settings, the topic or the cluster; nothing is made."""
    from seawall.connections import kafka_config, segment_store
    from tiering.segments.kafka import check_topic, replay

    objects = segment_store(settings)  # what the settings lack is said before the cluster is asked
    config = kafka_config(settings, client_id="seawall-read")
    table = replay(config, check_topic(config), progress=progress)
    return Tier(table=table, objects=objects)
