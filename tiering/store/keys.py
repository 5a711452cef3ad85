"""Where the objects of a segment stand in the bucket.

    <prefix>/<cluster_id>/<topic_id>/<partition>/<base:020d>-<segment_id>.<kind>

Every attempt to store a segment has a segment id of its own, so that no two writers ever mean the same key.
The topic's name is not part of it: a recreated topic is another log.

Refuses: to guess. `parse` gives None for a key that `key` would not have written, to the character, so that
nothing foreign under the prefix is ever taken for ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from rules.identity import LogId
from tiering.log.errors import Malformed
from tiering.log.wire import parse_uuid

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
KEY_BYTES_MAX = 1024  # S3's limit

# Kafka's own cluster ids are 22 characters of base64, as its topic ids are; operators may choose others.
_CLUSTER_ID = r"[A-Za-z0-9_.-]{1,255}"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TAIL = re.compile(
    rf"(?P<cluster>{_CLUSTER_ID})/(?P<topic>[A-Za-z0-9_-]{{22}})/(?P<partition>0|[1-9][0-9]{{0,9}})/"
    rf"(?P<base>[0-9]{{20}})-(?P<segment>{_UUID})\.(?P<kind>log|aux|json)",
    re.ASCII,
)


class ObjectKind(str, Enum):
    """The three objects of a segment."""

    LOG = "log"  # the segment's bytes, as they are
    AUX = "aux"  # what a reader or a restore needs beside them
    JSON = "json"  # the metadata record, written last


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentKey:
    """What a key says: which attempt to store which segment of which log."""

    log: LogId
    base_offset: int
    segment_id: str  # as uuid.UUID prints it


class KeyLayout:
    """Keys under one prefix, both ways."""

    def __init__(self, prefix: str) -> None:
        self._head = f"{prefix.strip('/')}/" if prefix.strip("/") else ""

    def key(self, segment: SegmentKey, kind: ObjectKind) -> str:
        return f"{self.stem(segment)}.{kind.value}"

    def stem(self, segment: SegmentKey) -> str:
        """What the keys of a segment's objects have in common. Raises Malformed for what no key can hold."""
        if not 0 <= segment.base_offset <= OFFSET_MAX:
            raise _unfit(f"base offset {segment.base_offset}")
        if not _is_uuid(segment.segment_id):
            raise _unfit(f"segment id {segment.segment_id!r}")
        stem = f"{self.log_prefix(segment.log)}{segment.base_offset:020d}-{segment.segment_id}"
        if len(stem.encode()) > KEY_BYTES_MAX - len(".json"):
            raise _unfit(f"so much: S3's limit is {KEY_BYTES_MAX} bytes")
        return stem

    def log_prefix(self, log: LogId) -> str:
        """What the keys of one log, and of no other, start with."""
        if not 0 <= log.partition <= PARTITION_MAX:
            raise _unfit(f"partition {log.partition}")
        return f"{self.topic_prefix(log.cluster_id, log.topic_id)}{log.partition}/"

    def topic_prefix(self, cluster_id: str, topic_id: str) -> str:
        """What the keys of one topic, and of no other, start with."""
        if parse_uuid(topic_id) is None:
            raise _unfit(f"topic id {topic_id!r}")
        return f"{self.cluster_prefix(cluster_id)}{topic_id}/"

    def cluster_prefix(self, cluster_id: str) -> str:
        """What the keys of one cluster, and of no other, start with."""
        # A path made of dots alone is a folder above this one to whoever keeps objects as files.
        if re.fullmatch(_CLUSTER_ID, cluster_id, re.ASCII) is None or not cluster_id.strip("."):
            raise _unfit(f"cluster id {cluster_id!r}")
        return f"{self._head}{cluster_id}/"

    def parse(self, key: str) -> tuple[SegmentKey, ObjectKind] | None:
        """What a key says, or None if it is not one of ours."""
        found = _TAIL.fullmatch(key, len(self._head)) if key.startswith(self._head) else None
        if found is None:
            return None
        log = LogId(found["cluster"], found["topic"], int(found["partition"]))
        segment = SegmentKey(log=log, base_offset=int(found["base"]), segment_id=found["segment"])
        kind = ObjectKind(found["kind"])
        try:
            return (segment, kind) if self.key(segment, kind) == key else None
        except Malformed:
            return None


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _unfit(what: str) -> Malformed:
    return Malformed(position=0, what="object key", why=f"cannot hold {what}")
