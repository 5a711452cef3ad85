"""Pins and the window: what of the removed copies leaves when, and what stays because somebody said so.

A pin is a hold whose id begins with `pin-`: it binds our agents by the log's own record, and each version by
S3's legal hold, which stands above every lifecycle rule. It never binds Kafka. A pin may name its end; past
it, `expire --confirm` releases it, and nothing else does by itself.

A version leaves by the bucket's lifecycle alone, once it has been noncurrent for the window: no role of ours
deletes one. What is told here is when that may be, by the marker that lies on top of it.

Owns pins and this arithmetic. Refuses to pin what has no version left, and to release a hold that is no pin.

Invariant: a version that another hold has asked for stays held when a pin is released.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from backup.catalogue.choose import choose
from backup.catalogue.copies import Copy, LogCatalogue
from backup.errors import BackupError, NothingToRestore
from backup.plan.values import Range
from rules.identity import LogId
from tiering.holds import placing
from tiering.holds.placing import Means
from tiering.holds.versions import Locks, set_holds, to_release
from tiering.segments.records import HeldVersions, Hold, ReleasedHold, SegmentRecord

_PIN = re.compile(r"pin-[0-9a-f]{8}(?:-until-(\d{1,15}))?")


@dataclass(kw_only=True, eq=False)
class NoSuchPin(BackupError):
    """log {log.topic_id}:{log.partition} has no pin {pin_id}: `seawall backup show` has those that stand

    A hold that a finding placed is released by `seawall hold release`.
    """

    log: LogId
    pin_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A pin and what came of it in the bucket. `offset` is the place of the log's record that says so."""

    hold: Hold
    versions: HeldVersions
    offset: int | None


def pin_id(token: str, until_ms: int | None) -> str:
    """`token`: eight hexadecimal digits of chance."""
    return f"pin-{token}" + ("" if until_ms is None else f"-until-{until_ms}")


def is_pin(hold: Hold) -> bool:
    return _PIN.fullmatch(hold.hold_id) is not None


def ends_at_ms(hold: Hold) -> int | None:
    """When a pin ends; None: when it is released."""
    found = _PIN.fullmatch(hold.hold_id)
    return None if found is None or found[1] is None else int(found[1])


def keep(catalogue: LogCatalogue, wanted: Range, hold: Hold, means: Means, locks: Locks) -> Pinned:
    """Pin a range: on record first, since that binds at once, and then version by version."""
    log = catalogue.log
    records = _records(catalogue, wanted)
    if not records:
        raise NothingToRestore(log=log, why=f"of [{wanted.start}, {wanted.end}) no version is left to keep")
    written = placing.place(log, hold, means)
    if written is None:
        raise NothingToRestore(log=log, why="the topic of metadata has no record of the log")
    versions = set_holds(
        records, locks, start_offset=wanted.start, end_offset=wanted.end, held=True, now_ms=means.now_ms
    )
    placing.note_versions(log, hold.hold_id, versions, means)
    return Pinned(hold=written.hold, versions=versions, offset=written.offset)


def unkeep(catalogue: LogCatalogue, released: ReleasedHold, means: Means, locks: Locks) -> Pinned:
    """Release a pin, and the legal hold of versions that no other hold has asked for."""
    log = catalogue.log
    before = placing.standing(log, released.hold_id, means.tier)
    if before is None or not is_pin(before):
        raise NoSuchPin(log=log, pin_id=released.hold_id)
    asked = before.versions
    others = [each for each in _holds(catalogue) if each.hold_id != released.hold_id]
    whole = Range(before.start_offset, before.end_offset or before.start_offset)
    records = _records(catalogue, whole)
    versions = HeldVersions(
        start_offset=whole.start, end_offset=whole.end, held=0, missing=0, at_ms=means.now_ms()
    )
    if asked is not None:
        versions = set_holds(
            to_release(records, asked, others),
            locks,
            start_offset=asked.start_offset,
            end_offset=asked.end_offset,
            held=False,
            now_ms=means.now_ms,
        )
    written = placing.release(log, released, means)
    return Pinned(hold=before, versions=versions, offset=None if written is None else written.offset)


def over(catalogue: LogCatalogue, now_ms: int) -> tuple[Hold, ...]:
    """Pins whose end has passed."""
    return tuple(
        each for each in _holds(catalogue) if (end := ends_at_ms(each)) is not None and end <= now_ms
    )


class Leaves(str, Enum):
    """What will become of a removed copy. Stable, for programs."""

    LATER = "later"  # inside of the window
    ANY_DAY = "any_day"  # the window is over: the lifecycle may take it
    HELD = "held"  # a hold or a pin is above it
    GONE = "gone"  # no version is left


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A copy that is not live. `at_ms`: not before then; None where it is gone, or held."""

    start: int
    end: int
    leaves: Leaves
    at_ms: int | None
    size_bytes: int
    detail: str


def leaving(catalogue: LogCatalogue, *, window_ms: int, now_ms: int) -> Iterator[Leaving]:
    """Each copy that is under markers, in the order of offsets."""
    for copy in catalogue.copies:
        if not copy.was_finished or copy.is_live:
            continue
        at_ms = _noncurrent_since_ms(copy)
        if copy.sources() is None:
            yield _leaving(copy, Leaves.GONE, None, "no version is left")
        elif held := _held_by(catalogue, copy.record):
            yield _leaving(copy, Leaves.HELD, None, f"{held.hold_id}: {held.reason}")
        elif at_ms is not None and at_ms + window_ms <= now_ms:
            yield _leaving(copy, Leaves.ANY_DAY, at_ms + window_ms, "the window is over")
        else:
            yield _leaving(copy, Leaves.LATER, (at_ms or now_ms) + window_ms, "inside of the window")


def _leaving(copy: Copy, leaves: Leaves, at_ms: int | None, detail: str) -> Leaving:
    record = copy.record
    size_bytes = 0 if leaves is Leaves.GONE else sum(ref.size_bytes for _, ref in record.objects.present())
    return Leaving(
        start=record.base_offset,
        end=record.data_end,
        leaves=leaves,
        at_ms=at_ms,
        size_bytes=size_bytes,
        detail=detail,
    )


def _noncurrent_since_ms(copy: Copy) -> int | None:
    """Since when the first of its objects lies under something else."""
    tops = (copy.of(kind).top for kind, _ in copy.record.objects.present())
    return min((top.modified_ms for top in tops if top is not None and top.is_delete_marker), default=None)


def _held_by(catalogue: LogCatalogue, record: SegmentRecord) -> Hold | None:
    return next(
        (
            hold
            for hold in _holds(catalogue)
            if hold.start_offset < record.end_offset
            and (hold.end_offset is None or hold.end_offset > record.base_offset)
        ),
        None,
    )


def _holds(catalogue: LogCatalogue) -> Sequence[Hold]:
    return catalogue.record.holds if catalogue.record is not None else ()


def _records(catalogue: LogCatalogue, wanted: Range) -> list[SegmentRecord]:
    """Of each segment with an offset in the range, what it can be had back from."""
    return [piece.record for piece in choose(catalogue, wanted).pieces]
