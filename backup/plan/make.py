"""Makes a plan from a catalogue: what was asked for, led on to where the live log begins.

Only a prefix can be read: between what is put back and the live log nothing may be missing. So a range that
ends below the live log's start is led on to it. What lies in the live range already is part of a plan only
where a copy there has lost its objects.

Owns that, the fingerprints, and the estimate. Refuses a plan of nothing.

Invariant: equal catalogues and equal words make equal plans, `made_at_ms` apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from backup.catalogue.choose import Chosen, choose, extent
from backup.catalogue.copies import LogCatalogue, Told
from backup.errors import BucketUnfit, CannotRestore, NothingToRestore
from backup.plan.codec import plan_of
from backup.plan.values import Asked, AskedBy, Fingerprints, Origin, Piece, Plan, PlanBody, Range
from rules.policy.keys import KEYS
from rules.policy.topic import TopicPolicy
from rules.words import RestoreTarget
from tiering.segments.json_fields import canonical
from tiering.segments.records import Json, LogRecord

DAY_MS = 86_400_000
KEEP_DAYS = 7  # where no policy says how long a window is
PAGE_ENTRIES = 1000
REQUEST_MS = 60  # a copy of one object inside the store, as S3 takes for some megabytes
AT_ONCE = 16
PUBLISH_MS = 5  # one record into the topic of metadata, read back


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants back. `range` None: whatever can be had."""

    by: AskedBy
    text: str
    range: Range | None = None
    at_ms: int | None = None  # as the log was then
    target: RestoreTarget = RestoreTarget.TIER
    passes_gaps: bool = False
    keep_for_ms: int | None = None
    details: Mapping[str, Json] = field(default_factory=dict)


def make_plan(
    catalogue: LogCatalogue, wish: Wish, policy: TopicPolicy | None, *, now_ms: int, bucket: str
) -> Plan:
    """Raises CannotRestore, with the reason, where there is nothing to carry out."""
    _fit(catalogue, wish, bucket)
    wanted = _wanted(catalogue, wish)
    chosen = choose(catalogue, wanted)
    if wish.target is RestoreTarget.TIER:
        _check_something_to_do(catalogue, wanted, chosen)
    if not chosen.pieces:
        why = chosen.lost[0]
        raise NothingToRestore(log=catalogue.log, why=f"{why.because.value}: {why.detail}")
    to_copy = sum(len(to_be_copied(piece)) for piece in chosen.pieces)
    listed = sum(len(stored.versions) for copy in catalogue.copies for stored in copy.stored.values())
    pages = 1 + listed // PAGE_ENTRIES
    body = PlanBody(
        log=catalogue.log,
        topic=catalogue.topic,
        target=wish.target,
        made_at_ms=now_ms,
        asked=Asked(by=wish.by, text=wish.text, range=wanted),
        range=Range(chosen.pieces[0].start, chosen.pieces[-1].end),
        joins_at=catalogue.start,
        pieces=chosen.pieces,
        lost=chosen.lost,
        passes_gaps=wish.passes_gaps,
        keep_for_ms=_keep_for_ms(wish, policy),
        requests=to_copy + pages,
        estimated_ms=to_copy * REQUEST_MS // AT_ONCE + pages * REQUEST_MS + len(chosen.pieces) * PUBLISH_MS,
        fingerprints=Fingerprints(
            bucket=bucket_print(catalogue.keeps_versions, chosen.pieces),
            log=log_print(catalogue.record),
            policy=policy_print(policy),
        ),
        details=wish.details,
    )
    return plan_of(body)


def to_be_copied(piece: Piece) -> tuple[str, ...]:
    """The kinds of a piece's objects that do not lie on top of their keys as they are recorded."""
    tops = dict(piece.tops)
    present = piece.record.objects.present()
    return tuple(kind for kind, ref in present if tops.get(kind) != ref.version_id)


def bucket_print(keeps_versions: bool, pieces: tuple[Piece, ...]) -> str:
    """Of what lies on top of each key that the plan touches."""
    tops = [[f"{piece.record.key_stem}.{kind}", top] for piece in pieces for kind, top in piece.tops]
    return _print({"keeps_versions": keeps_versions, "tops": sorted(tops, key=str)})


def log_print(record: LogRecord | None) -> str:
    """Of what a restore changes in the log's record, or would contradict."""
    if record is None:
        return _print({})
    return _print(
        {
            "log_start": record.log_start,
            "first_tiered_offset": record.first_tiered_offset,
            "generation": record.generation,
            "gaps": [[gap.start_offset, gap.end_offset] for gap in record.gaps],
            "topic_deleted_at_ms": record.topic_deleted_at_ms,
        }
    )


def policy_print(policy: TopicPolicy | None) -> str:
    """Of all that is declared for the topic, as people write it."""
    if policy is None:
        return _print({})
    return _print({key: policy.spoken(key) if getattr(policy, key) is not None else None for key in KEYS})


def _print(members: Mapping[str, Json]) -> str:
    return hashlib.sha256(canonical(members)).hexdigest()


def _fit(catalogue: LogCatalogue, wish: Wish, bucket: str) -> None:
    log = catalogue.log
    if not catalogue.keeps_versions:
        why = "it keeps no versions, so that what was deleted is gone, and what is written could be too"
        raise BucketUnfit(log=log, bucket=bucket, why=why)
    if wish.target is not RestoreTarget.TIER:
        return
    if catalogue.doubts:
        raise CannotRestore(log=log, why=catalogue.doubts[0])
    if catalogue.record is not None and catalogue.record.topic_deleted_at_ms is not None:
        why = "its topic was deleted, and nobody leads it: restore it to target topic"
        raise CannotRestore(log=log, why=why)


def _wanted(catalogue: LogCatalogue, wish: Wish) -> Range:
    """The range, led on to the live log where it begins below it."""
    known = catalogue if wish.at_ms is None else catalogue.at(wish.at_ms)
    whole = extent(known)
    if wish.range is not None:
        found = wish.range
    elif whole is None:
        why = "no version of any copy is left" if wish.at_ms is None else "no copy was live then"
        raise NothingToRestore(log=catalogue.log, why=why)
    else:
        found = Range(whole.start, max(catalogue.start, _last_damaged(known)))
    if wish.target is RestoreTarget.TIER and found.start < catalogue.start:
        found = Range(found.start, max(found.end, catalogue.start))
    if wish.target is RestoreTarget.TIER:
        found = Range(found.start, min(found.end, _reach(catalogue)))  # beyond is the broker's, and live
    if found.start >= found.end:
        why = f"[{found.start}, {found.end}) is live, or empty; the tier begins at {catalogue.start}"
        raise NothingToRestore(log=catalogue.log, why=why)
    return found


def _last_damaged(catalogue: LogCatalogue) -> int:
    """Up to where copies that readers count on have lost their objects; the start if nowhere."""
    ends = (copy.record.data_end for copy in catalogue.copies if copy.counts and not copy.is_live)
    return max(catalogue.start, *ends, 0)


def _reach(catalogue: LogCatalogue) -> int:
    """The furthest that the tier ever answered for, as far as it can be had."""
    ends = (
        copy.record.data_end for copy in catalogue.copies if copy.told is Told.FOLLOWED and copy.was_finished
    )
    return max(catalogue.frontier, *ends, 0)


def _check_something_to_do(catalogue: LogCatalogue, wanted: Range, chosen: Chosen) -> None:
    moves_start = bool(chosen.pieces) and chosen.pieces[0].start < catalogue.start
    copies = any(piece.origin is not Origin.TIER for piece in chosen.pieces)
    if chosen.pieces and not moves_start and not copies:
        raise NothingToRestore(
            log=catalogue.log, why=f"[{wanted.start}, {wanted.end}) is in the tier, and live"
        )


def _keep_for_ms(wish: Wish, policy: TopicPolicy | None) -> int:
    if wish.keep_for_ms is not None:
        return wish.keep_for_ms
    window_days = policy.backup_window_days if policy is not None else 0
    return (window_days or KEEP_DAYS) * DAY_MS
