"""The answers that one broker gives of itself, as tables.

    request            key  versions  body
    DescribeLogDirs     35  2-4       null: all topics
    ApiVersions         18  3         name and version of the client's software

Older versions of DescribeLogDirs are not flexible, and not asked for: brokers know version 2 since Kafka 2.6.

Invariant: an answer is read to its last byte, or it is a LogFormatError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from tiering.cluster.quorum.messages import API_VERSIONS, CLIENT_ID, NO_TAGS
from tiering.log.schema import ArrayOf, Bool, Int16, Int32, Int64, Since, String, Struct, Tag

DESCRIBE_LOG_DIRS = 35
NOT_TOLD = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirPartition:
    """A replica in a log dir."""

    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool  # it is being moved here from another log dir of this broker


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirTopic:
    """The replicas of a topic in a log dir."""

    name: String
    partitions: Annotated[tuple[LogDirPartition, ...], ArrayOf(Struct(LogDirPartition))]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirResult:
    """A log dir."""

    error_code: Int16
    log_dir: String
    topics: Annotated[tuple[LogDirTopic, ...], ArrayOf(Struct(LogDirTopic))]
    total_bytes: Annotated[Int64, Since(4)] = NOT_TOLD
    usable_bytes: Annotated[Int64, Since(4)] = NOT_TOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsResponse:
    """The answer to DescribeLogDirs. Before version 3 who may not ask is told of no log dir at all."""

    api_key: ClassVar[int] = DESCRIBE_LOG_DIRS
    versions: ClassVar[range] = range(2, 5)

    throttle_time_ms: Int32
    error_code: Annotated[Int16, Since(3)] = 0
    results: Annotated[tuple[LogDirResult, ...], ArrayOf(Struct(LogDirResult))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Which versions of a request the broker takes."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeature:
    """What the broker could do."""

    name: String
    min_version: Int16
    max_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeature:
    """What the cluster has agreed on."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    """The answer to ApiVersions, with the features in its tags."""

    api_key: ClassVar[int] = API_VERSIONS
    versions: ClassVar[range] = range(3, 4)

    error_code: Int16
    api_keys: Annotated[tuple[ApiKey, ...], ArrayOf(Struct(ApiKey))]
    throttle_time_ms: Int32
    supported_features: Annotated[
        tuple[SupportedFeature, ...], ArrayOf(Struct(SupportedFeature)), Tag(0)
    ] = ()
    finalized_features_epoch: Annotated[Int64, Tag(1)] = NOT_TOLD
    finalized_features: Annotated[
        tuple[FinalizedFeature, ...], ArrayOf(Struct(FinalizedFeature)), Tag(2)
    ] = ()
    zk_migration_ready: Annotated[Bool, Tag(3)] = False


def describe_log_dirs_body() -> bytes:
    """The same in all versions: a null array, for every topic that the broker has."""
    return b"\0" + NO_TAGS


def api_versions_body() -> bytes:
    return _compact(CLIENT_ID) + _compact("0") + NO_TAGS


def _compact(text: str) -> bytes:
    encoded = text.encode()
    assert len(encoded) < 127, "a length of one byte"
    return bytes([len(encoded) + 1]) + encoded
