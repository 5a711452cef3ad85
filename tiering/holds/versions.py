"""The legal hold on object versions: no lifecycle removes a version that is held, nor does anybody's delete.

The bucket's lifecycle knows nothing of our holds, and expires what was deleted once the backup window is
over. So each version that the metadata names is held in the store itself: those first that are deleted
already, as their time runs.

Owns the walk. Refuses to go on where the store has no object lock: it would refuse each one alike.

Invariant: `trouble` is None only if every version that the metadata named in the range was held, or is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from rules.identity import ObjectRef
from tiering.errors import StatedError
from tiering.segments.records import HeldVersions, Hold, SegmentRecord, SegmentState
from tiering.store.errors import Denied, Missing, NotVersioned, StoreError, Unsupported

FAILURES_MAX = 5  # in a row, after which the rest is left to the next time
_DELETED = frozenset({SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED})


class Locks(Protocol):
    """The bucket."""

    def set_hold(self, key: str, version_id: str, *, held: bool) -> None: ...


def touches(record: SegmentRecord, start_offset: int, end_offset: int | None) -> bool:
    return record.end_offset > start_offset and (end_offset is None or record.base_offset < end_offset)


def set_holds(
    records: Iterable[SegmentRecord],
    locks: Locks,
    *,
    start_offset: int,
    end_offset: int | None,
    held: bool,
    now_ms: Callable[[], int],
) -> HeldVersions:
    """Place, or with `held` False release, the legal hold of every version of segments in the range."""
    found = HeldVersions(start_offset=start_offset, end_offset=end_offset, held=0, missing=0, at_ms=0)
    failures = 0
    for ref, version_id in _versions(records, start_offset, end_offset):
        try:
            locks.set_hold(ref.key, version_id, held=held)
        except Missing:
            found = replace(found, missing=found.missing + 1)
        except (Unsupported, Denied, NotVersioned) as refused:
            found = replace(found, trouble=_line(refused))
            break
        except StoreError as failed:
            failures += 1
            found = replace(found, trouble=_line(failed))
            if failures == FAILURES_MAX:
                break
            continue
        else:
            found = replace(found, held=found.held + 1)
        failures = 0
    return replace(found, at_ms=now_ms())


def to_release(
    records: Iterable[SegmentRecord], released: HeldVersions, others: Iterable[Hold]
) -> list[SegmentRecord]:
    """Those of the range on which no other hold has asked for a legal hold."""
    asked = [each.versions for each in others if each.versions is not None]
    return [
        record
        for record in records
        if touches(record, released.start_offset, released.end_offset)
        and not any(touches(record, each.start_offset, each.end_offset) for each in asked)
    ]


def _versions(
    records: Iterable[SegmentRecord], start_offset: int, end_offset: int | None
) -> Iterator[tuple[ObjectRef, str]]:
    wanted = [each for each in records if touches(each, start_offset, end_offset)]
    for record in sorted(wanted, key=lambda each: (each.state not in _DELETED, each.base_offset)):
        for _, ref in record.objects.present():
            if ref.version_id is not None:
                yield ref, ref.version_id


def _line(error: StatedError) -> str:
    return str(error).splitlines()[0]
