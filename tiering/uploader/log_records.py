"""Composes the next record of a log: a claim, or a gap under it. Each is the whole state, based on the last.

The first record of a leader is its claim and has no `claim_offset`: where it stands is where it fences. The
later ones of the same claim repeat that place, since compaction takes the first away. Whoever writes names
the record it has seen (`based_on`), so that of two writers one loses, instead of undoing what it never saw.

Owns this bookkeeping. Refuses to decide that a claim or a gap is due: that is `decide`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tiering.segments.lineage import UnknownBelow, extended, fork
from tiering.segments.records import INT64_MAX, EpochStart, Gap, LogId, LogRecord
from tiering.segments.view import LogView
from tiering.uploader.errors import LineageUnknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, and the identity of this one record."""

    broker_id: int
    leader_epoch: int
    event_id: str
    now_ms: int


def first_claim(
    log: LogId, topic: str, writer: Writer, *, live: tuple[EpochStart, ...], first_tiered_offset: int
) -> LogRecord:
    """The first record that the log ever has. `live` is the broker's own history of leader epochs."""
    return LogRecord(
        log=log,
        topic=topic,
        broker_id=writer.broker_id,
        claim_epoch=writer.leader_epoch,
        claim_offset=None,
        earlier_claims=(),
        leader_epochs=live,
        log_start=first_tiered_offset,
        first_tiered_offset=first_tiered_offset,
        gaps=(),
        generation=0,
        keep_until_ms=None,
        holds=(),
        topic_deleted_at_ms=None,
        based_on=None,
        event_id=writer.event_id,
        occurred_at_ms=writer.now_ms,
    )


def next_claim(
    view: LogView, writer: Writer, *, live: tuple[EpochStart, ...], committed_survives: bool
) -> LogRecord:
    """A new leader's claim. It keeps all that the log's record says, and extends the lineage by its own.

    But for one: where the history is another from an offset below the start on, the tier starts there anew.
    What expired was of the old history; the records that stand there now are in no tier and did not expire.

    The claim that stands until now is repeated: what lower epochs wrote behind it stays fenced.
    `committed_survives`: only a replica in sync may be elected for this topic.
    """
    before = _record(view)
    read_from = max(before.log_start, before.first_tiered_offset)
    lineage = extended(
        before.leader_epochs,
        live,
        committed_survives=committed_survives,
        unread_below=read_from if len(view.finished.keys) else INT64_MAX,
    )
    if isinstance(lineage, UnknownBelow):
        raise LineageUnknown(log=before.log, offset=lineage.offset, epoch=lineage.epoch)
    differs_from = fork(before.leader_epochs, lineage)
    bound = INT64_MAX if differs_from is None else differs_from
    return replace(
        before,
        log_start=min(before.log_start, bound),
        first_tiered_offset=min(before.first_tiered_offset, bound),
        broker_id=writer.broker_id,
        claim_epoch=writer.leader_epoch,
        claim_offset=None,
        earlier_claims=(*view.claims_to_repeat(), view.claims[-1]),
        leader_epochs=lineage,
        based_on=view.record_offset,
        event_id=writer.event_id,
        occurred_at_ms=writer.now_ms,
    )


def with_gap(view: LogView, writer: Writer, gap: Gap) -> LogRecord:
    """The log's record with one gap more, in its place."""
    before = again(view, writer)
    return replace(before, gaps=tuple(sorted((*before.gaps, gap), key=lambda each: each.start_offset)))


def again(view: LogView, writer: Writer) -> LogRecord:
    """The same once more under the same claim, based on the last: what another change starts from."""
    before = _record(view)
    assert before.claim_epoch == writer.leader_epoch, "only the claim's holder goes on with it"
    return replace(
        before,
        broker_id=writer.broker_id,
        claim_offset=view.claims[-1].offset,
        earlier_claims=view.claims_to_repeat(),
        based_on=view.record_offset,
        event_id=writer.event_id,
        occurred_at_ms=writer.now_ms,
    )


def _record(view: LogView) -> LogRecord:
    assert view.record is not None, "a log without a record is claimed with first_claim"
    assert view.claims, "a record is a claim, or belongs to one"
    return view.record
