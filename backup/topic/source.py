"""Whether what a replay would read is there, asked before anything of the target is touched.

Owns these questions: that the plan is for a topic, of this cluster and without a hole that nobody agreed to;
and of each version that would be read whether it is there, with the size and checksum on record.

Refuses to read bytes: what rotted under a right checksum is found when it is read, batch by batch, and the
transaction that it would have been in is not committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol

from backup.errors import GapInTheMiddle, PieceUnreadable, WrongCluster
from backup.plan import LostBecause, Piece, Plan
from backup.plan.target import expect_target
from rules.events import RestoreTarget
from rules.identity import ObjectRef
from tiering.store.errors import Missing
from tiering.store.interface import Stored
from workers.consumer.tasks import in_order

READERS = 16


class Versions(Protocol):
    """The bucket, as this asks it. PatientStore is one."""

    def head(self, key: str, version_id: str | None = None) -> Stored: ...


def check_plan(plan: Plan, cluster_id: str | None) -> None:
    """Raises why it is not for this. `cluster_id` of whoever is taken for the source; None: nobody is."""
    body = plan.body
    expect_target(plan, RestoreTarget.TOPIC)
    if cluster_id is not None and cluster_id != body.log.cluster_id:
        raise WrongCluster(log=body.log, why="", planned=body.log.cluster_id, found=cluster_id)
    for each in body.gaps:
        is_inside = body.range.start <= each.start < body.range.end
        if is_inside and not body.passes_gaps and each.because is not LostBecause.ON_RECORD:
            why = f"{each.because.value}: {each.detail}"
            raise GapInTheMiddle(log=body.log, start=each.start, end=each.end, why=why)


def check_versions(plan: Plan, objects: Versions) -> None:
    """Raises PieceUnreadable, or what the store raises."""
    for _ in in_order(_read(plan.body.pieces), partial(_check, objects), threads=READERS):
        pass


def _read(pieces: tuple[Piece, ...]) -> Iterator[ObjectRef]:
    for piece in pieces:
        yield from (piece.log_object, piece.aux_object)


def _check(objects: Versions, ref: ObjectRef) -> None:
    try:
        stored = objects.head(ref.key, ref.version_id)
    except Missing as gone:
        why = f"the bucket has it not any more ({gone.why})"
        raise PieceUnreadable(key=ref.key, version_id=ref.version_id, why=why) from gone
    if stored.size_bytes != ref.size_bytes:
        why = f"it has {stored.size_bytes} bytes, {ref.size_bytes} are on record"
        raise PieceUnreadable(key=ref.key, version_id=ref.version_id, why=why)
    if stored.checksum is not None and stored.checksum != ref.checksum:
        why = f"it has checksum {stored.checksum}, {ref.checksum} is on record"
        raise PieceUnreadable(key=ref.key, version_id=ref.version_id, why=why)
