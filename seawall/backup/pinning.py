"""Pins by the settings: the log's record, the versions in the bucket, and the events of both.

Owns the joining. Refuses nothing that `backup.pins` does not.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from backup.pins import Pinned, keep, over, pin_id, unkeep
from backup.plan import Range
from rules.events import Event, HoldPlaced, HoldReleased
from rules.identity import LogId
from seawall.backup.opened import Opened, now_ms
from seawall.tier.following import Followed
from tiering.holds.placing import Means
from tiering.segments.records import Hold, LogRecord, ReleasedHold
from tiering.segments.view import LogView

NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tier:
    """The followed topic, as holds are placed in it."""

    followed: Followed

    def read_on(self) -> object:
        return self.followed.read_on()

    def view(self, log: LogId) -> LogView | None:
        return self.followed.view(log)

    def publish_log(self, record: LogRecord) -> int:
        return self.followed.metadata.publish_log(record)


def pin(
    world: Opened, log: LogId, wanted: Range | None, *, until_ms: int | None, reason: str, who: str
) -> tuple[Pinned, list[Event]]:
    """Pin a range, or all that can be had; and the event of it."""
    catalogue = world.catalogue(log)
    everything = [each.record for each in catalogue.copies if each.was_finished and each.sources()]
    whole = wanted or Range(
        min((each.base_offset for each in everything), default=0),
        max((each.data_end for each in everything), default=1),
    )
    hold = Hold(
        hold_id=pin_id(secrets.token_hex(4), until_ms),
        start_offset=whole.start,
        end_offset=whole.end,
        reason=reason,
        placed_by=who,
        placed_at_ms=now_ms(),
    )
    done = keep(catalogue, whole, hold, _means(world), world.store)
    event = HoldPlaced(
        event_id=str(uuid.uuid4()),
        occurred_at_ms=now_ms(),
        log=log,
        topic=catalogue.topic,
        leader_epoch=NO_EPOCH,
        hold_id=hold.hold_id,
        start_offset=hold.start_offset,
        end_offset=hold.end_offset,
        principal=who,
        reason=reason,
        finding_id=None,
        metadata_offset=done.offset or 0,
    )
    return done, [event]


def unpin(world: Opened, log: LogId, name: str, *, reason: str, who: str) -> tuple[Pinned, list[Event]]:
    """Release a pin; and the event of it."""
    catalogue = world.catalogue(log)
    released = ReleasedHold(hold_id=name, released_by=who, reason=reason, released_at_ms=now_ms())
    done = unkeep(catalogue, released, _means(world), world.store)
    if done.offset is None:
        return done, []
    event = HoldReleased(
        event_id=str(uuid.uuid4()),
        occurred_at_ms=now_ms(),
        log=log,
        topic=catalogue.topic,
        leader_epoch=NO_EPOCH,
        hold_id=name,
        principal=who,
        reason=reason,
        metadata_offset=done.offset,
    )
    return done, [event]


def ended(world: Opened, logs: tuple[LogId, ...]) -> Iterator[tuple[LogId, Hold]]:
    """Pins whose end has passed."""
    for log in logs:
        for hold in over(world.catalogue(log), now_ms()):
            yield log, hold


def _means(world: Opened) -> Means:
    return Means(tier=_Tier(followed=world.table), now_ms=now_ms, new_id=lambda: str(uuid.uuid4()))
