"""What emitters say of themselves: how far they are, what they missed, that they end.

Invariant: silence is visible. Whoever stops saying these has stopped seeing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rules.events.base import ClusterEvent, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(ClusterEvent):
    """The emitter lives. `last_seq` is the number before this event's own, -1 if this is the first.

    `log_seqs_digest` is the SHA-256 over a line `topic_id:partition:log_seq` for the last number of each of
    its `log_count` logs in this incarnation, in order of topic_id and partition; `lost_count` the events that
    found no room on its disk; `metadata_offset` how far it has read `__cluster_metadata`, None if it does not
    read it. Does not say that anything was looked at.
    """

    kind: ClassVar[str] = "heartbeat"

    last_seq: int
    log_count: int
    log_seqs_digest: str
    lost_count: int
    metadata_offset: int | None


# The problem of what is no gap: it ends one of this emitter's, whose detail or problem is its own detail.
MADE_GOOD = "made_good"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceGap(ClusterEvent):
    """This emitter knows that it did not see part of a source, in `(not_before_ms, occurred_at_ms]`.

    `[gap_start, gap_end)` is in the source's own offsets, where it has such. The topic and partition are None
    where they are not known: then it may be any. `problem` is stable, for programs. The next `log_baseline`
    of a log may close it.
    """

    kind: ClassVar[str] = "evidence_gap"

    topic_id: str | None
    topic: str | None
    partition: int | None
    source: Source
    problem: str
    detail: str
    gap_start: int | None
    gap_end: int | None
    not_before_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitterClosed(ClusterEvent):
    """A command ends its run, having said `event_count` events before this one, which is its number.

    It says no more in this incarnation. Where a command's only event is lost, this one leaves a hole there.
    """

    kind: ClassVar[str] = "emitter_closed"

    event_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitterRetired(ClusterEvent):
    """Another emitter says nothing more: its broker was unregistered (`metadata_offset`), or an owner says.

    `last_seq` and `last_incarnation` are the last known of it. Does not say that it said all it saw.
    """

    kind: ClassVar[str] = "emitter_retired"

    broker_id: int
    component: str
    last_incarnation: int | None
    last_seq: int | None
    principal: str | None
    reason: str
    metadata_offset: int | None
