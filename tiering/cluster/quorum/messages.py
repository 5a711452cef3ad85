"""The requests that it takes to ask about the quorum, and their answers, as bytes and as tables.

    request            key  versions  header  body
    SaslHandshake       17  1         1       mechanism
    ApiVersions         18  0         1       nothing
    SaslAuthenticate    36  0         1       bytes, as the mechanism wants them
    DescribeQuorum      55  0-2       2       the topic `__cluster_metadata`, its partition 0

    header 1   int16 key, int16 version, int32 correlation id, string client id
    header 2   the same, then tagged fields

Each is sent behind an int32 with its length. An answer begins with the correlation id, and, to a request with
header 2, tagged fields. What is asked before SASL is over is written in the older, inflexible form (KIP-43).

Invariant: an answer is read to its last byte, or it is a LogFormatError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Annotated, ClassVar

from tiering.log import wire
from tiering.log.directory import KRAFT_METADATA_TOPIC
from tiering.log.errors import Malformed
from tiering.log.schema import (
    ArrayOf,
    Int16,
    Int32,
    Int64,
    NullableString,
    Since,
    String,
    Struct,
    Uint16,
    UuidField,
)
from tiering.log.wire import ZERO_UUID, Buffer

CLIENT_ID = "seawall-quorum"
SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, DESCRIBE_QUORUM = 17, 18, 36, 55
NO_TAGS = b"\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """How far a voter, or an observer, has come, as the leader knows."""

    replica_id: Int32
    replica_directory_id: Annotated[UuidField, Since(2)] = ZERO_UUID
    log_end_offset: Int64
    last_fetch_timestamp: Annotated[Int64, Since(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, Since(1)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumPartition:
    """The quorum of one partition; there is but one."""

    partition_index: Int32
    error_code: Int16
    error_message: Annotated[NullableString, Since(2)] = None
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: Annotated[tuple[ReplicaState, ...], ArrayOf(Struct(ReplicaState))]
    observers: Annotated[tuple[ReplicaState, ...], ArrayOf(Struct(ReplicaState))]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTopic:
    """A topic that is led by a quorum."""

    topic_name: String
    partitions: Annotated[tuple[QuorumPartition, ...], ArrayOf(Struct(QuorumPartition))]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumListener:
    """Where a controller listens."""

    name: String
    host: String
    port: Uint16


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumNode:
    """A controller and its listeners."""

    node_id: Int32
    listeners: Annotated[tuple[QuorumListener, ...], ArrayOf(Struct(QuorumListener))]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponse:
    """The answer to DescribeQuorum."""

    api_key: ClassVar[int] = DESCRIBE_QUORUM
    versions: ClassVar[range] = range(3)

    error_code: Int16
    error_message: Annotated[NullableString, Since(2)] = None
    topics: Annotated[tuple[QuorumTopic, ...], ArrayOf(Struct(QuorumTopic))]
    nodes: Annotated[tuple[QuorumNode, ...], ArrayOf(Struct(QuorumNode)), Since(2)] = ()


def request(api_key: int, version: int, correlation_id: int, body: bytes, *, is_flexible: bool) -> bytes:
    """A whole request, its length before it."""
    head = struct.pack(">hhi", api_key, version, correlation_id) + string(CLIENT_ID)
    head += NO_TAGS if is_flexible else b""
    return b"".join((struct.pack(">i", len(head) + len(body)), head, body))  # a body may be large


def describe_quorum_body() -> bytes:
    """The same in all versions: one topic, one partition."""
    name = KRAFT_METADATA_TOPIC.encode()
    partition = struct.pack(">i", 0) + NO_TAGS
    return b"\x02" + bytes([len(name) + 1]) + name + b"\x02" + partition + NO_TAGS + NO_TAGS


def string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def sized(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def read_answer(frame: Buffer, correlation_id: int, *, is_flexible: bool) -> int:
    """Where the body of an answer begins. Raises if it is the answer to something else."""
    found, position = wire.read_int32(frame, 0)
    if found != correlation_id:
        raise Malformed(position=0, what="answer", why=f"is to request {found}, not {correlation_id}")
    if is_flexible:
        _, position = wire.read_tagged_fields(frame, position)
    return position


def read_api_versions(frame: Buffer, correlation_id: int) -> tuple[int, dict[int, range]]:
    """The error code, and which versions of each request the broker takes."""
    error, position = wire.read_int16(frame, read_answer(frame, correlation_id, is_flexible=False))
    count, position = wire.read_int32(frame, position)
    found: dict[int, range] = {}
    for _ in range(count):
        key, position = wire.read_int16(frame, position)
        low, position = wire.read_int16(frame, position)
        high, position = wire.read_int16(frame, position)
        found[key] = range(low, high + 1)
    return error, found


def read_sasl_handshake(frame: Buffer, correlation_id: int) -> tuple[int, tuple[str, ...]]:
    """The error code, and the mechanisms that the broker knows."""
    error, position = wire.read_int16(frame, read_answer(frame, correlation_id, is_flexible=False))
    count, position = wire.read_int32(frame, position)
    names: list[str] = []
    for _ in range(count):
        name, position = wire.read_string(frame, position)
        names.append(name)
    return error, tuple(names)


def read_sasl_authenticate(frame: Buffer, correlation_id: int) -> tuple[int, str | None, bytes]:
    """The error code and message, and what the broker says in turn."""
    error, position = wire.read_int16(frame, read_answer(frame, correlation_id, is_flexible=False))
    message, position = wire.read_nullable_string(frame, position)
    said, _ = wire.read_bytes(frame, position)
    return error, message, said
