"""The control records of KRaft's own log: who leads its quorum, who votes, where a snapshot starts and ends.

    key    int16 version, int16 type (`tiering.log.batch.ControlType`)
    value  a message (`tiering.log.schema`) whose first field is its own version, an int16

There is no frame: the type in the key names the message.

Refuses: the types that end transactions, which stand in other logs and are read by `tiering.log.batch`.

Invariant: an unknown type, or a newer version, becomes a `SkippedRecord`. A key version above 0 is read as 0,
as Kafka reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias, cast

from tiering.log import wire
from tiering.log.batch import ControlType
from tiering.log.errors import Malformed
from tiering.log.framed import FramedMessage, SkippedRecord, SkipReason
from tiering.log.schema import (
    ArrayOf,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Struct,
    Uint16,
    UuidField,
    read_message,
)
from tiering.log.wire import ZERO_UUID, Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumVoter:
    """A voter, as the record of an election names it."""

    voter_id: Int32
    voter_directory_id: Annotated[UuidField, Since(1)] = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """An epoch of the quorum begins: this node leads it."""

    api_key: ClassVar[int] = ControlType.LEADER_CHANGE
    versions: ClassVar[range] = range(2)

    version: Int16
    leader_id: Int32
    voters: Annotated[tuple[QuorumVoter, ...], ArrayOf(Struct(QuorumVoter))]
    granting_voters: Annotated[tuple[QuorumVoter, ...], ArrayOf(Struct(QuorumVoter))]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHeader:
    """A snapshot starts; the newest log record in it was appended at this time."""

    api_key: ClassVar[int] = ControlType.SNAPSHOT_HEADER
    versions: ClassVar[range] = range(1)

    version: Int16
    last_contained_log_timestamp: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFooter:
    """A snapshot ends; one without a footer was never finished."""

    api_key: ClassVar[int] = ControlType.SNAPSHOT_FOOTER
    versions: ClassVar[range] = range(1)

    version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersion:
    """The quorum's protocol level: 1 and above may change their voters (KIP-853)."""

    api_key: ClassVar[int] = ControlType.KRAFT_VERSION
    versions: ClassVar[range] = range(1)

    version: Int16
    kraft_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterEndpoint:
    """Where a voter listens."""

    name: String
    host: String
    port: Uint16


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersionRange:
    """The protocol levels a voter can run."""

    min_supported_version: Int16
    max_supported_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A voter, with all that is needed to reach it."""

    voter_id: Int32
    voter_directory_id: UuidField
    endpoints: Annotated[tuple[VoterEndpoint, ...], ArrayOf(Struct(VoterEndpoint))]
    kraft_version_feature: Annotated[KRaftVersionRange, Struct(KRaftVersionRange)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voters:
    """The quorum's voters from here on (KIP-853)."""

    api_key: ClassVar[int] = ControlType.KRAFT_VOTERS
    versions: ClassVar[range] = range(1)

    version: Int16
    voters: Annotated[tuple[Voter, ...], ArrayOf(Struct(Voter))]


ControlRecord: TypeAlias = LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | Voters
CONTROL_RECORDS: Mapping[int, type[FramedMessage]] = {
    record.api_key: record for record in ControlRecord.__args__
}


def read_control_record(key: Buffer, value: Buffer) -> ControlRecord | SkippedRecord:
    """What a control record of KRaft's log says, or why it was not read."""
    key_version, position = wire.read_int16(key, 0)
    if key_version < 0:
        raise Malformed(position=0, what="control record key", why=f"has version {key_version}")
    control_type, _ = wire.read_int16(key, position)
    version, _ = wire.read_int16(value, 0)
    message = CONTROL_RECORDS.get(control_type)
    if message is None:
        return SkippedRecord(api_key=control_type, version=version, reason=SkipReason.UNKNOWN_TYPE)
    if version not in message.versions:
        return SkippedRecord(api_key=control_type, version=version, reason=SkipReason.NEWER_VERSION)
    return cast("ControlRecord", read_message(message, version, value))
