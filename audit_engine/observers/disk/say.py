"""Puts what was found about one replica into events, numbered within its life.

Owns the envelope-free fields that every event about a replica has.

Invariant: `ordinal` counts without a hole from 0 in each life, over restarts of the observer too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from audit_engine.observers.disk.seen import Piece, Replica
from rules.events.base import ReplicaEvent, Source
from rules.events.replicas import (
    BaselineOccasion,
    HighWatermark,
    LogBaseline,
    SegmentClosed,
    SegmentDeletedLocal,
    SegmentRemoval,
    TimestampBasis,
)
from rules.identity import LogId

NOT_KNOWN = -1

E = TypeVar("E", bound=ReplicaEvent)


@dataclass(slots=True, kw_only=True)
class Voice:
    """Speaks for one replica at one look. `replica` is what will be remembered of it."""

    replica: Replica
    cluster_id: str
    not_before_ms: int | None
    at_ms: int
    new_id: Callable[[], str]
    events: list[ReplicaEvent]

    def say(self, kind: type[E], **own: Any) -> None:
        life = self.replica.life
        epochs = self.replica.epochs
        self.events.append(
            kind(
                event_id=self.new_id(),
                occurred_at_ms=self.at_ms,
                log=LogId(self.cluster_id, life.topic_id, life.partition),
                topic=life.topic,
                leader_epoch=epochs[-1][0] if epochs else NOT_KNOWN,
                broker_id=life.broker_id,
                directory_id=life.directory_id,
                replica_incarnation=life.created_ns + self.replica.emptied,
                ordinal=self.replica.said,
                source=Source.LOG_DIR,
                not_before_ms=self.not_before_ms,
                **own,
            )
        )
        self.replica = replace(self.replica, said=self.replica.said + 1)

    def closed(self, piece: Piece) -> None:
        assert piece.end_offset is not None, "what has no end is not closed"
        self.say(
            SegmentClosed,
            base_offset=piece.base_offset,
            end_offset=piece.end_offset,
            data_end=None,
            record_count=None,
            size_bytes=piece.size_bytes,
            max_timestamp_ms=piece.newest_ms,
            timestamp_basis=_basis(piece),
        )

    def deleted(self, piece: Piece, how: SegmentRemoval) -> None:
        end = piece.end_offset
        self.say(
            SegmentDeletedLocal,
            base_offset=piece.base_offset,
            end_offset=max(self.replica.reached, piece.base_offset) if end is None else end,
            size_bytes=piece.size_bytes,
            max_timestamp_ms=piece.newest_ms,
            timestamp_basis=_basis(piece),
            segment_removal=how,
            reason_hint=None,
        )

    def watermark(self) -> None:
        now = self.replica
        if now.high_watermark is None:
            return
        self.say(
            HighWatermark,
            log_start=NOT_KNOWN if now.log_start is None else now.log_start,
            high_watermark=now.high_watermark,
            log_end=None,
            size_bytes=now.size_bytes,
        )
        self.replica = replace(
            self.replica, watermark_said=now.high_watermark, watermark_said_at_ms=self.at_ms
        )

    def baseline(self, occasion: BaselineOccasion) -> None:
        now = self.replica
        self.say(
            LogBaseline,
            occasion=occasion,
            log_start=NOT_KNOWN if now.log_start is None else now.log_start,
            local_start=now.local_start,
            high_watermark=now.high_watermark,
            log_end=None,
            epochs=now.epochs,
            segment_count=len(now.closed),
            size_bytes=now.size_bytes,
            segments_digest=digest(now.closed),
            metadata_offset=None,
        )
        self.replica = replace(
            self.replica,
            baseline_at_ms=self.at_ms,
            watermark_said=now.high_watermark,
            watermark_said_at_ms=self.at_ms,
        )


def digest(closed: tuple[Piece, ...]) -> str:
    """The SHA-256 over `(base_offset, size_bytes)` of closed segments in order, each as text in a line."""
    lines = "".join(f"{each.base_offset} {each.size_bytes}\n" for each in closed)
    return hashlib.sha256(lines.encode()).hexdigest()


def _basis(piece: Piece) -> TimestampBasis | None:
    return TimestampBasis.INDEXED if piece.is_indexed else None
