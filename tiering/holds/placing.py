"""A hold in the log's own record: from the record's offset on, no agent trims or deletes in its range.

The record is the whole state of the log, written by whoever has seen the last one: a hold is the same record
once more, in the name of whoever has claimed the log, with one hold more or less. Where an agent wrote in
between (a claim, a gap, a moved start) ours is not followed, and is made anew from theirs.

Agents follow the topic as it grows, and look again after they recorded a deletion and before they touch an
object; so a hold binds as soon as it is read back, save what a trim's certificate named in that very moment.

Owns these records. Refuses to claim a log: of one without a record nothing of ours removes anything.

Invariant: from one record to the next nothing but `holds` and `released_holds` is another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from rules.identity import LogId
from tiering.holds.errors import HoldOvertaken
from tiering.segments.records import HeldVersions, Hold, LogRecord, ReleasedHold
from tiering.segments.view import LogView
from tiering.uploader.errors import NotFollowed
from tiering.uploader.log_records import Writer, again

ATTEMPTS_MAX = 10
RELEASED_KEPT_MAX = 64


class Tier(Protocol):
    """The metadata topic, read to its end when asked, and written to."""

    def read_on(self) -> object: ...

    def view(self, log: LogId) -> LogView | None: ...

    def publish_log(self, record: LogRecord) -> int:
        """The record's offset, once a table follows it; NotFollowed where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    tier: Tier
    now_ms: Callable[[], int]
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The record of the log that says so; `offset` is None where it said so already."""

    hold: Hold
    offset: int | None


def place(log: LogId, hold: Hold, means: Means) -> Written | None:
    """The hold, as it stands then: the one of that id that stands already, or this one. None: there is no
    record of the log, so that there is nothing of ours to bind."""

    def change(record: LogRecord) -> LogRecord | None:
        if _of(record, hold.hold_id) is not None:
            return None
        return replace(record, holds=(*record.holds, hold))

    return _written(log, hold.hold_id, change, means)


def note_versions(log: LogId, hold_id: str, versions: HeldVersions, means: Means) -> Written | None:
    """What came of the legal hold; None where the hold does not stand any more."""

    def change(record: LogRecord) -> LogRecord | None:
        standing = _of(record, hold_id)
        if standing is None or standing.versions == versions:
            return None
        noted = replace(standing, versions=versions)
        return replace(record, holds=tuple(noted if each is standing else each for each in record.holds))

    return _written(log, hold_id, change, means)


def release(log: LogId, released: ReleasedHold, means: Means) -> Written | None:
    """The hold that stood until now; None where none of that id stands."""
    before = standing(log, released.hold_id, means.tier)
    if before is None:
        return None

    def change(record: LogRecord) -> LogRecord | None:
        left = tuple(each for each in record.holds if each.hold_id != released.hold_id)
        if len(left) == len(record.holds):
            return None
        told = (*record.released_holds, released)[-RELEASED_KEPT_MAX:]
        return replace(record, holds=left, released_holds=told)

    _, offset = _change(log, released.hold_id, change, means)
    return Written(hold=before, offset=offset)


def standing(log: LogId, hold_id: str, tier: Tier) -> Hold | None:
    """The hold of that id, by the topic as it is now."""
    tier.read_on()
    view = tier.view(log)
    return None if view is None or view.record is None else _of(view.record, hold_id)


def was_released(record: LogRecord, hold_id: str) -> bool:
    return any(each.hold_id == hold_id for each in record.released_holds)


def _written(
    log: LogId, hold_id: str, change: Callable[[LogRecord], LogRecord | None], means: Means
) -> Written | None:
    record, offset = _change(log, hold_id, change, means)
    found = None if record is None else _of(record, hold_id)
    return None if found is None else Written(hold=found, offset=offset)


def _change(
    log: LogId, hold_id: str, change: Callable[[LogRecord], LogRecord | None], means: Means
) -> tuple[LogRecord | None, int | None]:
    """The log's record as it is then, and the offset of ours where one was needed."""
    for _ in range(ATTEMPTS_MAX):
        means.tier.read_on()
        view = means.tier.view(log)
        if view is None or view.record is None:
            return None, None
        changed = change(view.record)
        if changed is None:
            return view.record, None
        writer = Writer(
            broker_id=view.record.broker_id,
            leader_epoch=view.record.claim_epoch,
            event_id=means.new_id(),
            now_ms=means.now_ms(),
        )
        base = again(view, writer)
        record = replace(base, holds=changed.holds, released_holds=changed.released_holds)
        try:
            return record, means.tier.publish_log(record)
        except NotFollowed:
            continue  # somebody wrote in between
    raise HoldOvertaken(log=log, hold_id=hold_id, attempts=ATTEMPTS_MAX)


def _of(record: LogRecord, hold_id: str) -> Hold | None:
    return next((each for each in record.holds if each.hold_id == hold_id), None)
