"""What one broker says of itself: its log dirs with the size of each replica, its features, its quorum.

    messages   the tables of these answers: DescribeLogDirs (KIP-113, KIP-827), ApiVersions (KIP-584)
    client     BrokerClient: the questions, put to one broker at the address that it advertises

librdkafka has no DescribeLogDirs; the connection and its security are those of `tiering.cluster.quorum`.

Owns the questions. They change nothing, and none is passed on to another broker but the one about the quorum.

Invariant: what a broker did not say is `Unknown`, never zero bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tiering.cluster.interface import Unknown
from tiering.log.checkpoints import TopicPartition

__all__ = ["BrokerWord", "Features", "LogDir", "Quorum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """A log dir by its path on the broker's host. Replicas that are being moved into it are left out.

    `size_bytes` has each replica; `total_bytes` and `usable_bytes` are of its file system, None where the
    broker does not tell. With `trouble` (an offline disk) the sizes are not known.
    """

    path: str
    size_bytes: Mapping[TopicPartition, int]
    total_bytes: int | None = None
    usable_bytes: int | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The levels of `metadata.version` (KIP-778). None where there is no such feature, as before KRaft."""

    newest_metadata_version: int | None  # that the broker could do
    metadata_version: int | None  # that the cluster has agreed on


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """Who keeps the metadata log."""

    leader_id: int
    voter_ids: frozenset[int]


class BrokerWord(Protocol):
    """One broker's word about itself."""

    def log_dirs(self) -> tuple[LogDir, ...] | Unknown: ...

    def features(self) -> Features | Unknown: ...

    def quorum(self) -> Quorum | Unknown: ...
