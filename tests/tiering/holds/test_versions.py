"""The legal hold on versions: those first whose time runs, and no word that all are held where not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from tests.tiering.segments.strategies import segment
from tiering.holds.versions import FAILURES_MAX, set_holds, to_release
from tiering.segments.records import HeldVersions, Hold, SegmentRecord, SegmentState
from tiering.store.errors import Denied, Missing, StoreError, Transient, Unsupported


def refusal(kind: type[StoreError], key: str) -> StoreError:
    return kind(bucket="b", key=key, operation="legal hold", why="so")


@dataclass
class Locks:
    """A bucket; `refuse` by the end of a key."""

    refuse: Mapping[str, type[StoreError]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    held: dict[str, bool] = field(default_factory=dict)

    def set_hold(self, key: str, version_id: str, *, held: bool) -> None:
        self.asked.append(key)
        for end, kind in self.refuse.items():
            if key.endswith(end):
                raise refusal(kind, key)
        self.held[key] = held


RECORDS = [segment(number, number * 10, number * 10 + 10) for number in range(4)]


def hold(
    locks: Locks, records: list[SegmentRecord], end: int | None = None, *, held: bool = True
) -> HeldVersions:
    return set_holds(records, locks, start_offset=0, end_offset=end, held=held, now_ms=lambda: 9)


def test_only_the_range_and_what_is_deleted_first() -> None:
    """The lifecycle expires what is deleted; what lives can wait its turn."""
    locks = Locks()
    deleted = replace(RECORDS[2], state=SegmentState.DELETE_FINISHED)

    found = hold(locks, [RECORDS[0], RECORDS[1], deleted, RECORDS[3]], end=30)

    assert (found.held, found.missing, found.trouble, found.at_ms) == (9, 0, None, 9)
    stems = [key.rpartition(".")[0] for key in locks.asked]
    assert list(dict.fromkeys(stems)) == [each.key_stem for each in (deleted, RECORDS[0], RECORDS[1])]


def test_what_is_gone_is_counted() -> None:
    """A version that is not there any more cannot be held, and is no trouble."""
    found = hold(Locks(refuse={".aux": Missing}), RECORDS[:1])

    assert (found.held, found.missing, found.trouble) == (2, 1, None)


@pytest.mark.parametrize("kind", [Unsupported, Denied])
def test_a_bucket_without_locks_is_asked_once(kind: type[StoreError]) -> None:
    """It would refuse each of them alike."""
    locks = Locks(refuse={"": kind})

    found = hold(locks, RECORDS)

    assert (found.held, len(locks.asked)) == (0, 1)
    assert found.trouble is not None


def test_trouble_with_one_leaves_the_others_their_turn() -> None:
    """Until it is several in a row; and then it is said that not all are held."""
    one = hold(Locks(refuse={".json": Transient}), RECORDS)
    assert (one.held, one.trouble is None) == (8, False)

    locks = Locks(refuse={"": Transient})
    assert hold(locks, RECORDS).trouble is not None
    assert len(locks.asked) == FAILURES_MAX


def test_what_another_hold_stands_on_is_not_let_go() -> None:
    """Of the released range, only the segments that no other hold has asked for."""
    asked = HeldVersions(start_offset=0, end_offset=30, held=9, missing=0, at_ms=1)
    other = Hold(hold_id="o", start_offset=0, end_offset=None, reason="", placed_by="", placed_at_ms=1)
    with_versions = replace(other, versions=replace(asked, start_offset=15, end_offset=20))

    assert to_release(RECORDS, asked, [other]) == RECORDS[:3]
    assert to_release(RECORDS, asked, [other, with_versions]) == [RECORDS[0], RECORDS[2]]
