"""What a scrub asks of the world, and what is asked of it.

Owns the ports. None of them can change the bucket, or write to the topic of metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rules.events import Event, ScrubDepth
from rules.identity import LogId
from tiering.scrub.look import Objects
from tiering.scrub.plan import Subset
from tiering.segments.keys import parse_key
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.segments.view import LogView
from tiering.store.keys import KeyLayout

WORKERS = 4
WORKERS_MAX = 64


class Copy(NamedTuple):
    """A finished copy, as much of it as a table has at hand. `size_bytes` is the `.log`'s."""

    segment_id: SegmentId
    base_offset: int
    size_bytes: int
    metadata_offset: int  # of its record


class Table(Protocol):
    """The reference table. For any number of threads."""

    def read_on(self) -> object:
        """Read up to where the topic ends now. Raises StatedError."""

    def logs(self) -> Collection[LogId]:
        """Those that the run is about."""

    def label(self, log: LogId) -> str | None: ...

    def finished(self, log: LogId) -> Collection[Copy]:
        """The copies that are followed and finished: what the bucket must have."""

    def known(self, log: LogId) -> Collection[SegmentId]:
        """Every attempt of which there is a record, readable or not."""

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None: ...

    def leader_epoch(self, log: LogId) -> int:
        """The highest that was claimed; -1 if none was."""

    def last_offset(self, log: LogId) -> int:
        """Of the topic of metadata, as far as it was read; -1 if nothing was."""


class Memory(Protocol):
    """When what was looked at."""

    def looked_at(self, depth: str) -> dict[str, int]: ...

    def note(self, names: Iterable[str], depth: str, at_ms: int) -> None: ...

    def forget(self, names: Iterable[str], depth: str) -> None: ...


class Sink(Protocol):
    """Takes events; when it returns they are kept."""

    def emit_many(self, events: Sequence[Event]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world, as far as a scrub touches it. `pace` waits until so many bytes more may have come."""

    table: Table
    objects: Objects
    memory: Memory
    sink: Sink
    layout: KeyLayout
    pace: Callable[[int], object]
    clock: Callable[[], float]
    now_ms: Callable[[], int]
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked for. `is_whole`: of all topics, so that the memory may forget what is not there."""

    depth: ScrubDepth = ScrubDepth.DEEP
    subset: Subset = field(default_factory=Subset)
    max_bytes: int | None = None
    max_s: float | None = None
    workers: int = WORKERS
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """For a bar. `total_bytes` is an estimate of what the budget lets this run read: `.log`s alone."""

    listing: int = 0  # logs that are still to be listed
    done_bytes: int = 0
    total_bytes: int = 0
    segments: int = 0
    total_segments: int = 0


def known_ids(keys: Iterable[bytes]) -> frozenset[SegmentId]:
    """The attempts that keys of the topic name."""
    names = (parse_key(key) for key in keys)
    return frozenset(
        SegmentId(name.segment_id) for name in names if name is not None and name.segment_id is not None
    )


def copies_of(view: LogView | None) -> list[Copy]:
    """The finished copies in a table's view of a log."""
    found = view.finished if view is not None else None
    if found is None:
        return []
    columns = (found.bases, found.sizes_bytes, found.metadata_offsets)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Copy(found.segment_id(row), *numbers) for row, numbers in enumerate(rows)]
