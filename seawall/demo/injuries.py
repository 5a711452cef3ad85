"""What is done to the logs: on the broker for real, in the tier by the records that a mistaken writer leaves.

    brought_back_start   a log-start checkpoint as a disk brought it back from another time
    removal              copies removed by somebody who goes by a start that is too far: the log's record
                         first, then DELETE_STARTED, markers, DELETE_FINISHED, each told as evidence

Owns these. What they are found by is nothing of theirs.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

from rules.events import DeleteCause, DeleteFinished, DeleteStarted
from rules.identity import LogId
from seawall.backup.opened import Opened, Tier, now_ms, opened
from seawall.settings import Settings
from seawall.tier.scrub import Evidence, evidence
from tiering.retention.expire import REMOVAL_ORDER
from tiering.segments.event_fields import about
from tiering.segments.records import SegmentRecord, SegmentState

REMOVER = "remover"


def brought_back_start(log_dir: Path, topic: str, offset: int) -> None:
    """The broker must be stopped."""
    path = log_dir / "log-start-offset-checkpoint"
    kept = [line for line in path.read_text().splitlines()[2:] if not line.startswith(f"{topic} ")]
    entries = [*kept, f"{topic} 0 {offset}"]
    path.write_text("\n".join(["0", str(len(entries)), *entries, ""]))


def remove_below(settings: Settings, folder: Path, log: LogId, offset: int) -> list[tuple[int, int]]:
    """The ranges of the copies that went. `folder`: where whoever does it keeps its events."""
    folder.mkdir()
    with opened(settings) as world, evidence(settings, folder, world.cluster_id, REMOVER) as told:
        epoch = _move_start(world, log, offset)
        gone = [each for each in _copies(world, log) if each.end_offset <= offset]
        for record in gone:
            _remove(world, told, record, epoch)
        waiting = told.close(lambda spool: spool.beat(event_id=_new_id(), occurred_at_ms=now_ms()))
        assert waiting == 0
    return [(each.base_offset, each.end_offset) for each in gone]


def _move_start(world: Opened, log: LogId, offset: int) -> int:
    """The epoch of the claim under which it was done."""
    view = world.table.view(log)
    assert view is not None
    assert view.record is not None
    moved = replace(
        view.record,
        log_start=offset,
        claim_offset=view.claims[-1].offset,
        earlier_claims=view.claims_to_repeat(),
        based_on=view.record_offset,
        event_id=_new_id(),
        occurred_at_ms=now_ms(),
    )
    Tier(followed=world.table).publish_log(moved)
    return view.claims[-1].epoch


def _copies(world: Opened, log: LogId) -> list[SegmentRecord]:
    view = world.table.view(log)
    assert view is not None
    records = (world.table.segment(log, each.segment_id) for each in view.segments())
    found = [each for each in records if each is not None and each.state is SegmentState.COPY_FINISHED]
    return sorted(found, key=lambda each: each.base_offset)


def _remove(world: Opened, told: Evidence, record: SegmentRecord, epoch: int) -> None:
    deleting = replace(
        record,
        state=SegmentState.DELETE_STARTED,
        leader_epoch=epoch,
        event_id=_new_id(),
        occurred_at_ms=now_ms(),
    )
    offset = world.table.publish(deleting)
    generation, cause = record.generation, DeleteCause.LOG_START
    told.emit_many(
        [DeleteStarted(**about(deleting), generation=generation, cause=cause, metadata_offset=offset)]
    )
    for kind in REMOVAL_ORDER:
        world.store.mark_deleted(f"{record.key_stem}.{kind.value}")
    deleted = replace(
        deleting, state=SegmentState.DELETE_FINISHED, event_id=_new_id(), occurred_at_ms=now_ms()
    )
    offset = world.table.publish(deleted)
    told.emit_many(
        [DeleteFinished(**about(deleted), generation=generation, cause=cause, metadata_offset=offset)]
    )


def _new_id() -> str:
    return str(uuid.uuid4())
