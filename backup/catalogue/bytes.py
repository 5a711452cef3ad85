"""The bytes of a plan's pieces, each checked against its record before anybody may use it.

    PieceBytes      the port: any target reads pieces through it
    StoredPieces    its one adapter over the bucket: named versions, by ranges, under their CRC-64
    plan_log        a plan as a `TieredLog`: `TieredReader` then gives its batches and records, each checked

Owns the checks of whole objects; what is inside of a batch is the reader's. Refuses to read "whatever lies
under the key": a version that is gone is PieceUnreadable, not another version.

Invariant: `segment` ends without an error only if all bytes came, with the checksum on record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from backup.errors import PieceUnreadable
from backup.plan.values import Piece, PlanBody
from rules.identity import ObjectRef
from tiering.log.errors import LogFormatError
from tiering.reader.interface import TieredLog
from tiering.scrub.stream import whole
from tiering.segments.coverage import Coverage
from tiering.segments.frontier import Frontier, Range, Stop
from tiering.segments.keys import segment_key
from tiering.segments.lineage import Epochs, epoch_at
from tiering.segments.records import EpochStart, SegmentState
from tiering.segments.view import FinishedSegments
from tiering.store.aux_file import AuxContents, read_aux
from tiering.store.errors import Missing
from tiering.store.interface import CHECKSUM_ALGORITHM, checksum_text, crc64


class PieceBytes(Protocol):
    """The bytes of pieces."""

    def segment(self, piece: Piece) -> Iterator[memoryview]:
        """The segment's `.log`, whole, in pieces that are there until the next is asked for.

        Raises PieceUnreadable at the latest behind the last of them, so that nothing may be used before it
        has ended.
        """

    def side_files(self, piece: Piece) -> AuxContents:
        """What stood beside it: indexes, producer snapshot, epochs, aborted transactions. All checked."""


class Versions(Protocol):
    """The bucket, as this reads it. PatientStore is one."""

    def stream(self, key: str, version_id: str, start: int, end: int) -> Iterator[memoryview]: ...


class StoredPieces:
    """From the bucket. Safe to use from many threads, where the bucket is. `pace` waits for the byte rate."""

    def __init__(self, objects: Versions, pace: Callable[[int], object] = lambda _: None) -> None:
        self._objects, self._pace = objects, pace

    def segment(self, piece: Piece) -> Iterator[memoryview]:
        return self._checked(piece.log_object)

    def side_files(self, piece: Piece) -> AuxContents:
        ref = piece.aux_object
        try:
            found = read_aux(whole(self._checked(ref)))
        except LogFormatError as broken:
            raise PieceUnreadable(key=ref.key, version_id=ref.version_id, why=str(broken)) from broken
        said, wanted = (
            (found.base_offset, found.end_offset),
            (piece.record.base_offset, piece.record.end_offset),
        )
        if said != wanted:
            why = f"it is of [{said[0]}, {said[1]}), not of [{wanted[0]}, {wanted[1]})"
            raise PieceUnreadable(key=ref.key, version_id=ref.version_id, why=why)
        return found

    def _checked(self, ref: ObjectRef) -> Iterator[memoryview]:
        crc = came_bytes = 0
        try:
            for part in self._objects.stream(ref.key, ref.version_id or "null", 0, ref.size_bytes):
                crc, came_bytes = crc64(part, crc), came_bytes + len(part)
                self._pace(len(part))
                yield part
        except Missing as gone:
            raise PieceUnreadable(
                key=ref.key, version_id=ref.version_id, why=f"it is gone ({gone.why})"
            ) from gone
        if came_bytes != ref.size_bytes:
            why = f"{came_bytes} bytes came of {ref.size_bytes}"
            raise PieceUnreadable(key=ref.key, version_id=ref.version_id, why=why)
        if ref.checksum_algorithm == CHECKSUM_ALGORITHM and checksum_text(crc) != ref.checksum:
            why = f"checksum {checksum_text(crc)} of the bytes that came, {ref.checksum} on record"
            raise PieceUnreadable(key=ref.key, version_id=ref.version_id, why=why)


def plan_log(body: PlanBody) -> TieredLog:
    """The plan's range as a log that `TieredReader` reads, from the versions that the plan names.

    Lost ranges between pieces are gaps in it. A copy that was removed is read as a finished one: what readers
    of the live tier must not touch is what a restore is for, and its versions are named.
    """
    records = {
        piece.record.segment_id: replace(piece.record, state=SegmentState.COPY_FINISHED)
        for piece in body.pieces
    }
    finished = _finished(body.pieces)
    ends = np.array([piece.end for piece in body.pieces], np.int64)
    return TieredLog(
        log=body.log,
        coverage=Coverage(
            frontier=Frontier(
                start=body.range.start, offset=body.range.end, stop=Stop.END, next_covered=None
            ),
            lineage=lineage_of(body.pieces),
            gaps=tuple(Range(each.start, each.end) for each in body.gaps),
            finished=finished,
            ends=ends,
            reach=np.maximum.accumulate(ends),
        ),
        segment=records.get,
    )


def lineage_of(pieces: tuple[Piece, ...]) -> Epochs:
    """The epochs of the offsets that the pieces answer for, each from the first such offset on."""
    found: list[EpochStart] = []
    for piece in pieces:
        own = piece.record.leader_epochs
        first = epoch_at(own, piece.start)
        assert first is not None, "a segment's epochs begin at its base"
        inside = [each for each in own if piece.start < each.start_offset < piece.end]
        for each in (EpochStart(first, piece.start), *inside):
            if not found or found[-1].epoch != each.epoch:
                found.append(each)
    return tuple(found)


def _finished(pieces: tuple[Piece, ...]) -> FinishedSegments:
    records = [piece.record for piece in pieces]

    def column(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, np.int64)

    return FinishedSegments(
        keys=[segment_key(each.log, each.segment_id) for each in records],
        bases=column([piece.start for piece in pieces]),
        covered_ends=column([each.covered_end for each in records]),
        end_offsets=column([each.end_offset for each in records]),
        max_timestamps_ms=column([each.max_timestamp_ms for each in records]),
        sizes_bytes=column([each.size_bytes for each in records]),
        metadata_offsets=column(list(range(len(records)))),
        first_epochs=column([each.leader_epochs[0].epoch for each in records]),
        many_epochs={
            at: each.leader_epochs for at, each in enumerate(records) if len(each.leader_epochs) > 1
        },
    )
