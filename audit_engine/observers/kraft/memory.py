"""What was told, on disk: the image of the cluster that all events so far come to, and its place in the log.

    place                    the offset it ends at, and the epochs of the log before it
    topics/ID                name
    partitions/[ID, N]       its state
    configs/[KIND, NAME]     settings by key; what is not told is blank here
    brokers/ID               its registration

So that what a snapshot swallows while nobody looks can still be compared. A change costs the rows that it
touches.

Owns the form. Invariant: what `restored` makes of the rows is what `changed_rows` was given, but for secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from audit_engine.observers.kraft.secrets import is_told
from tiering.cluster.image import BrokerState, ClusterImage, ConfigKey, PartitionKey, PartitionState
from tiering.cluster.lineage import cut
from tiering.cluster.metadata_log import Place
from tiering.log.checkpoints import EpochStart
from tiering.log.kraft.topics import LeaderRecovery

FILE_NAME = "kraft-observer.sqlite"
PLACE = "place"
_PARTITION = tuple(each.name for each in fields(PartitionState))
_BROKER = tuple(each.name for each in fields(BrokerState))


def place_row(image: ClusterImage, epochs: Sequence[EpochStart]) -> Mapping[str, object]:
    return {
        "end_offset": image.end_offset,
        "epoch": image.epoch,
        "timestamp_ms": image.timestamp_ms,
        "unread": image.unread,
        "epochs": [(each.epoch, each.start_offset) for each in cut(epochs, image.end_offset)],
    }


def changed_rows(before: ClusterImage, after: ClusterImage) -> tuple[dict[str, object], list[str]]:
    """Rows to write, and keys of rows to remove."""
    changed: dict[str, object] = {}
    gone: list[str] = []
    for name, encode in _TABLES.items():
        old, new = getattr(before, name), getattr(after, name)
        if old is new:
            continue
        for key, value in new.items():
            known = old.get(key)
            if known is not value and known != value:
                changed[_key(name, key)] = encode(key, value)
        gone += [_key(name, key) for key in old.keys() - new.keys()]
    return changed, gone


def restored(rows: Mapping[str, Any]) -> tuple[ClusterImage, Place] | None:
    """None where nothing was told yet. Raises KeyError, TypeError or ValueError for what does not fit."""
    if PLACE not in rows:
        return None
    place = rows[PLACE]
    tables: dict[str, dict[Any, Any]] = {name: {} for name in _TABLES}
    for row_key, body in rows.items():
        if row_key == PLACE:
            continue
        name, _, rest = row_key.partition("/")
        key, value = _DECODERS[name](json.loads(rest), body)
        tables[name][key] = value
    image = ClusterImage(
        end_offset=place["end_offset"],
        epoch=place["epoch"],
        timestamp_ms=place["timestamp_ms"],
        unread=place["unread"],
        topics=MappingProxyType(tables["topics"]),
        topic_ids=MappingProxyType({name: topic_id for topic_id, name in tables["topics"].items()}),
        partitions=MappingProxyType(tables["partitions"]),
        configs=MappingProxyType(tables["configs"]),
        brokers=MappingProxyType(tables["brokers"]),
    )
    epochs = tuple(EpochStart(epoch, start) for epoch, start in place["epochs"])
    return image, Place(next_offset=image.end_offset, epochs=epochs)


def _key(table: str, key: Any) -> str:
    return f"{table}/{json.dumps(key)}"


def _partition_row(_: PartitionKey, state: PartitionState) -> object:
    return [getattr(state, name) for name in _PARTITION]


def _partition(key: Any, body: Any) -> tuple[PartitionKey, PartitionState]:
    named = _named(_PARTITION, body)
    return PartitionKey(*key), PartitionState(**named | {"recovery": LeaderRecovery(named["recovery"])})


def _config_row(key: ConfigKey, entries: Mapping[str, str]) -> object:
    return {name: value if is_told(key.resource, name) else "" for name, value in entries.items()}


def _broker(key: Any, body: Any) -> tuple[int, BrokerState]:
    return key, BrokerState(**_named(_BROKER, body))


def _named(names: Sequence[str], values: Any) -> dict[str, Any]:
    return dict(zip(names, (tuple(v) if isinstance(v, list) else v for v in values), strict=True))


_TABLES: Mapping[str, Any] = {
    "topics": lambda _, name: name,
    "partitions": _partition_row,
    "configs": _config_row,
    "brokers": lambda _, state: [getattr(state, name) for name in _BROKER],
}
_DECODERS: Mapping[str, Any] = {
    "topics": lambda key, body: (key, body),
    "partitions": _partition,
    "configs": lambda key, body: (ConfigKey(*key), MappingProxyType(body)),
    "brokers": _broker,
}
