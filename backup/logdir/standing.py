"""What stands below the log's start: segments that the broker was going to remove, and had not yet.

A log's start moves first, and the history of its epochs with it; the files go with a later look at retention.
Once the start is put back they are the log's again, and the history has to name their epochs again. Their own
batches tell them, whether the tier has copies or not; where it has, both must say the same.

Owns the reading of these files. Refuses, as DoesNotJoin, one with a hole or a defect below the start: nobody
was going to read it, so that nobody noticed.

Invariant: what is returned begins with the directory's first segment, and every byte that it tells of was
under a right CRC.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from backup.logdir.errors import DoesNotJoin, OtherHistory
from backup.logdir.replica import Replica
from backup.plan import Piece
from tiering.log.checkpoints import EpochStart
from tiering.log.segment import SegmentScan, scan_segment
from tiering.segments.lineage import Epochs, epoch_at


def standing_epochs(replica: Replica) -> Epochs:
    """The epochs of what stands below the first that the history still has; none where nothing does."""
    start = _known_from(replica)
    segments = replica.listing.segments
    ends = [*(later.base_offset for _, later in pairwise(segments)), None]
    found: list[EpochStart] = []
    for segment, end in zip(segments, ends, strict=True):
        if segment.base_offset >= start:
            break
        scan = scan_segment(segment.path, limit_offset=end)
        if scan.data_end < (start if end is None else min(start, end)):
            raise DoesNotJoin(directory=replica.path, first=replica.first_base, why=_why(scan, end))
        for epoch, first in scan.epochs:
            if first < start and (not found or found[-1].epoch != epoch):
                found.append(EpochStart(epoch, first))
    return tuple(found)


def expect_same_history(replica: Replica, pieces: Iterable[Piece], found: Epochs) -> None:
    """Raises OtherHistory where a copy of what stands tells other epochs than are to be written."""
    start = _known_from(replica)
    for piece in pieces:
        first, end = max(piece.start, replica.first_base), min(piece.end, start)
        own = piece.record.leader_epochs
        places = {first, *(at for _, at in own), *(at for _, at in found)}
        for at in sorted(each for each in places if first <= each < end):
            told, wanted = epoch_at(found, at), epoch_at(own, at)
            if told != wanted:
                why = f"at {at} the copies have epoch {wanted}, and the file that stands here has {told}"
                raise OtherHistory(directory=replica.path, why=why)


def _known_from(replica: Replica) -> int:
    """From where on the history that the broker kept tells the epochs: the log's start when it moved last."""
    return replica.epochs[0].start_offset if replica.epochs else replica.first_base


def _why(scan: SegmentScan, end: int | None) -> str:
    defect = scan.defect.detail if scan.defect is not None else f"nothing is in it up to {end}"
    return f"its own segment at {scan.base_offset} is good up to {scan.data_end} only: {defect}"
