"""The two kinds of metadata record, as values: a segment's copy, and a log.

Each is the whole state of what its key names, never a delta, so that the topic can be compacted and the last
record of a key says everything.

    key in the topic                record          says
    topic_id:partition:segment_id   SegmentRecord   one attempt to copy one segment, from start to deletion
    topic_id:partition              LogRecord       who leads, where the log starts, what may be passed or not

Owns the fields and what they mean. Refuses to judge: what must hold within one record is `invariants`', what
may follow what is `lifecycle`'s, whom to believe is the table's.

Invariant: offsets are half-open, times are epoch milliseconds; nothing here can be changed once made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple, NewType, TypeAlias

from rules.identity import LogId, ObjectRef
from rules.words import GapCause
from tiering.log.checkpoints import EpochStart

__all__ = [
    "Claim",
    "EpochStart",
    "Gap",
    "GapCause",
    "HeldVersions",
    "Hold",
    "Json",
    "LogId",
    "LogRecord",
    "ObjectRef",
    "ReleasedHold",
    "SegmentId",
    "SegmentObjects",
    "SegmentRecord",
    "SegmentState",
    "WireVersion",
]

Json: TypeAlias = Any
SegmentId = NewType("SegmentId", str)  # a UUID, new for every attempt, as uuid.UUID prints it

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
NO_TIMESTAMP_MS = -1  # Kafka's own mark for a segment without a single timestamp

_NOTHING: Mapping[str, Json] = MappingProxyType({})


class SegmentState(str, Enum):
    """The life of a copy. Only COPY_FINISHED counts as coverage, and only it is read."""

    COPY_STARTED = "COPY_STARTED"
    COPY_FINISHED = "COPY_FINISHED"
    DELETE_STARTED = "DELETE_STARTED"
    DELETE_FINISHED = "DELETE_FINISHED"


class WireVersion(NamedTuple):
    """In which version a record was written, and the least that a reader must know to understand it."""

    version: int
    min_reader: int


CURRENT = WireVersion(version=1, min_reader=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentObjects:
    """The objects that the store has confirmed. A `.json` cannot name itself: there, `json` is None."""

    log: ObjectRef | None = None
    aux: ObjectRef | None = None
    json: ObjectRef | None = None

    def present(self) -> tuple[tuple[str, ObjectRef], ...]:
        named = (("aux", self.aux), ("json", self.json), ("log", self.log))
        return tuple((kind, ref) for kind, ref in named if ref is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRecord:
    """One attempt to copy one segment.

    `broker_id` and `leader_epoch` are those of whoever wrote this record: the copy's author in COPY_*, the
    remover's in DELETE_*. `key_stem` and a kind make an object's key. `size_bytes` is the `.log`'s.
    """

    log: LogId
    topic: str
    segment_id: SegmentId
    base_offset: int
    end_offset: int  # the next segment's base
    data_end: int  # the last record's offset + 1
    leader_epochs: tuple[EpochStart, ...]
    max_timestamp_ms: int
    record_count: int
    batch_count: int
    size_bytes: int
    has_txn_index: bool
    key_stem: str
    objects: SegmentObjects
    broker_id: int
    leader_epoch: int
    state: SegmentState
    generation: int
    event_id: str
    occurred_at_ms: int
    wire: WireVersion = CURRENT
    unrecognised: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)

    @property
    def covered_end(self) -> int:
        """Up to where each offset from the base is in the bytes: `data_end`, or the base if some are missing.

        Kafka loads a log whose middle is gone without a word, and the file before the hole then ends, by the
        next base, where it does not. Which offsets are missing inside is not known, so none counts.
        """
        return self.data_end if self.record_count == self.data_end - self.base_offset else self.base_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A range whose bytes are on no replica, of what leaders up to `leader_epoch` wrote; of no later ones."""

    start_offset: int
    end_offset: int
    cause: GapCause
    leader_epoch: int
    event_id: str
    recorded_at_ms: int
    unrecognised: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldVersions:
    """What came of the legal hold on the recorded versions of `[start_offset, end_offset)`, at `at_ms`.

    `missing` versions were not there any more. With `trouble` it was not done for all of them.
    """

    start_offset: int
    end_offset: int | None
    held: int
    missing: int
    at_ms: int
    trouble: str | None = None
    unrecognised: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nothing of `[start_offset, end_offset)` may be trimmed or deleted. No end: whatever the log becomes.

    `finding_id` where a finding placed it. `versions` is None where no legal hold was asked for.
    """

    hold_id: str
    start_offset: int
    end_offset: int | None
    reason: str
    placed_by: str
    placed_at_ms: int
    finding_id: str | None = None
    versions: HeldVersions | None = None
    unrecognised: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedHold:
    """A hold that somebody released: it is not placed again by the finding that placed it."""

    hold_id: str
    released_by: str
    reason: str
    released_at_ms: int
    unrecognised: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)


class Claim(NamedTuple):
    """From `offset` of the metadata topic on, copies by leaders of epochs below `epoch` count for nothing."""

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One log, as its leader's agent declares it.

    The first record of a leader is its claim, and has no `claim_offset`: it is the claim's place. Later ones
    repeat that place, since compaction takes the first away; `earlier_claims` are those that still fence
    something. `based_on` is the topic offset of the record that this one replaces: one based on another
    than the last is a lost race, and not followed, so that no writer undoes what it has not seen.
    `leader_epochs` is the lineage from `log_start` on: the broker's own file is cut at its local start.
    """

    log: LogId
    topic: str
    broker_id: int
    claim_epoch: int
    claim_offset: int | None
    earlier_claims: tuple[Claim, ...]
    leader_epochs: tuple[EpochStart, ...]
    log_start: int
    first_tiered_offset: int
    gaps: tuple[Gap, ...]
    generation: int
    keep_until_ms: int | None
    holds: tuple[Hold, ...]
    topic_deleted_at_ms: int | None
    based_on: int | None
    event_id: str
    occurred_at_ms: int
    released_holds: tuple[ReleasedHold, ...] = ()  # the latest ones
    wire: WireVersion = CURRENT
    unrecognised: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)
