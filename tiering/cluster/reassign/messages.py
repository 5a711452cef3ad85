"""AlterPartitionReassignments (KIP-455), key 45, version 0: its request as bytes, its answer as a table.

    request    int32 timeout_ms, topics: [name, partitions: [int32 index, replicas: nullable [int32]]]

Every broker since Kafka 2.4 knows version 0; a later one lets the number of replicas be kept as it is, and we
never change it.

Invariant: an answer is read to its last byte, or it is a LogFormatError.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from tiering.cluster.quorum.messages import NO_TAGS
from tiering.log.schema import ArrayOf, Int16, Int32, NullableString, String, Struct

ALTER_PARTITION_REASSIGNMENTS = 45


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAnswer:
    """What became of one partition."""

    partition_index: Int32
    error_code: Int16
    error_message: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAnswer:
    """What became of a topic's partitions."""

    name: String
    partitions: Annotated[tuple[PartitionAnswer, ...], ArrayOf(Struct(PartitionAnswer))]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    """The controller's answer."""

    api_key: ClassVar[int] = ALTER_PARTITION_REASSIGNMENTS
    versions: ClassVar[range] = range(1)

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    responses: Annotated[tuple[TopicAnswer, ...], ArrayOf(Struct(TopicAnswer))]


def reassignment_body(topic: str, partition: int, replicas: Sequence[int], *, timeout_ms: int) -> bytes:
    """One partition's replicas, in this order."""
    ids = _length(len(replicas)) + b"".join(struct.pack(">i", each) for each in replicas)
    one = struct.pack(">i", partition) + ids + NO_TAGS
    name = topic.encode()
    of_topic = _length(len(name)) + name + _length(1) + one + NO_TAGS
    return struct.pack(">i", timeout_ms) + _length(1) + of_topic + NO_TAGS


def _length(count: int) -> bytes:
    """A compact length: one more than it is, as an unsigned varint."""
    left, found = count + 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])
