"""The life of a copy: which steps are legal, all of them, and that no other is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.tiering.segments.strategies import objects_of, segment
from tiering.segments.lifecycle import Legal, Refused, first_record, later_record, next_record, tombstone
from tiering.segments.records import EpochStart, SegmentRecord, SegmentState

STARTED, FINISHED, DELETING, DELETED = SegmentState

WITHIN = {
    (STARTED, STARTED),
    (STARTED, FINISHED),
    (STARTED, DELETING),
    (FINISHED, FINISHED),
    (FINISHED, DELETING),
    (DELETING, DELETING),
    (DELETING, DELETED),
    (DELETED, DELETED),
}
TO_NEXT = {
    (FINISHED, FINISHED),
    (DELETING, STARTED),
    (DELETING, FINISHED),
    (DELETED, STARTED),
    (DELETED, FINISHED),
}


def _in(state: SegmentState, generation: int = 0) -> SegmentRecord:
    return segment(1, 100, 200, state=state, generation=generation)


@pytest.mark.parametrize(("before", "after"), list(product(SegmentState, SegmentState)))
def test_steps_within_a_generation(before: SegmentState, after: SegmentState) -> None:
    """DESIGN's four steps and each state onto itself; every other pair is refused."""
    verdict = next_record(_in(before), _in(after))

    assert isinstance(verdict, Legal) == ((before, after) in WITHIN)


@pytest.mark.parametrize(("before", "after"), list(product(SegmentState, SegmentState)))
def test_steps_into_the_next_generation(before: SegmentState, after: SegmentState) -> None:
    """A restore brings back what was deleted, or new versions of what is there; nothing else opens one."""
    verdict = next_record(_in(before), _in(after, generation=1))

    assert (verdict == Legal(opens_generation=True)) == ((before, after) in TO_NEXT)
    assert isinstance(verdict, Legal | Refused)


@pytest.mark.parametrize(("before", "after"), [(0, 2), (1, 0), (5, 3)])
def test_a_generation_follows_the_one_before(before: int, after: int) -> None:
    """None is left out, and none comes back."""
    verdict = next_record(_in(DELETED, before), _in(FINISHED, after))

    assert isinstance(verdict, Refused)
    assert verdict.reason == "generation"


@pytest.mark.parametrize(
    "changed",
    [
        {"end_offset": 300},
        {"leader_epochs": (EpochStart(0, 100), EpochStart(1, 150)), "leader_epoch": 1},
        {"record_count": 99},
        {"max_timestamp_ms": 5},
        {"topic": "payments"},
        {"key_stem": "elsewhere"},
        {"has_txn_index": True},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_one_id_has_one_content(changed: dict[str, object]) -> None:
    """META-02: what an id names is the same in every record of it, restored or not."""
    after = replace(_in(DELETED), **changed)  # type: ignore[arg-type]

    for generation in (0, 1):
        verdict = next_record(_in(DELETING), replace(after, generation=generation))
        assert isinstance(verdict, Refused)
        assert verdict.reason == "content_changed"


def test_a_finished_copy_keeps_its_objects_until_it_is_restored() -> None:
    """Other versions within a generation are refused; the next generation is where they belong."""
    before = _in(FINISHED)
    others = objects_of(before.key_stem, before.size_bytes, version="v2")

    for state in (FINISHED, DELETING):
        verdict = next_record(before, replace(_in(state), objects=others))
        assert isinstance(verdict, Refused)
        assert verdict.reason == "objects_changed"
    assert next_record(before, replace(_in(FINISHED, 1), objects=others)) == Legal(opens_generation=True)


def test_whoever_writes_the_next_record_may_be_another() -> None:
    """A new leader removes what an old one copied; a retry has its own time."""
    after = replace(_in(DELETING), broker_id=2, leader_epoch=9, event_id="other", occurred_at_ms=9)

    assert next_record(_in(FINISHED), after) == Legal()


def test_a_life_begins_with_a_start_or_a_restore() -> None:
    """Where the whole history was seen, no segment is there all at once."""
    assert first_record(_in(STARTED)) == Legal()
    assert first_record(_in(STARTED, 1)) == Legal(opens_generation=True)
    assert first_record(_in(FINISHED, 1)) == Legal(opens_generation=True)
    for state, generation in ((FINISHED, 0), (DELETING, 0), (DELETED, 0), (DELETING, 1), (DELETED, 1)):
        assert isinstance(first_record(_in(state, generation)), Refused)


@pytest.mark.parametrize("state", SegmentState)
def test_only_what_is_deleted_is_forgotten(state: SegmentState) -> None:
    """A tombstone for anything else is refused."""
    assert isinstance(tombstone(_in(state)), Legal) == (state is DELETED)


@pytest.mark.parametrize(("before", "after"), list(product(SegmentState, SegmentState)))
def test_steps_that_compaction_may_have_hidden(before: SegmentState, after: SegmentState) -> None:
    """Onwards by any number of steps, never back; into any state of a later generation, of no earlier one."""
    order = list(SegmentState)

    assert isinstance(later_record(_in(before), _in(after)), Legal) == (
        order.index(before) <= order.index(after)
    )
    assert later_record(_in(before), _in(after, 3)) == Legal(opens_generation=True)
    assert isinstance(later_record(_in(before, 3), _in(after)), Refused)


def test_no_number_of_steps_changes_a_content_or_a_generations_objects() -> None:
    """What is hidden between two records cannot have changed what an id names."""
    before = _in(FINISHED)
    others = objects_of(before.key_stem, before.size_bytes, version="v2")

    assert isinstance(later_record(before, replace(_in(DELETED), record_count=99)), Refused)
    assert isinstance(later_record(before, replace(_in(DELETED), objects=others)), Refused)
    assert isinstance(later_record(before, replace(_in(DELETED, 1), objects=others)), Legal)
