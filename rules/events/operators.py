"""What people declare, allow, hold, restore and accept, and what was done for them.

Invariant: the principal is who declared or allowed, as they said it; it is no proof of who acted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rules.events.base import ClusterEvent, LogEvent, SegmentEvent
from rules.identity import ObjectRef
from rules.words import RestoreTarget, ScrubDepth, ScrubOutcome


class Operation(str, Enum):
    """What can be allowed."""

    DELETE_RECORDS = "delete_records"
    DELETE_TOPIC = "delete_topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDeclared(ClusterEvent):
    """One key of one table of the policy was declared. `before` and `after` are JSON; None: not there.

    Follows from the record at `policy_offset` of `__seawall_policy` alone, id included. Does not say that any
    broker does it.
    """

    kind: ClassVar[str] = "policy_declared"

    principal: str  # who declared it, not who acted
    change_id: str
    policy_hash: str
    policy_offset: int  # in __seawall_policy
    pattern: str
    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationAuthorised(ClusterEvent):
    """Somebody allowed a deletion, of a range or a topic, for a while.

    None as `topic_id`: whichever has the name then; as `partition`: all of them; as `end_offset`: to the end.
    Does not say that it was done.
    """

    kind: ClassVar[str] = "operation_authorised"

    principal: str  # who declared it, not who acted
    change_id: str
    operation: Operation
    topic_id: str | None
    topic: str
    partition: int | None
    start_offset: int | None
    end_offset: int | None
    valid_from_ms: int
    expires_at_ms: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsDeleteRequested(LogEvent):
    """Through Seawall, somebody asked the broker to delete the records below `new_start`.

    No verb does so today. A trim of our own has `trim_certified` instead; what others ask a broker directly,
    nobody hears. Does not say that the broker did it (`log_start_advanced`).
    """

    kind: ClassVar[str] = "records_delete_requested"

    principal: str  # who declared it, not who acted
    change_id: str
    new_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPlaced(LogEvent):
    """From `metadata_offset` of `__seawall_segments` on, our agents neither trim nor delete in the range.

    `end_offset` None: to the end. `finding_id` where a finding placed it. Does not bind the broker.
    """

    kind: ClassVar[str] = "hold_placed"

    hold_id: str
    start_offset: int
    end_offset: int | None
    principal: str  # who declared it, not who acted
    reason: str
    finding_id: str | None
    metadata_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldReleased(LogEvent):
    """The hold no longer stands from `metadata_offset` on. Somebody released it: it never releases itself."""

    kind: ClassVar[str] = "hold_released"

    hold_id: str
    principal: str  # who declared it, not who acted
    reason: str
    metadata_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(LogEvent):
    """A range was put back and read back. `objects` are what it was put back from.

    `broker_id` is the host of a log directory, `generation` the tier's new one; None elsewhere. Retention
    leaves it alone until `keep_until_ms`. The plan's range stands beside what was put back. Does not say that
    it is there today (`scrubbed`).
    """

    kind: ClassVar[str] = "restored"

    restore_id: str
    principal: str  # who declared it, not who acted
    restore_target: RestoreTarget
    start_offset: int
    end_offset: int
    broker_id: int | None
    generation: int | None
    keep_until_ms: int | None
    objects: tuple[ObjectRef, ...]
    plan_hash: str | None = None  # of the plan that was carried out
    planned_start: int | None = None
    planned_end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed(SegmentEvent):
    """One object of a finished segment was looked at, and the metadata after it, at `metadata_offset`.

    `problem` is stable, for programs. An object that was deleted meanwhile is skipped, not failed.
    """

    kind: ClassVar[str] = "scrubbed"

    object_key: str
    version_id: str | None
    size_bytes: int
    scrub_depth: ScrubDepth
    scrub_outcome: ScrubOutcome
    problem: str | None
    detail: str
    metadata_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory(LogEvent):
    """A log's objects by a listing with versions, against the metadata at `metadata_offset`.

    `listing_digest` is the SHA-256 over its live keys and versions in order. Of the differences, so many as
    `differences_left_out` are not named. A listing that failed is no event.
    """

    kind: ClassVar[str] = "inventory"

    object_count: int
    size_bytes: int
    listing_digest: str
    missing_keys: tuple[str, ...]  # the metadata knows them, the bucket has no version of them
    deleted_keys: tuple[str, ...]  # the same, but their versions lie under a delete marker
    unknown_keys: tuple[str, ...]  # they are there, and the metadata does not know them
    differences_left_out: int
    metadata_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LossAccepted(LogEvent):
    """Somebody takes the loss of a range as it is. Does not make it less lost.

    With `finding_id` that finding closes, if all of it lies in the range, and no other; else each loss in it.
    """

    kind: ClassVar[str] = "loss_accepted"

    start_offset: int
    end_offset: int
    principal: str  # who declared it, not who acted
    reason: str
    finding_id: str | None
