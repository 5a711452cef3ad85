"""The keys of the metadata topic, and which of its partitions a log's records go to.

    topic_id:partition              a log       CgkTzsXgRlOwPTRJHnL2yg:3
    topic_id:partition:segment_id   a segment   CgkTzsXgRlOwPTRJHnL2yg:3:7990f9ca-a38b-4200-a57b-ecacb4fd322e

Both kinds of a log go to one partition: murmur2, Kafka's own, of the log's key, so that they are totally
ordered and any Kafka client that partitions by key finds the same place.

Refuses: keys that are not exactly these; leading zeros, other letters, another spelling of the same id.

Invariant: one log or segment has one key, and a key starts no other's value: a value begins with `{`, which
no key holds, so that key and value put one after the other name both.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tiering.log.wire import parse_uuid
from tiering.segments.records import INT32_MAX, LogId, SegmentId

_KEY = re.compile(
    rb"([0-9A-Za-z_-]{22}):(0|[1-9][0-9]{0,9})"
    rb"(?::([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))?"
)


class RecordKey(NamedTuple):
    """What a key names; the cluster is the topic's own. `segment_id` is None for a log's."""

    topic_id: str
    partition: int
    segment_id: SegmentId | None


def log_key(log: LogId) -> bytes:
    return f"{log.topic_id}:{log.partition}".encode("ascii")


def segment_key(log: LogId, segment_id: SegmentId) -> bytes:
    return f"{log.topic_id}:{log.partition}:{segment_id}".encode("ascii")


def parse_key(key: bytes) -> RecordKey | None:
    """What a key names, or None if it is not one of ours."""
    matched = _KEY.fullmatch(key)
    if matched is None:
        return None
    topic_id, partition = matched[1].decode("ascii"), int(matched[2])
    if partition > INT32_MAX or parse_uuid(topic_id) is None:
        return None
    segment_id = SegmentId(matched[3].decode("ascii")) if matched[3] else None
    return RecordKey(topic_id, partition, segment_id)


def metadata_partition(log: LogId, partition_count: int) -> int:
    """The partition of the metadata topic that holds everything about `log`."""
    return (murmur2(log_key(log)) & 0x7FFFFFFF) % partition_count


def murmur2(buffer: bytes) -> int:
    """Kafka's variant of MurmurHash2, unsigned: 32 bits, Kafka's seed, little-endian words."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    mixed = 0x9747B28C ^ len(buffer)
    whole = len(buffer) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(buffer[position : position + 4], "little") * multiplier & mask
        word = (word ^ (word >> 24)) * multiplier & mask
        mixed = (mixed * multiplier & mask) ^ word
    if whole < len(buffer):
        mixed = (mixed ^ int.from_bytes(buffer[whole:], "little")) * multiplier & mask
    mixed = (mixed ^ (mixed >> 13)) * multiplier & mask
    return mixed ^ (mixed >> 15)
