"""What is remembered of a replica, brought up to what its files say now.

A directory's listing that stands still is not read again, but for the size of the active segment; a closed
segment that is as it was keeps what was read of it.

Owns which files are asked. Refuses to compare: that is `differ`'s. Where a file cannot be read, what was
there stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from audit_engine.observers.disk.reads import Reads
from audit_engine.observers.disk.seen import Piece, Replica
from tiering.cluster.host import LocalPartition, LogDir
from tiering.log.checkpoints import LOG_START_OFFSETS, REPLICATION_OFFSETS
from tiering.log.directory import Segment


def read_on(
    reads: Reads,
    log_dir: LogDir,
    local: LocalPartition,
    known: Replica,
    doubtful: str,
    active_bytes: int | None,
    *,
    has_remote: bool | None,
) -> Replica:
    """What is there now; where a file cannot be read, what was there."""
    if known.listing is local.listing:
        pieces = known.pieces
        if pieces and active_bytes is not None and pieces[-1].size_bytes != active_bytes:
            pieces = (*pieces[:-1], pieces[-1]._replace(size_bytes=active_bytes))
        epochs = known.epochs
    else:
        pieces = pieces_of(reads, local, {each.base_offset: each for each in known.pieces})
        epochs = tuple((each.epoch, each.start_offset) for each in local.epochs)
    if local.doubts:
        epochs = known.epochs
    entry, start = local.checkpoint_log_start, start_of(local, has_remote)
    if LOG_START_OFFSETS in doubtful:
        entry, start = known.checkpoint_entry, known.log_start
    elif start is None and has_remote is not None:
        start = known.log_start
    watermark = local.checkpoint_high_watermark
    if REPLICATION_OFFSETS in doubtful or watermark is None:
        watermark = known.high_watermark
    return replace(
        known,
        log_dir=str(log_dir.path),
        pieces=pieces,
        log_start=start,
        checkpoint_entry=entry,
        high_watermark=watermark,
        epochs=epochs,
        listing=local.listing,
    )


def start_of(local: LocalPartition, has_remote: bool | None) -> int | None:
    """The log start by the files, which mean another thing where another tier may hold it (KAFKA_FACTS 9).

    Below offset 0 there is no other tier, either. None: they do not say, or it is not known how to read them.
    """
    if local.local_start == 0:
        return local.checkpoint_log_start or 0
    return None if has_remote is None else local.log_start(remote_storage=has_remote)


def pieces_of(reads: Reads, local: LocalPartition, known: Mapping[int, Piece]) -> tuple[Piece, ...]:
    return tuple(_piece(reads, segment, known.get(segment.base_offset)) for segment in local.listing.segments)


def _piece(reads: Reads, segment: Segment, known: Piece | None) -> Piece:
    if not segment.is_closed:
        size = reads.size_bytes(segment.path)
        return Piece(segment.base_offset, None, segment.size_bytes if size is None else size)
    same = (segment.base_offset, segment.end_offset, segment.size_bytes)
    if known is not None and known[:3] == same:
        return known
    newest = reads.newest(segment)
    return Piece(*same, newest.at_ms, newest.is_indexed)


def active_bytes_of(reads: Reads, local: LocalPartition) -> int | None:
    segments = local.listing.segments
    return reads.size_bytes(segments[-1].path) if segments else None
