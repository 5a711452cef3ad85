"""What the observer remembers of each replica between two looks: all that a later event needs to be complete.

Owns these values. What they hold is from while the files lived: once a segment is gone, its size and its
newest time can be read nowhere any more.

Invariant: a `Seen` holds one `Replica` for each life of a replica that was there at its last sight. One whose
disk cannot be looked into keeps the time at which it was seen last; it is not gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from tiering.cluster.host import LocalPartition
from tiering.cluster.interface import BrokerIdentity
from tiering.log.directory import PartitionDirectory


class Life(NamedTuple):
    """One directory of one partition, from its creation to its end."""

    topic: str
    partition: int
    topic_id: str
    broker_id: int
    directory_id: str | None
    inode: int
    created_ns: int

    @classmethod
    def of(cls, local: LocalPartition) -> Life:
        found = local.incarnation
        return cls(
            topic=local.partition.topic,
            partition=local.partition.partition,
            topic_id=found.topic_id,
            broker_id=found.broker_id,
            directory_id=found.directory_id,
            inode=found.inode,
            created_ns=found.created_ns,
        )


class Piece(NamedTuple):
    """A segment. `end_offset` is None for the active one; `is_indexed`: its time is its time index's."""

    base_offset: int
    end_offset: int | None
    size_bytes: int
    newest_ms: int | None = None
    is_indexed: bool = False


class Unread(NamedTuple):
    """What is there and cannot be read. `before_ms`: the last look that could, if any could."""

    before_ms: int | None
    is_said: bool  # not at its first look: a broker may be writing it


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A replica as it was when it was last compared.

    `emptied` counts how often it was truncated to nothing, each a new life in its old directory; `said`
    the events of this life. `last_seen_ms` is None while it is seen at every look, else the last look
    whose sight it was judged by. `held_looks`: files went, and a later look decides how.
    """

    life: Life
    log_dir: str
    pieces: tuple[Piece, ...]
    log_start: int | None
    checkpoint_entry: int | None
    high_watermark: int | None
    epochs: tuple[tuple[int, int], ...]
    emptied: int = 0
    said: int = 0
    last_seen_ms: int | None = None
    is_dark: bool = False
    held_looks: int = 0
    baseline_at_ms: int | None = None  # None: due
    watermark_said: int | None = None
    watermark_said_at_ms: int = 0
    listing: PartitionDirectory | None = field(
        default=None, compare=False, repr=False
    )  # that `pieces` are of

    @property
    def local_start(self) -> int | None:
        return self.pieces[0].base_offset if self.pieces else None

    @property
    def closed(self) -> tuple[Piece, ...]:
        return tuple(each for each in self.pieces if each.end_offset is not None)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.pieces)

    @property
    def reached(self) -> int:
        """The log is known to have come so far at least."""
        ends = [self.high_watermark or 0, *(start for _, start in self.epochs[-1:])]
        return max([*ends, *(each.base_offset for each in self.pieces[-1:])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look left behind. `offline` are the log dirs that could not be looked into.

    `moving` are the lives in -future directories: they become replicas when they take another's place.
    `unread` are the partition directories and checkpoint files that could not be read, by path.
    """

    broker: BrokerIdentity
    at_ms: int
    replicas: Mapping[Life, Replica] = field(default_factory=lambda: MappingProxyType({}))
    offline: frozenset[str] = frozenset()
    moving: frozenset[Life] = frozenset()
    unread: Mapping[str, Unread] = field(default_factory=lambda: MappingProxyType({}))
