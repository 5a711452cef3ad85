"""Whether a plan still fits the world: all of it is as it was planned, or as this very plan has left it.

    cluster, policy     as planned
    the log's record    as planned; or moved by this plan
    each segment        its record as planned; or published by this plan
    each object to put  under the marker or version that was on top when it was planned; or put back already
    each source         the bucket still has that version

What this plan has done already is told by the ids of its records, which are made from the plan's hash. So a
run that was killed is gone on with, and one that is over is found to be over.

Owns the comparison. Refuses anything else, as PlanOutdated, OverlapsLive, or what fits; changes nothing.

Invariant: nothing of the world was changed before `check` has come back.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from backup.catalogue.copies import Copy, LogCatalogue, StoredObject
from backup.catalogue.gather import gather
from backup.errors import BucketUnfit, CannotRestore, GapInTheMiddle, OverlapsLive, PlanOutdated, WrongCluster
from backup.plan.make import log_print, policy_print, to_be_copied
from backup.plan.target import expect_target
from backup.plan.values import Lost, LostBecause, Origin, Piece, Plan
from backup.tier.ports import Ports
from rules.events import RestoreTarget
from rules.identity import ObjectRef
from tiering.segments.records import SegmentRecord, SegmentState

_NAMESPACE = uuid.UUID("5ea3a11b-0009-4000-8000-000000000009")


def own_id(plan: Plan, what: str) -> str:
    """The id of an act of this plan: the same however often it is carried out."""
    return str(uuid.uuid5(_NAMESPACE, f"{plan.hash}:{what}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToCopy:
    """One object that is to be put back. `is_taken`: something of its size is on its key, perhaps it."""

    kind: str
    source: ObjectRef
    is_taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceState:
    """`record`: as it is told now. `is_published`: nothing is left to do; `is_own`: by this plan."""

    piece: Piece
    record: SegmentRecord
    to_copy: tuple[ToCopy, ...] = ()
    is_published: bool = False
    is_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far the plan is carried out."""

    pieces: tuple[PieceState, ...]
    is_start_moved: bool
    keep_until_ms: int | None  # as the log's record has it now

    @property
    def is_over(self) -> bool:
        return self.is_start_moved and all(each.is_published for each in self.pieces)


def check(plan: Plan, ports: Ports) -> State:
    """Raises why it may not be carried out."""
    body = plan.body
    if body.log.cluster_id != ports.cluster_id:
        raise WrongCluster(log=body.log, why="", planned=body.log.cluster_id, found=ports.cluster_id)
    expect_target(plan, RestoreTarget.TIER)
    if blocking := blocking_gap(plan):
        why = f"{blocking.because.value}: {blocking.detail}"
        raise GapInTheMiddle(log=body.log, start=blocking.start, end=blocking.end, why=why)
    found = gather(body.log, ports.table, ports.objects, ports.layout)
    if not found.keeps_versions:
        raise BucketUnfit(log=body.log, bucket=ports.objects.bucket, why="it keeps no versions")
    if found.doubts:
        raise CannotRestore(log=body.log, why=found.doubts[0])
    if policy_print(ports.policy(body.topic)) != body.fingerprints.policy:
        raise PlanOutdated(plan_hash=plan.hash, what="policy", why=f"of {body.topic} is another by now")
    pieces = tuple(_piece_state(plan, piece, found) for piece in body.pieces)
    is_start_moved = _is_start_moved(plan, found, pieces)
    assert found.record is not None, "a log without a record is doubted"
    return State(pieces=pieces, is_start_moved=is_start_moved, keep_until_ms=found.record.keep_until_ms)


def blocking_gap(plan: Plan) -> Lost | None:
    """The first gap that readers would stand at; those on record they are told of."""
    if plan.body.passes_gaps:
        return None
    return next((each for each in plan.body.gaps if each.because is not LostBecause.ON_RECORD), None)


def _is_start_moved(plan: Plan, found: LogCatalogue, pieces: tuple[PieceState, ...]) -> bool:
    record = found.record
    assert record is not None
    if log_print(record) == plan.body.fingerprints.log:
        return False
    is_below = max(record.log_start, record.first_tiered_offset) <= plan.body.range.start
    if is_below and all(each.is_published for each in pieces):
        return True
    why = f"{record.topic}-{record.log.partition} begins at {record.log_start} by now, or its gaps are others"
    raise PlanOutdated(plan_hash=plan.hash, what="log", why=why)


def _piece_state(plan: Plan, piece: Piece, found: LogCatalogue) -> PieceState:
    copy = next((each for each in found.copies if each.record.segment_id == piece.record.segment_id), None)
    if copy is None:
        raise _moved(plan, "bucket", f"has nothing left of {piece.record.key_stem}")
    if _is_own(plan, copy):
        return PieceState(piece=piece, record=copy.record, is_published=True, is_own=True)
    planned, now = piece.record, copy.record
    if (now.state, now.generation, now.event_id) != (planned.state, planned.generation, planned.event_id):
        said = f"{now.state.value} of generation {now.generation}"
        raise _moved(plan, "log", f"has segment {now.segment_id} in {said} by now")
    if piece.origin is Origin.TIER:
        if not copy.is_live:
            raise _moved(plan, "bucket", f"has {planned.key_stem} not live any more")
        return PieceState(piece=piece, record=copy.record, is_published=True)
    planned_kinds = set(to_be_copied(piece))
    to_copy = []
    for kind, ref in planned.objects.present():
        stored = copy.of(kind)
        if stored.version(ref.version_id, ref.size_bytes) is None:
            raise _moved(plan, "bucket", f"has version {ref.version_id} of {ref.key} not any more")
        if kind not in planned_kinds:
            if stored.top_id != ref.version_id:
                raise _moved(plan, "bucket", f"has something else on top of {ref.key}")
        else:
            is_taken = _is_taken(plan, piece, kind, ref, stored)
            to_copy.append(ToCopy(kind=kind, source=ref, is_taken=is_taken))
    return PieceState(piece=piece, record=copy.record, to_copy=tuple(to_copy))


def _is_own(plan: Plan, copy: Copy) -> bool:
    counts = copy.record.state is SegmentState.COPY_FINISHED
    return counts and copy.record.event_id == own_id(plan, copy.record.segment_id)


def _is_taken(plan: Plan, piece: Piece, kind: str, ref: ObjectRef, stored: StoredObject) -> bool:
    """Whether a live object is on the key that may be the one: its checksum is compared in its turn."""
    live = stored.live
    if live is not None and live.size_bytes != ref.size_bytes:
        why = f"{ref.key} is another object of {live.size_bytes} bytes"
        raise OverlapsLive(log=plan.body.log, start=piece.start, end=piece.end, why=why)
    if live is None and stored.top_id != dict(piece.tops)[kind]:
        raise _moved(plan, "bucket", f"has another marker on {ref.key} than when it was planned")
    return live is not None


def _moved(plan: Plan, what: str, why: str) -> PlanOutdated:
    return PlanOutdated(plan_hash=plan.hash, what=what, why=why)
