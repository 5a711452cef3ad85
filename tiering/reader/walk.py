"""Walks the batches of a piece, and believes nothing that it did not check.

A batch's CRC covers all but its base offset, length, leader epoch and magic. Those four are checked as well:
the base is where the batch before it ended (a tiered log was never compacted), the length is what makes the
CRC fit, the epoch is what the segment's record says of the offset. A batch that an index led to has no batch
before it: it is believed once the batch *behind* it begins where it ends, and else the segment is read from
its start. So a wrong index costs time and never a wrong answer.

All whole batches of what is at hand are looked at together, as columns; the first that does not fit is looked
at by itself, and again as the store has it.

Owns that judgement. What fails it is fetched once more, past the cache, before it is called damaged.

Invariant: the batches given out hold every offset of the piece, in order; or ObjectDamaged says where not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from tiering.log.batch import COVERED_AT, HEADER_BYTES, BatchHeader, read_header
from tiering.log.columns import read_block, whole_chain
from tiering.log.crc import crc32c
from tiering.log.errors import LogFormatError
from tiering.log.windows import BATCH_BYTES_MAX, walk
from tiering.reader.errors import ObjectDamaged
from tiering.reader.interface import StoredBatch, StoredRun
from tiering.reader.opened import OpenedPiece
from tiering.segments.lineage import epoch_at


class _Unfit(Exception):
    """Bytes that are not the batch that should be here."""


class Walk:
    """The batches of one piece. `take` gives a chunk of the `.log`; `take_again` the same past the cache."""

    def __init__(
        self,
        opened: OpenedPiece,
        chunk_bytes: int,
        take: Callable[[int], bytes],
        take_again: Callable[[int], bytes],
    ) -> None:
        self._opened = opened
        self._size_bytes = opened.source.ref.size_bytes
        self._chunk_bytes = chunk_bytes
        self._take = take
        self._take_again = take_again
        epochs = opened.record.leader_epochs
        self._epochs = np.array([each.epoch for each in epochs], dtype=np.int64)
        self._epoch_starts = np.array([each.start_offset for each in epochs], dtype=np.int64)
        self._buffer, self._start = b"", 0  # the bytes from `_start` on, to the end of some chunk
        self._kept = b""  # those before them, of a batch that lies in both

    def runs(self) -> Iterator[StoredRun]:
        """Each batch with an offset of the piece, as many at a time as lie together."""
        piece = self._opened.piece
        position, expected = self._beginning()
        while expected < piece.end and position < self._size_bytes:
            run = self._together(position, expected) or self._alone(position, expected)
            following = position + run.size_bytes, run.next_offset
            if run.next_offset > piece.start:
                early = bisect_right(run.bases, piece.start) - 1  # batches that end before the piece begins
                yield run.split(early)[1] if early > 0 else run
            position, expected = following
        if expected < piece.end:
            data_end = self._opened.record.data_end
            why = f"the segment ends at offset {expected}, and should have those below {data_end}"
            raise self._opened.source.damaged(position, why)

    def _together(self, position: int, expected: int) -> StoredRun | None:
        """The batches from `position` on that are whole in the buffer and fit; None if the first does not."""
        reached = self._start + len(self._buffer)
        if not self._start <= position <= reached - HEADER_BYTES:
            return None
        view = memoryview(self._buffer)[position - self._start :]
        bounds = walk(view, len(view))
        if len(bounds) == 1:
            return None
        headers = b"".join([view[at : at + HEADER_BYTES] for at in bounds[:-1]])
        crcs = [crc32c(view[begin + COVERED_AT : end]) for begin, end in pairwise(bounds)]
        block = read_block(headers, bounds[:-1], crcs)
        fitting = whole_chain(block, expected, self._epochs, self._epoch_starts)
        bases = block.base_offset[:fitting].tolist()
        count = bisect_left(bases, self._opened.piece.end)
        if count == 0:
            return None
        end = int(block.last_offset[count - 1]) + 1
        return self._run(view[: bounds[count]], bounds[: count + 1], bases[:count], end, position)

    def _alone(self, position: int, expected: int) -> StoredRun:
        header, content = self._batch(position, expected)
        return self._run(content, [0, len(content)], [expected], header.next_offset, position)

    def _run(
        self, content: memoryview, bounds: list[int], bases: list[int], next_offset: int, position: int
    ) -> StoredRun:
        opened = self._opened
        return StoredRun(
            content=content,
            bounds=bounds,
            bases=bases,
            next_offset=next_offset,
            start=max(bases[0], opened.piece.start),
            end=min(next_offset, opened.piece.end),
            segment_id=opened.record.segment_id,
            position=position,
        )

    def _beginning(self) -> tuple[int, int]:
        """Where to begin and the offset there: where the index says, if batch and successor bear it out."""
        opened = self._opened
        if opened.begin > 0:
            try:
                base = self._header(opened.begin).base_offset
                first = self._judged(opened.begin, base)[0]
                behind = opened.begin + first.size_bytes
                following = opened.record.data_end
                if behind < self._size_bytes:
                    following = self._header(behind).base_offset
                if opened.record.base_offset <= base <= opened.piece.start and first.next_offset == following:
                    return opened.begin, base
            except _Unfit:
                pass
        return 0, opened.record.base_offset

    def _batch(self, position: int, expected: int) -> tuple[BatchHeader, memoryview]:
        try:
            return self._judged(position, expected)
        except _Unfit:
            pass
        self._forget(position)
        try:
            return self._judged(position, expected)
        except _Unfit as unfit:
            raise self._opened.source.damaged(position, str(unfit)) from unfit

    def _judged(self, position: int, expected: int) -> tuple[BatchHeader, memoryview]:
        header = self._header(position)
        end = position + header.size_bytes
        if end > self._size_bytes or header.size_bytes > BATCH_BYTES_MAX:
            left_bytes = self._size_bytes - position
            raise _Unfit(f"a batch of {header.size_bytes} bytes, of which {left_bytes} are left")
        if header.base_offset != expected:
            raise _Unfit(f"the batch begins at offset {header.base_offset}, not at {expected}")
        content = self._view(position, end)
        if crc32c(content[COVERED_AT:]) != header.crc:
            raise _Unfit(f"the CRC of the batch at offset {expected} does not fit")
        if header.next_offset <= expected:
            raise _Unfit(f"the batch at offset {expected} ends at {header.next_offset}")
        if header.leader_epoch != epoch_at(self._opened.record.leader_epochs, expected):
            raise _Unfit(f"the batch at offset {expected} has leader epoch {header.leader_epoch}")
        return header, content

    def _header(self, position: int) -> BatchHeader:
        try:
            return read_header(self._view(position, min(position + HEADER_BYTES, self._size_bytes)))
        except LogFormatError as broken:
            raise _Unfit(str(broken)) from broken

    def _forget(self, position: int) -> None:
        """Fetch the chunks of the batch at `position` again: as far as what is there says how long it is."""
        try:
            size_bytes = min(self._header(position).size_bytes, BATCH_BYTES_MAX)
        except _Unfit:
            size_bytes = HEADER_BYTES
        end = min(position + size_bytes, self._size_bytes)
        first, last = position // self._chunk_bytes, (end - 1) // self._chunk_bytes
        self._buffer = b"".join(self._take_again(index) for index in range(first, last + 1))
        self._start, self._kept = first * self._chunk_bytes, b""

    def _view(self, position: int, end: int) -> memoryview:
        if not self._start - len(self._kept) <= position <= end <= self._start + len(self._buffer):
            self._load(position, end)
        return self._at_hand(position, end)

    def _at_hand(self, position: int, end: int) -> memoryview:
        if position >= self._start:
            return memoryview(self._buffer)[position - self._start : end - self._start]
        kept = self._kept[position - self._start :][: end - position]
        return memoryview(kept + self._buffer[: max(0, end - self._start)])

    def _load(self, position: int, end: int) -> None:
        """Bring `[position, end)` to hand, with what of it is there already; a chunk is not copied."""
        reached = self._start + len(self._buffer)
        kept, first = b"", position // self._chunk_bytes
        if self._start - len(self._kept) <= position < reached:
            kept, first = bytes(self._at_hand(position, reached)), reached // self._chunk_bytes
        chunks = [self._take(index) for index in range(first, (end - 1) // self._chunk_bytes + 1)]
        self._buffer = b"".join(chunks)  # which gives back an only one
        self._start, self._kept = first * self._chunk_bytes, kept


def damage_of(batch: StoredBatch, opened: OpenedPiece, broken: LogFormatError) -> ObjectDamaged:
    """A batch whose CRC is right and whose records cannot be read: it was sent like this."""
    why = f"the records of the batch at offset {batch.header.base_offset} cannot be read: {broken}"
    return opened.source.damaged(batch.position, why)
