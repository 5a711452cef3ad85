"""The topic of KIP-405's records, as an observer sees it: values, and the protocol that gives them.

Owns nothing. Adapters: `kafka`, and one in memory in the tests.

Invariant: the records of a partition come in their order, from the position that was asked for, without a
hole that is not told in `lost`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class MetadataRecord(NamedTuple):
    """One record of the topic. `leader_epoch` is the topic's own leader's, -1 where it is not told."""

    partition: int
    offset: int
    leader_epoch: int
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTopic:
    """The topic as it is now. `replicas`: the brokers of each partition."""

    topic_id: str
    replicas: Mapping[int, frozenset[int]]


class Position(NamedTuple):
    """The next offset to be read, and the leader epoch of the record before it."""

    offset: int
    leader_epoch: int


class Bounds(NamedTuple):
    """What a partition has: `[start, end)`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What came. `ends`: partitions that were read to their end, wherever that was just then.

    `lost`: partitions that do not have the position any more that was asked for, and what they do have.
    """

    records: tuple[MetadataRecord, ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)
    lost: Mapping[int, Bounds] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.records or self.ends or self.lost)


class Reading(Protocol):
    """Partitions being read, from positions on. For one thread."""

    def read(self) -> Read:
        """What came within a moment; nothing, if nothing came. Raises a StatedError."""
        ...

    def close(self) -> None: ...


class MetadataSource(Protocol):
    """The cluster's topic of KIP-405's records."""

    def topic(self) -> MetadataTopic | None:
        """None if there is none (yet). Raises a StatedError where that could not be learnt."""
        ...

    def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """Where the leaders say that these end. Raises a StatedError where one does not."""
        ...

    def open(self, positions: Mapping[int, Position]) -> Reading: ...
