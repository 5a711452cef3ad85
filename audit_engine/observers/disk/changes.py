"""What happened to one life of a replica from one look to the next, as events.

Files that went are judged one look later: a broker renames them one by one, so that one look may fall in the
middle of a truncation and find it a deletion. While the cleaner's `.swap` files stand, it waits for them.

Owns the comparison of a life with itself; `segments` owns that of its files, `differ` that of the host.
Refuses to guess: what neither look could read is no change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from audit_engine.observers.disk.reads import Reads
from audit_engine.observers.disk.say import Voice
from audit_engine.observers.disk.seen import Replica
from audit_engine.observers.disk.segments import Changes, compare, kept_as_known
from rules.events.base import ReplicaEvent
from rules.events.replicas import (
    BaselineOccasion,
    EpochStarted,
    LogStartAdvanced,
    ReplicaAppearance,
    ReplicaStarted,
    SegmentDeletedLocal,
    SegmentRemoval,
    Truncated,
)
from tiering.cluster.host import LocalPartition
from tiering.log.directory import FileKind, FileState, LogFile

EMPTY_LOOKS_MAX = 5


def must_wait(local: LocalPartition, known: Replica, now: Replica) -> bool:
    """Whether what went is judged at a later look: a broker may be in the middle of it."""
    went = {each.base_offset for each in known.pieces} - {each.base_offset for each in now.pieces}
    if not went:
        return False
    if not now.pieces:  # a live directory is so while its broker begins it anew, and no longer
        return known.held_looks < EMPTY_LOOKS_MAX
    return not known.held_looks or bool(local.listing.of_kind(FileKind.SEGMENT, FileState.SWAP))


def tell_changes(voice: Voice, local: LocalPartition, known: Replica, reads: Reads) -> None:
    """Say what is otherwise in `voice.replica` than it was `known`, and remember what was said in it."""
    deleted = local.listing.of_kind(FileKind.SEGMENT, FileState.DELETED)

    def filled_to(below: int) -> int | None:
        last = max((f for f in deleted if f.offset is not None and f.offset < below), default=None, key=_at)
        return None if last is None else reads.data_end(last.path)

    now = voice.replica
    changes = compare(
        known.pieces,
        now.pieces,
        is_compacted=local.cleaned_to is not None,
        filled_to=filled_to,
    )
    if changes.emptied:
        voice.replica = replace(
            now, emptied=known.emptied + 1, said=0, watermark_said=None, watermark_said_at_ms=0
        )
        voice.say(
            ReplicaStarted,
            appearance=ReplicaAppearance.TRUNCATED_FULLY,
            log_start=now.log_start,
            local_start=now.local_start,
            high_watermark=now.high_watermark,
            log_end=None,
        )
        voice.baseline(BaselineOccasion.ONBOARDING)
        return
    voice.replica = replace(now, pieces=kept_as_known(known, now.pieces, changes))
    _tell_segments(voice, local, known, changes, reads)
    _tell_start(voice, known)
    _tell_epochs(voice, known)
    if len(voice.events) and now.high_watermark != known.watermark_said and _needs_watermark(voice.events):
        voice.watermark()


def _tell_segments(
    voice: Voice, local: LocalPartition, known: Replica, changes: Changes, reads: Reads
) -> None:
    if changes.cut_at is not None:
        voice.say(
            Truncated,
            old_end=known.reached,
            new_end=_end_after(local, changes.cut_at, known.reached, reads),
        )
    renamed = {file.offset for file in local.listing.of_kind(FileKind.SEGMENT, FileState.DELETED)}
    for piece in changes.closed:
        voice.closed(piece)
    for piece in changes.deleted:
        is_renamed = piece.base_offset in renamed
        voice.deleted(piece, SegmentRemoval.RENAMED if is_renamed else SegmentRemoval.GONE)
    for piece in changes.swapped:
        voice.deleted(piece, SegmentRemoval.SWAPPED)


def _end_after(local: LocalPartition, cut_at: int, reached: int, reads: Reads) -> int:
    """How much of the log was left, at most: the records of the cut segment may be new ones again."""
    for segment in local.listing.segments:
        if segment.base_offset == cut_at:
            end = reads.data_end(segment.path)
            return cut_at if end is None else min(end, reached)
    return cut_at


def _tell_start(voice: Voice, known: Replica) -> None:
    now = voice.replica
    if now.log_start is None or known.log_start is None or now.log_start == known.log_start:
        return
    voice.say(
        LogStartAdvanced,
        old_start=known.log_start,
        new_start=now.log_start,
        local_start=now.local_start,
        checkpoint_entry=now.checkpoint_entry,
        high_watermark=now.high_watermark,
        reason_hint=None,
    )


def _tell_epochs(voice: Voice, known: Replica) -> None:
    """A first entry that only moved on with the log's start is not another (KAFKA_FACTS 7)."""
    before = dict(known.epochs)
    for at, (epoch, start) in enumerate(voice.replica.epochs):
        moved_on = at == 0 and epoch in before and start > before[epoch]
        if before.get(epoch) != start and not moved_on:
            voice.say(EpochStarted, epoch=epoch, start_offset=start)


def _at(file: LogFile) -> int:
    return file.offset or 0


def _needs_watermark(events: Iterable[ReplicaEvent]) -> bool:
    """A start is judged by the watermark too, and carries it; a loss needs what was published before."""
    return any(isinstance(each, (SegmentDeletedLocal, LogStartAdvanced, Truncated)) for each in events)
