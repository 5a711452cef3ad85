"""Asks one broker about itself. A connection for each question: they are few, and far between.

Needs Describe on the cluster for the log dirs and the quorum; the features anybody may ask for.

Owns the translation of what goes wrong into `Unknown` causes. Never raises. For any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.log_sizes import Features, LogDir, Quorum
from tiering.cluster.log_sizes.messages import (
    NOT_TOLD,
    ApiVersionsResponse,
    DescribeLogDirsResponse,
    LogDirResult,
    api_versions_body,
    describe_log_dirs_body,
)
from tiering.cluster.quorum.connection import Connection
from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.quorum.messages import DescribeQuorumResponse
from tiering.log.checkpoints import TopicPartition
from tiering.log.errors import LogFormatError

T = TypeVar("T")

ANSWER_TIMEOUT_S = 20.0  # a broker adds up the sizes of all its files for the answer
METADATA_VERSION = "metadata.version"
_UNAUTHORISED = frozenset({29, 31})  # TOPIC_, CLUSTER_AUTHORIZATION_FAILED
_STORAGE_ERROR = 56  # KAFKA_STORAGE_ERROR


class BrokerClient:
    """A BrokerWord. `librdkafka` are the settings that every other client of the cluster gets."""

    def __init__(
        self, host: str, port: int, librdkafka: Mapping[str, str], *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> None:
        self._host = host
        self._port = port
        self._settings = dict(librdkafka)
        self._timeout_s = timeout_s

    def log_dirs(self) -> tuple[LogDir, ...] | Unknown:
        def ask(connection: Connection) -> DescribeLogDirsResponse:
            return connection.ask(DescribeLogDirsResponse, describe_log_dirs_body(), "DescribeLogDirs")

        answer = self._asked(ask)
        return answer if isinstance(answer, Unknown) else log_dirs_of(answer)

    def features(self) -> Features | Unknown:
        def ask(connection: Connection) -> ApiVersionsResponse:
            return connection.ask(ApiVersionsResponse, api_versions_body(), "ApiVersions")

        answer = self._asked(ask)
        return answer if isinstance(answer, Unknown) else features_of(answer)

    def quorum(self) -> Quorum | Unknown:
        answer = self._asked(lambda connection: connection.describe_quorum())
        return answer if isinstance(answer, Unknown) else quorum_of(answer)

    def _asked(self, ask: Callable[[Connection], T]) -> T | Unknown:
        where = f"{self._host}:{self._port}"
        try:
            with Connection(self._host, self._port, self._settings, timeout_s=self._timeout_s) as connection:
                return ask(connection)
        except Unaskable as refused:
            return Unknown(cause=Cause.REFUSED, reason=f"{where}: {refused}")
        except (OSError, LogFormatError) as failed:
            return Unknown(cause=Cause.NO_ANSWER, reason=f"{where}: {failed}")


def log_dirs_of(answer: DescribeLogDirsResponse) -> tuple[LogDir, ...] | Unknown:
    """What an answer comes to."""
    if answer.error_code != 0:
        return _error("DescribeLogDirs", answer.error_code)
    if not answer.results:
        reason = "the broker names no log dir: it takes Describe on the cluster"
        return Unknown(cause=Cause.REFUSED, reason=reason)
    return tuple(_log_dir(found) for found in answer.results)


def _log_dir(found: LogDirResult) -> LogDir:
    trouble = None
    if found.error_code != 0:
        is_offline = found.error_code == _STORAGE_ERROR
        trouble = "it is offline" if is_offline else f"error {found.error_code}"
    return LogDir(
        path=found.log_dir,
        size_bytes={
            TopicPartition(topic.name, each.partition_index): each.partition_size
            for topic in found.topics
            for each in topic.partitions
            if not each.is_future_key
        },
        total_bytes=_told(found.total_bytes),
        usable_bytes=_told(found.usable_bytes),
        trouble=trouble,
    )


def features_of(answer: ApiVersionsResponse) -> Features | Unknown:
    if answer.error_code != 0:
        return _error("ApiVersions", answer.error_code)
    newest = [each.max_version for each in answer.supported_features if each.name == METADATA_VERSION]
    agreed = [each.max_version_level for each in answer.finalized_features if each.name == METADATA_VERSION]
    return Features(
        newest_metadata_version=newest[0] if newest else None, metadata_version=agreed[0] if agreed else None
    )


def quorum_of(answer: DescribeQuorumResponse) -> Quorum | Unknown:
    if answer.error_code != 0:
        return _error("DescribeQuorum", answer.error_code)
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code != 0:
                return _error("DescribeQuorum", each.error_code)
            voters = frozenset(voter.replica_id for voter in each.current_voters)
            return Quorum(leader_id=each.leader_id, voter_ids=voters)
    return Unknown(cause=Cause.PARTIAL, reason="the answer names no quorum of the metadata log")


def _told(size_bytes: int) -> int | None:
    return None if size_bytes == NOT_TOLD else size_bytes


def _error(name: str, code: int) -> Unknown:
    if code in _UNAUTHORISED:
        reason = f"{name} is not allowed: it takes Describe on the cluster"
        return Unknown(cause=Cause.REFUSED, reason=reason)
    return Unknown(cause=Cause.ERROR, reason=f"{name}: error {code}")
