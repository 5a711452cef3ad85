"""What tiering says of its own acts, and what KIP-405's topic says of the broker's.

Owns the names and fields of these kinds. Refuses opinions: an event is a fact with its own time and id,
complete in itself.

Invariant: ranges are half-open. `source` is None where we acted ourselves. With `remote_log_metadata` the
`metadata_offset` is that topic's, `broker_id` is the broker that wrote the record, `epochs` are the leader
epochs of the segment's records, each with its first offset, and what its records do not carry is None; an
object's name is the plugin's own, so there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rules.events.base import LogEvent, SegmentEvent, Source
from rules.identity import ObjectRef
from rules.words import GapCause


class DeleteCause(str, Enum):
    """What a removal from the tier says for itself. A judge infers; it does not take this for proof."""

    LOG_START = "log_start"  # wholly below the log's start, which was moved first
    FAILED_COPY = "failed_copy"  # never finished
    ORPHAN = "orphan"  # finished behind a newer leader's claim
    SUPERSEDED = "superseded"  # another finished segment of the lineage covers it
    TOPIC_DELETED = "topic_deleted"


class TrimResult(str, Enum):
    """What DeleteRecords came to, by reading the log's start back."""

    ADVANCED = "advanced"
    TIMED_OUT = "timed_out"  # and had not happened when it was read back: it may yet
    REFUSED = "refused"
    UNKNOWN = "unknown"  # it could not be read back, or what was read back is not what was answered


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRejected(LogEvent):
    """No attempt was begun: the local bytes of `[base_offset, end_offset)` failed their check."""

    kind: ClassVar[str] = "segment_rejected"

    base_offset: int
    end_offset: int
    problem: str  # stable, for programs
    detail: str
    position: int | None  # byte in the segment


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyStarted(SegmentEvent):
    """The metadata topic holds COPY_STARTED. Does not say that any object is there."""

    kind: ClassVar[str] = "copy_started"

    generation: int
    data_end: int | None
    size_bytes: int
    record_count: int | None
    max_timestamp_ms: int
    metadata_offset: int
    source: Source | None = None
    broker_id: int | None = None  # that wrote the record, where it says so
    epochs: tuple[tuple[int, int], ...] | None = None  # epoch, first offset in the segment


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFinished(SegmentEvent):
    """The metadata topic holds COPY_FINISHED: from here on the copy counts. Names its objects as the store
    confirmed them; does not say that they are still there (`scrubbed`).
    """

    kind: ClassVar[str] = "copy_finished"

    generation: int
    data_end: int | None
    size_bytes: int
    record_count: int | None
    max_timestamp_ms: int
    objects: tuple[ObjectRef, ...]
    metadata_offset: int
    source: Source | None = None
    broker_id: int | None = None  # that wrote the record, where it says so
    epochs: tuple[tuple[int, int], ...] | None = None  # epoch, first offset in the segment


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFailed(SegmentEvent):
    """An attempt ended without COPY_FINISHED. What it left behind counts for nothing."""

    kind: ClassVar[str] = "copy_failed"

    error: str  # the class of error, stable, for programs
    detail: str
    attempt: int
    leftovers: tuple[str, ...]  # keys under which something may lie


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadStalled(LogEvent):
    """A log's frontier did not move although there was something to copy. Nothing need be lost yet."""

    kind: ClassVar[str] = "upload_stalled"

    frontier: int
    stalled_ms: int
    waiting_segments: int
    waiting_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionWarning(LogEvent):
    """Said before data is lost: at the rates now seen, `[frontier, …)` expires locally uncopied.

    `copied_in_ms` is -1 where nothing is being copied.
    """

    kind: ClassVar[str] = "retention_warning"

    frontier: int
    local_start: int
    expires_in_ms: int
    copied_in_ms: int
    lag_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStarted(SegmentEvent):
    """The metadata topic holds DELETE_STARTED: from here on the copy does not count, whatever lies there."""

    kind: ClassVar[str] = "delete_started"

    generation: int
    cause: DeleteCause | None
    metadata_offset: int
    source: Source | None = None
    broker_id: int | None = None  # that wrote the record, where it says so


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFinished(SegmentEvent):
    """The metadata topic holds DELETE_FINISHED, after the last object went. Old versions may stay."""

    kind: ClassVar[str] = "delete_finished"

    generation: int
    cause: DeleteCause | None
    metadata_offset: int
    source: Source | None = None
    broker_id: int | None = None  # that wrote the record, where it says so


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipClaimed(LogEvent):
    """`leader_epoch` is the claim's; records of lower epochs behind `metadata_offset` count for nothing."""

    kind: ClassVar[str] = "leadership_claimed"

    broker_id: int
    metadata_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRecorded(LogEvent):
    """The frontier may pass `[start_offset, end_offset)`, because its bytes are on no replica."""

    kind: ClassVar[str] = "gap_recorded"

    start_offset: int
    end_offset: int
    cause: GapCause
    metadata_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TierState(LogEvent):
    """Two tables that read the topic alike say the same digest at the same `metadata_offset`.

    Of our own tier, after each record. Of Kafka's, with source remote_log_metadata, when an observer begins,
    after a gap and every six hours: a baseline, no change; its digest is of another making.
    """

    kind: ClassVar[str] = "tier_state"

    metadata_partition: int
    metadata_offset: int
    digest: str  # 64 hexadecimal digits
    tiered_start: int
    frontier: int
    segment_count: int
    size_bytes: int
    source: Source | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSet(LogEvent):
    """Each record that the digest at `metadata_offset` sums up: its key, and the SHA-256 of key and value."""

    kind: ClassVar[str] = "tier_set"

    metadata_partition: int
    metadata_offset: int
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimCertified(LogEvent):
    """The whole case for moving every replica's start from `old_start` to `new_start`."""

    kind: ClassVar[str] = "trim_certified"

    certificate_id: str
    old_start: int
    new_start: int
    frontier: int
    metadata_partition: int
    metadata_offset: int
    digest: str
    agreeing_brokers: tuple[int, ...]
    segments: tuple[tuple[str, str], ...]  # segment id, checksum of its .log


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimOutcome(LogEvent):
    """What came of a certified DeleteRecords, by reading the log's start back: None where nobody answered."""

    kind: ClassVar[str] = "trim_outcome"

    certificate_id: str
    result: TrimResult
    start_read_back: int | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRefused(LogEvent):
    """`key` is shown as text. A record whose key names no log is the reader's own finding, not an event."""

    kind: ClassVar[str] = "record_refused"

    metadata_partition: int
    metadata_offset: int
    key: str
    reason: str  # stable, for programs
    detail: str
