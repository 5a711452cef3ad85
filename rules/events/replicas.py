"""What a replica's files say, or its broker where the files are out of reach: log by log, as it was found.

Invariant: nothing here says why. No source beside an unmodified broker knows a reason or a principal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rules.events.base import ReplicaEvent


class TimestampBasis(str, Enum):
    """How a segment's greatest timestamp is known."""

    INDEXED = "indexed"  # the last entry of its time index
    SCANNED = "scanned"  # read from its records


class SegmentRemoval(str, Enum):
    """In which form a segment's files were found to go."""

    RENAMED = "renamed"  # to .deleted: the broker let it go, the files last a little longer
    GONE = "gone"  # no such files any more, and nothing was seen before
    SWAPPED = "swapped"  # compaction put others in their place


class ReplicaAppearance(str, Enum):
    """How a new life of a replica began, as far as its directory shows."""

    FIRST_SEEN = "first_seen"  # it was there when this observer first looked
    CREATED = "created"  # its directory appeared: assigned, or its disk replaced
    PROMOTED = "promoted"  # a -future directory took its place
    TRUNCATED_FULLY = "truncated_fully"  # emptied, to begin again at the leader's start


class ReplicaRemoval(str, Enum):
    """How a replica went."""

    RENAMED_DELETE = "renamed_delete"  # its directory, to -delete
    RENAMED_STRAY = "renamed_stray"  # its directory, to -stray
    REPLACED = "replaced"  # a -future directory took its place
    GONE = "gone"  # its directory is not there any more, on a disk that is
    UNASSIGNED = "unassigned"  # by the metadata; the directory may still be there


class BaselineOccasion(str, Enum):
    """Why a whole state was said."""

    STARTED = "started"  # the observer began
    GAP = "gap"  # it had missed something
    PERIODIC = "periodic"
    ONBOARDING = "onboarding"  # the first ever: judgement begins here


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentClosed(ReplicaEvent):
    """The broker rolled: the files of `[base_offset, end_offset)` take no more records.

    `end_offset` is the next segment's base; `data_end` and `record_count`, None if not scanned, say what the
    bytes hold. Does not say that the bytes are sound, nor that they are below the high watermark.
    """

    kind: ClassVar[str] = "segment_closed"

    base_offset: int
    end_offset: int  # the next segment's base
    data_end: int | None  # behind its last record
    record_count: int | None  # control records too
    size_bytes: int
    max_timestamp_ms: int | None  # of its records
    timestamp_basis: TimestampBasis | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDeletedLocal(ReplicaEvent):
    """A closed segment's files left a directory that stays. Its size and times are from while they lived.

    Does not say why. A directory that goes as a whole is `replica_removed`, a disk `directory_offline`.
    `reason_hint` is the broker's own log text where it is read: support, never proof.
    """

    kind: ClassVar[str] = "segment_deleted_local"

    base_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp_ms: int | None  # of its records
    timestamp_basis: TimestampBasis | None
    segment_removal: SegmentRemoval
    reason_hint: str | None  # the broker's log text, if it is read: support, never proof


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartAdvanced(ReplicaEvent):
    """This replica's log start was `old_start` and is `new_start`, which is lower if it went back.

    `checkpoint_entry` is what the file says (None: no entry, as is usual on a stock broker), `local_start`
    the first base on disk. `high_watermark` was read after the start, in the same look. Several moves between
    two looks are one event. Does not say who moved it.
    """

    kind: ClassVar[str] = "log_start_advanced"

    old_start: int
    new_start: int
    local_start: int | None  # the first base on disk
    checkpoint_entry: int | None  # in log-start-offset-checkpoint
    high_watermark: int | None
    reason_hint: str | None  # the broker's log text, if it is read: support, never proof


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermark(ReplicaEvent):
    """The high watermark that this replica's broker wrote down, or its leader answered, and its log end then.

    `log_start` was read before it. Said with the changes that need it, within half a minute of a closed
    segment being committed, and every ten minutes, not at every checkpoint. Does not say how far it was
    between two looks.
    """

    kind: ClassVar[str] = "high_watermark"

    log_start: int
    high_watermark: int
    log_end: int | None  # the next offset to be written
    size_bytes: int | None  # of all segments on this disk: a rise without bytes shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated(ReplicaEvent):
    """The replica's log ended at `old_end` and now ends at `new_end`, in the same life.

    Does not say whether `[new_end, old_end)` was committed; the published high watermarks do.
    """

    kind: ClassVar[str] = "truncated"

    old_end: int
    new_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStarted(ReplicaEvent):
    """A new life of a replica begins, and this is what it had when it was first seen: a baseline, no change.

    Does not say that the broker restarted (`broker_started`), which ends no life.
    """

    kind: ClassVar[str] = "replica_started"

    appearance: ReplicaAppearance
    log_start: int | None
    local_start: int | None  # the first base on disk
    high_watermark: int | None
    log_end: int | None  # the next offset to be written


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRemoved(ReplicaEvent):
    """A replica is no more on this disk, or is no more assigned to this broker (source kraft or admin).

    `metadata_offset` is there for an assignment. Does not say that any record was lost.
    """

    kind: ClassVar[str] = "replica_removed"

    replica_removal: ReplicaRemoval
    metadata_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStarted(ReplicaEvent):
    """The replica's epoch history has an entry more: `epoch` begins at `start_offset`.

    Does not say who led it (`leader_changed`). An entry that was cut off, or replaced, is said by the next.
    """

    kind: ClassVar[str] = "epoch_started"

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBaseline(ReplicaEvent):
    """The whole state of one replica as it is now: when an observer begins, after a gap, and every six hours.

    `segments_digest` is the SHA-256 over the closed segments' `(base_offset, size_bytes)` in order;
    `metadata_offset` how far the observer had read `__cluster_metadata`. Does not say that anything changed:
    it closes a gap where the state before and the events known come to this.
    """

    kind: ClassVar[str] = "log_baseline"

    occasion: BaselineOccasion
    log_start: int
    local_start: int | None  # the first base on disk
    high_watermark: int | None
    log_end: int | None  # the next offset to be written
    epochs: tuple[tuple[int, int], ...]  # epoch, first offset
    segment_count: int | None
    size_bytes: int | None
    segments_digest: str | None
    metadata_offset: int | None
