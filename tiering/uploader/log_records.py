"""Composes the next record of a log: a claim, a gap, a new start. Each is the whole state, based on the last.

The first record of a leader is its claim and has no `claim_offset`: where it stands is where it fences. The
later ones of the same claim repeat that place, since compaction takes the first away. Whoever writes names
the record it has seen (`based_on`), so that of two writers one loses, instead of undoing what it never saw.

Owns this bookkeeping. Refuses to decide that a claim or a gap is due: that is `decide`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tiering.segments.lineage import UnknownBelow, extended
from tiering.segments.records import Claim, EpochStart, Gap, LogRecord
from tiering.uploader.errors import LineageUnknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A log's record and where it stands in the metadata topic."""

    record: LogRecord
    offset: int

    @property
    def claim_offset(self) -> int:
        """Where the claim that this record belongs to fences."""
        return self.offset if self.record.claim_offset is None else self.record.claim_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, and the identity of this one record."""

    broker_id: int
    leader_epoch: int
    event_id: str
    now_ms: int


def first_claim(
    blank: LogRecord, writer: Writer, *, live: tuple[EpochStart, ...], first_tiered_offset: int
) -> LogRecord:
    """The first record that the log ever has. `blank` gives the log and its topic."""
    return replace(
        blank,
        broker_id=writer.broker_id,
        claim_epoch=writer.leader_epoch,
        leader_epochs=live,
        log_start=first_tiered_offset,
        first_tiered_offset=first_tiered_offset,
        event_id=writer.event_id,
        occurred_at_ms=writer.now_ms,
    )


def next_claim(before: Standing, writer: Writer, *, live: tuple[EpochStart, ...]) -> LogRecord:
    """A new leader's claim. It keeps all that the log's record says, and extends the lineage by its own."""
    lineage = extended(before.record.leader_epochs, live)
    if isinstance(lineage, UnknownBelow):
        raise LineageUnknown(log=before.record.log, offset=lineage.offset, epoch=lineage.epoch)
    earlier = Claim(before.record.claim_epoch, before.claim_offset)
    return replace(
        before.record,
        broker_id=writer.broker_id,
        claim_epoch=writer.leader_epoch,
        claim_offset=None,
        earlier_claims=(*before.record.earlier_claims, earlier),
        leader_epochs=lineage,
        based_on=before.offset,
        event_id=writer.event_id,
        occurred_at_ms=writer.now_ms,
    )


def with_gap(before: Standing, writer: Writer, gap: Gap) -> LogRecord:
    """The log's record with one gap more, in its place."""
    gaps = sorted((*before.record.gaps, gap), key=lambda each: each.start_offset)
    return replace(_later(before, writer), gaps=tuple(gaps))


def _later(before: Standing, writer: Writer) -> LogRecord:
    """Another record under the same claim."""
    assert before.record.claim_epoch == writer.leader_epoch, "only the claim's holder goes on with it"
    return replace(
        before.record,
        broker_id=writer.broker_id,
        claim_offset=before.claim_offset,
        based_on=before.offset,
        event_id=writer.event_id,
        occurred_at_ms=writer.now_ms,
    )
