"""Gathers what a reader needs beside a segment's bytes, from the files that stand beside it.

The indexes and the producers' state come from the descriptors that are held with the segment. The list of
aborted transactions does not: Kafka notes an abort in the index of the segment that holds the *marker*, which
may be a later one. T1 makes every transaction that begins in this segment decided, so the indexes of this and
of all later local segments, the active one included, together have every abort that overlaps it.

Owns where each part comes from. Refuses to upload a segment whose own index files cannot be read: a broken
index is left out, the reader of the segment does without; a broken list of aborts is an error, since without
it aborted records would be shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiering.log.checkpoints import EpochStart
from tiering.log.directory import FileKind, read_partition_directory
from tiering.log.errors import LogFormatError
from tiering.log.index import read_offset_index, read_time_index
from tiering.log.producer_snapshot import read_producer_snapshot
from tiering.log.segment import SegmentScan
from tiering.log.transaction_index import AbortedTransaction, read_transaction_index
from tiering.store.aux_file import AuxContents, encode_aux
from tiering.uploader.holder import HeldSegment

SIDE_FILE_BYTES_MAX = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxSource:
    """What stands beside the segments of one partition directory."""

    directory: Path
    epochs: tuple[EpochStart, ...]  # the broker's history, from its local start on

    def gather(self, segment: HeldSegment, found: SegmentScan) -> bytes:
        """The `.aux` of a segment, as bytes."""
        base = segment.base_offset
        return encode_aux(
            AuxContents(
                base_offset=base,
                end_offset=segment.end_offset,
                offset_index=_sound(
                    segment, FileKind.OFFSET_INDEX, lambda raw: read_offset_index(raw, base_offset=base)
                ),
                time_index=_sound(
                    segment, FileKind.TIME_INDEX, lambda raw: read_time_index(raw, base_offset=base)
                ),
                transaction_index=_raw(segment, FileKind.TRANSACTION_INDEX),
                producer_snapshot=_sound(segment, FileKind.PRODUCER_SNAPSHOT, read_producer_snapshot),
                leader_epochs=_history(self.epochs, found, segment.end_offset),
                aborted=self._aborted(segment) if found.transactional_batch_count else (),
            )
        )

    def _aborted(self, segment: HeldSegment) -> tuple[AbortedTransaction, ...]:
        found: set[AbortedTransaction] = set()
        for base, raw in self._transaction_indexes(segment):
            index = read_transaction_index(raw, base_offset=base)
            found.update(index.overlapping(segment.base_offset, segment.end_offset))
        return tuple(sorted(found, key=lambda aborted: aborted.last_offset))

    def _transaction_indexes(self, segment: HeldSegment) -> Iterator[tuple[int, bytes]]:
        own = _raw(segment, FileKind.TRANSACTION_INDEX)
        if own is not None:
            yield segment.base_offset, own
        for later in read_partition_directory(self.directory).segments:
            if later.base_offset > segment.base_offset:
                path = later.side_file(FileKind.TRANSACTION_INDEX)
                if path.exists():
                    yield later.base_offset, path.read_bytes()


def _history(epochs: Sequence[EpochStart], found: SegmentScan, end_offset: int) -> tuple[EpochStart, ...]:
    """The leader epochs up to the segment's end: the broker's own, or at least what the bytes say."""
    own = tuple(each for each in epochs if each.start_offset < end_offset)
    return own or tuple(EpochStart(epoch, start) for epoch, start in found.epochs)


def _sound(segment: HeldSegment, kind: FileKind, read: Callable[[bytes], object]) -> bytes | None:
    """The bytes of a side file that a reader accepts; None where there is none, or a broken one."""
    raw = _raw(segment, kind)
    if raw is None:
        return None
    try:
        read(raw)
    except LogFormatError:
        return None
    return raw


def _raw(segment: HeldSegment, kind: FileKind) -> bytes | None:
    descriptor = segment.descriptors.get(kind)
    if descriptor is None:
        return None
    size_bytes = min(os.fstat(descriptor).st_size, SIDE_FILE_BYTES_MAX)
    return os.pread(descriptor, size_bytes, 0)
