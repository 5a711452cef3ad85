"""A log's objects by one listing with versions, against what the metadata says of them.

Owns the comparison. Refuses to say it aloud: what differs is looked at again (`look`), and held against newer
metadata (`judge`), by whoever asked for it.

Invariant: each key of the listing and each object of the records is counted once. No more than
DIFFERENCES_MAX differences are kept; how many there were is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rules.identity import LogId, ObjectRef
from tiering.outcome import Problem
from tiering.scrub.damage import Damage, problem
from tiering.scrub.presence import absence
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.store.interface import ListedVersion
from tiering.store.keys import KeyLayout, ObjectKind

DIFFERENCES_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An object that the metadata says is there."""

    record: SegmentRecord
    kind: ObjectKind
    ref: ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One key of which bucket and metadata say different things. `wanted` is None: nobody knows it."""

    key: str
    problem: Problem
    wanted: Wanted | None = None
    segment_id: SegmentId | None = None  # as an unknown key names it; None: it is no key of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What a listing came to. The digest is over the live keys and versions, in order."""

    log: LogId
    object_count: int
    size_bytes: int
    digest: str
    wanted_count: int
    differences: tuple[Difference, ...]
    left_out: int  # differences beyond those that are kept


def wanted_of(records: Iterable[SegmentRecord]) -> dict[str, Wanted]:
    """Every object that finished records name, by its key."""
    return {
        ref.key: Wanted(record=record, kind=ObjectKind(kind), ref=ref)
        for record in records
        for kind, ref in record.objects.present()
    }


def take_stock(
    log: LogId,
    versions: Iterable[ListedVersion],
    wanted: Mapping[str, Wanted],
    layout: KeyLayout,
    is_known: Callable[[SegmentId], bool],
) -> Stock:
    """Hold a listing of the log's prefix, in order of keys, against its records.

    `is_known`: the metadata has some record of the attempt, whatever it says.
    """
    digest = hashlib.sha256()
    count = size_bytes = different = 0
    seen: set[str] = set()
    kept: list[Difference] = []
    for key, group in groupby(versions, key=lambda each: each.key):
        of_key = list(group)
        seen.add(key)
        live = _live(of_key)
        if live is not None:
            count, size_bytes = count + 1, size_bytes + live.size_bytes
            digest.update(f"{key}\n{live.version_id}\n".encode())
        found = difference(key, of_key, wanted.get(key), layout, is_known)
        if found is not None:
            different += 1
            kept += [found] if len(kept) < DIFFERENCES_MAX else []
    for key in wanted.keys() - seen:
        different += 1
        if len(kept) < DIFFERENCES_MAX:
            gone = absence(wanted[key].ref, ())
            assert gone is not None
            kept.append(Difference(key=key, problem=gone, wanted=wanted[key]))
    return Stock(
        log=log,
        object_count=count,
        size_bytes=size_bytes,
        digest=digest.hexdigest(),
        wanted_count=len(wanted),
        differences=tuple(sorted(kept, key=lambda each: each.key)),
        left_out=different - len(kept),
    )


def difference(
    key: str,
    of_key: Sequence[ListedVersion],
    wanted: Wanted | None,
    layout: KeyLayout,
    is_known: Callable[[SegmentId], bool],
) -> Difference | None:
    """The same for one key, given all its versions."""
    live = _live(of_key)
    if wanted is not None:
        wrong = absence(wanted.ref, of_key)
        if wrong is None and live is not None and live.size_bytes != wanted.ref.size_bytes:
            detail = f"{wanted.ref.size_bytes} bytes by the record, {live.size_bytes} by the listing"
            wrong = problem(Damage.SIZE, detail)
        return None if wrong is None else Difference(key=key, problem=wrong, wanted=wanted)
    if live is None:
        return None  # removed: its versions are the lifecycle's
    parsed = layout.parse(key)
    segment_id = SegmentId(parsed[0].segment_id) if parsed is not None else None
    if segment_id is not None and is_known(segment_id):
        return None  # an attempt that goes on, or a leftover: `seawall tier orphans`
    what = "no record knows its segment" if segment_id is not None else "its key is none of Seawall's"
    detail = f"{what}: version {live.version_id} of {live.size_bytes} bytes"
    return Difference(key=key, problem=problem(Damage.UNKNOWN, detail), segment_id=segment_id)


def _live(of_key: Sequence[ListedVersion]) -> ListedVersion | None:
    return next((each for each in of_key if each.is_latest and not each.is_delete_marker), None)
