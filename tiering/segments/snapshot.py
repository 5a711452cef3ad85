"""Keeps a table on the local disk, so that a restart goes on from there and does not replay everything.

One file a partition, `<partition>.snapshot`: three Arrow streams (`snapshot_columns`), then the SHA-256 of
all that. Written beside, synced, and put in place by a rename; what stood there stays whole until then.

    absent     no file
    damaged    its bytes are not those that were written, or its digests do not add up
    too_new    a newer Seawall wrote it
    foreign    of another cluster, another topic (a recreated one, too), another number of partitions
    future     taken later than now, or at a position that the partition has not: the topic lost records
    old        taken longer ago than half of delete.retention.ms: tombstones since may be gone from the topic

Any of these is discarded, with the reason, and the partition is replayed from nothing; until that is done the
agent is not caught up.

Owns the files. Refuses to judge a snapshot by anything but its own bytes and what the topic is now.

Invariant: going on from a snapshot that is not discarded gives each log the digest of a replay from nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from tiering.segments.snapshot_columns import Header, header_of, packed, unpacked
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, ReferenceTable
from tiering.segments.topic import SegmentsTopic

VERSION = 1
CHECK_BYTES = sha256().digest_size


class Why(str, Enum):
    """Stable, for programs: what a snapshot was discarded for."""

    ABSENT = "absent"
    DAMAGED = "damaged"
    TOO_NEW = "too_new"
    FOREIGN = "foreign"
    FUTURE = "future"
    OLD = "old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """A snapshot that is not gone on from; its partition is replayed."""

    partition: int
    why: Why
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The tables to begin with, those of discarded snapshots empty. `positions` is where to follow from."""

    table: ReferenceTable
    discarded: tuple[Discarded, ...]

    @property
    def positions(self) -> dict[int, int]:
        return {each.partition: each.position for each in self.table.partitions()}


def path_of(folder: Path, partition: int) -> Path:
    return folder / f"{partition}.snapshot"


def snapshot_of(table: PartitionTable, *, at_end_ms: int) -> bytes:
    """The bytes of a snapshot. The table must hold still meanwhile, and only meanwhile.

    `at_end_ms`: when everything below the table's position was all that the partition had. Not when it is
    taken: a table that is behind may lack a tombstone that is about to go.
    """
    topic = table.topic
    header = {
        "version": VERSION,
        "cluster_id": topic.cluster_id,
        "topic_id": topic.topic_id,
        "partition_count": topic.partition_count,
        "partition": table.partition,
        "at_end_ms": at_end_ms,
    }
    streams = packed(table.state, header)
    return streams + sha256(streams).digest()


def write(folder: Path, partition: int, snapshot: bytes) -> None:
    """Put it in place of the last one. Raises OSError, and the last one is still there."""
    folder.mkdir(parents=True, exist_ok=True)
    place = path_of(folder, partition)
    beside = place.with_suffix(".tmp")
    try:
        with beside.open("wb") as file:
            file.write(snapshot)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except OSError:
        beside.unlink(missing_ok=True)  # on a full disk, what was written of it is in everybody's way
        raise
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save(folder: Path, table: PartitionTable, *, at_end_ms: int) -> None:
    """`snapshot_of`, then `write`: for who need not hold the table still for others."""
    write(folder, table.partition, snapshot_of(table, at_end_ms=at_end_ms))


def restore(folder: Path, topic: SegmentsTopic, ends: Mapping[int, int], *, now_ms: int) -> Restored:
    """Every partition's table, from its snapshot where that will do. `ends` are the topic's now."""
    tables: list[PartitionTable] = []
    discarded: list[Discarded] = []
    for partition in range(topic.partition_count):
        end = ends[partition]
        found = load(
            folder,
            topic.identity,
            partition,
            end=end,
            now_ms=now_ms,
            age_max_ms=topic.delete_retention_ms // 2,
        )
        if isinstance(found, Discarded):
            discarded.append(found)
            found = PartitionTable(topic.identity, partition, complete_from=end)
        tables.append(found)
    return Restored(table=ReferenceTable(tables), discarded=tuple(discarded))


def load(
    folder: Path, topic: MetadataTopic, partition: int, *, end: int, now_ms: int, age_max_ms: int
) -> PartitionTable | Discarded:
    """The table of one partition, going on from its snapshot, or why not."""

    def discarded(why: Why, detail: str) -> Discarded:
        return Discarded(partition=partition, why=why, detail=detail)

    try:
        raw = path_of(folder, partition).read_bytes()
    except FileNotFoundError:
        return discarded(Why.ABSENT, "there is none")
    except OSError as unreadable:
        return discarded(Why.DAMAGED, str(unreadable))
    if sha256(memoryview(raw)[:-CHECK_BYTES]).digest() != raw[-CHECK_BYTES:]:
        return discarded(Why.DAMAGED, f"its {len(raw)} bytes do not fit their checksum")
    streams = pa.py_buffer(memoryview(raw)[:-CHECK_BYTES])
    try:
        header = header_of(streams)
        if header["version"] > VERSION:
            return discarded(Why.TOO_NEW, f"it is of version {header['version']}")
        if refusal := _foreign(header, topic, partition):
            return discarded(Why.FOREIGN, refusal)
        if header["position"] > end or header["at_end_ms"] > now_ms:
            detail = f"at {header['position']} of {end}, {header['at_end_ms'] - now_ms} ms from now"
            return discarded(Why.FUTURE, detail)
        if now_ms - header["at_end_ms"] > age_max_ms:
            detail = f"{now_ms - header['at_end_ms']} ms old, and {age_max_ms} ms is the most"
            return discarded(Why.OLD, detail)
        state = unpacked(streams, topic, partition)
    except (pa.ArrowException, KeyError, TypeError, ValueError, AssertionError) as broken:
        return discarded(Why.DAMAGED, f"under a checksum that fits: {broken!r}")
    return PartitionTable.resumed(state, complete_from=end)


def _foreign(header: Header, topic: MetadataTopic, partition: int) -> str | None:
    wanted: dict[str, Any] = {
        "cluster_id": topic.cluster_id,
        "topic_id": topic.topic_id,
        "partition_count": topic.partition_count,
        "partition": partition,
    }
    other = [f"{name} {header[name]}" for name, each in wanted.items() if header[name] != each]
    return f"it is of {', '.join(other)}" if other else None
