"""Where a log should start: by time, by size, over overlaps and gaps, and what keeps it from going on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tiering.retention.world import DAY_MS, HOUR_MS, NOW_MS, POLICY, World
from tiering.retention.expiry import Advance, FreedBy
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import next_act
from tiering.retention.remote_policy import BlastLimit, RemotePolicy
from tiering.retention.unique_bytes import Extent
from tiering.segments.records import SegmentState

BY_SIZE = replace(POLICY, total_ms=None, total_bytes=15_000)
STARTED = SegmentState.COPY_STARTED


def world(policy: RemotePolicy = POLICY) -> World:
    made = World(policy=policy)
    made.claim()
    return made


def act(made: World) -> Advance | Keep:
    found = next_act(made.look(made.log))
    assert isinstance(found, Advance | Keep)
    return found


def start(made: World) -> int:
    """Where the log would start after the next act."""
    found = act(made)
    return found.new_start if isinstance(found, Advance) else made.log_start


def why(made: World) -> Reason:
    """What keeps the start from going further."""
    found = act(made)
    return found.then.reason if isinstance(found, Advance) else found.reason


def test_what_is_older_than_the_retention_is_freed() -> None:
    """By time: the start moves to the first copy with a record young enough, and says what that frees."""
    made = world()
    old = [made.copy(0, 100, age_ms=9 * DAY_MS), made.copy(100, 200, age_ms=8 * DAY_MS)]
    made.copy(200, 300, age_ms=6 * DAY_MS)

    found = act(made)

    assert isinstance(found, Advance)
    assert (found.old_start, found.new_start) == (0, 200)
    assert [(freed.segment_id, freed.by) for freed in found.freed] == [
        (each.segment_id, FreedBy.TIME) for each in old
    ]
    assert found.then.reason is Reason.NOT_EXPIRED


def test_a_retention_to_the_millisecond() -> None:
    """A record exactly as old as the retention is kept; a millisecond more and it is not."""
    made = world()
    made.copy(0, 100, age_ms=7 * DAY_MS)
    assert start(made) == 0

    made.now_ms += 1

    assert start(made) == 100


def test_one_young_record_keeps_all_behind_it() -> None:
    """Timestamps out of order: the running maximum from the head decides, as deletes are a prefix."""
    made = world()
    made.copy(0, 100, age_ms=30 * DAY_MS)
    made.copy(100, 200, age_ms=1 * DAY_MS)
    made.copy(200, 300, age_ms=30 * DAY_MS)

    assert start(made) == 100
    assert why(made) is Reason.NOT_EXPIRED


@pytest.mark.parametrize(
    ("timestamp_ms", "reason"),
    [
        (-1, Reason.TIMESTAMP_UNKNOWN),
        (NOW_MS + 365 * DAY_MS, Reason.TIMESTAMP_IN_FUTURE),
        (NOW_MS + HOUR_MS // 2, Reason.NOT_EXPIRED),
    ],
)
def test_a_timestamp_that_says_nothing_keeps_and_is_reported(timestamp_ms: int, reason: Reason) -> None:
    """None at all, or one far ahead of the clock: kept, all behind it too, and the reason says which."""
    made = world()
    made.copy(0, 100)
    stuck = made.copy(100, 200, max_timestamp_ms=timestamp_ms)
    made.copy(200, 300)

    found = act(made)

    assert isinstance(found, Advance)
    assert found.new_start == 100
    assert found.then.reason is reason
    assert stuck.segment_id in found.then.detail


def test_size_keeps_what_is_declared() -> None:
    """By size: copies of 10,000 bytes; at least 15,000 stay, so that two of them do."""
    made = world(BY_SIZE)
    for base in (0, 100, 200, 300):
        made.copy(base, base + 100, age_ms=0)

    found = act(made)

    assert isinstance(found, Advance)
    assert found.new_start == 200
    assert {freed.by for freed in found.freed} == {FreedBy.SIZE}


def test_time_or_size_whichever_comes_first() -> None:
    """What is over the size goes although it is young; what is old goes although there is room."""
    made = world(replace(POLICY, total_bytes=25_000))
    made.copy(0, 100, age_ms=0)
    made.copy(100, 200, age_ms=30 * DAY_MS)
    made.copy(200, 300, age_ms=0)
    made.copy(300, 400, age_ms=0)

    found = act(made)

    assert isinstance(found, Advance)
    assert [freed.by for freed in found.freed] == [FreedBy.SIZE, FreedBy.TIME]


def test_replay_of_kafka_20732_local_bytes_are_not_counted_again() -> None:
    """A fresh leader that has everything on disk as well: 10.5 MiB are below 15, and nothing goes."""
    made = world(replace(BY_SIZE, total_bytes=15 * 2**20))
    for base in range(0, 10_000, 1000):
        made.copy(base, base + 1000, size_bytes=2**20)
    tier = tuple(Extent(base, base + 1000, 2**20) for base in range(0, 10_000, 1000))
    made.local = (*tier, Extent(10_000, 10_500, 2**19))

    assert act(made) == Keep(reason=Reason.NOT_EXPIRED, detail="11010048 bytes from 0 on, of 15728640")


def test_local_bytes_above_the_tier_count() -> None:
    """What is only on disk is part of the log: it makes room in the tier, once."""
    made = world(BY_SIZE)
    made.copy(0, 100)
    made.copy(100, 200)
    made.local = (Extent(100, 200, 10_000), Extent(200, 400, 20_000))

    assert start(made) == 200


def test_replay_of_kafka_17062_failed_copies_are_not_counted() -> None:
    """Copies that were begun and never finished take no room in the log."""
    made = world(BY_SIZE)
    made.copy(0, 100)
    for _ in range(20):
        made.copy(100, 200, state=STARTED)

    assert start(made) == 0


def test_replay_of_kafka_15479_a_copy_of_many_epochs_counts_once() -> None:
    """One segment over three leader epochs is one segment."""
    made = World(policy=replace(BY_SIZE, total_bytes=5_000))
    made.claim(epochs=((0, 0), (1, 30), (2, 60)))
    made.copy(0, 100, epochs=((0, 0), (1, 30), (2, 60)), size_bytes=4_000)
    made.copy(100, 200, epochs=((2, 100),), size_bytes=4_000)

    assert start(made) == 0
    assert "8000 bytes" in act(made).detail  # type: ignore[union-attr]


def test_replay_of_kafka_16890_overlaps_that_expire_together_leave_no_hole() -> None:
    """The start is the furthest end of what expired, not the end of the last one looked at."""
    made = world()
    made.copy(0, 1000)
    made.copy(1000, 3000)
    made.copy(1000, 2000)
    made.copy(3000, 4000, age_ms=0)

    assert start(made) == 3000


def test_duplicates_count_once() -> None:
    """Three copies of one range, after three leader changes, are one range of bytes."""
    made = world(replace(BY_SIZE, total_bytes=10_000))
    for _ in range(3):
        made.copy(0, 100)
        made.copy(100, 200)

    assert start(made) == 100


def test_a_copy_that_reaches_past_the_start_stays() -> None:
    """An expired copy frees its offsets; the one that overlaps it and is young is not below the start."""
    made = world()
    first = made.copy(0, 100)
    made.copy(50, 150, age_ms=0)

    found = act(made)

    assert isinstance(found, Advance)
    assert found.new_start == 100
    assert [freed.segment_id for freed in found.freed] == [first.segment_id]


def test_never_past_the_frontier() -> None:
    """Beyond a hole in coverage nothing is freed, however old (T5)."""
    made = world()
    made.copy(0, 100)
    made.copy(200, 300)

    assert start(made) == 100
    assert why(made) is Reason.AT_FRONTIER


def test_the_whole_tier_may_expire() -> None:
    """The start goes to the frontier, and from there on the log is the broker's."""
    made = world()
    made.copy(0, 100)

    assert start(made) == 100
    assert why(made) is Reason.AT_FRONTIER


def test_a_recorded_gap_is_passed_behind_what_expired() -> None:
    """A start at a gap would be an offset that nobody can read (START-06)."""
    made = world()
    made.copy(0, 100)
    made.gaps((100, 200))
    made.copy(200, 300, age_ms=0)

    assert start(made) == 200


def test_a_gap_alone_moves_nothing() -> None:
    """Nothing has expired: there is nothing to record."""
    made = world()
    made.gaps((0, 100))
    made.copy(100, 200, age_ms=0)

    assert start(made) == 0


def test_bytes_found_inside_a_gap_are_not_passed_with_it() -> None:
    """A copy that begins inside a recorded gap has bytes after all; they go when they are old."""
    made = world()
    made.copy(0, 100)
    made.gaps((100, 200))
    made.copy(150, 300, age_ms=0)

    assert start(made) == 150


def test_copies_of_another_lineage_free_nothing_and_count_nothing() -> None:
    """After an unclean election: what the new leader does not have is no coverage, by time or by size."""
    made = World(policy=POLICY)
    made.claim(epochs=((0, 0), (4, 100)))
    made.copy(0, 100, epochs=((0, 0),))
    made.copy(100, 200, epochs=((3, 100),))

    assert start(made) == 100

    made.policy = replace(BY_SIZE, total_bytes=1)
    assert start(made) == 0


def test_a_copy_that_straddles_the_fork_counts_for_no_bytes() -> None:
    """Part of its bytes is of another lineage, and nobody knows how many."""
    made = World(policy=replace(BY_SIZE, total_bytes=1))
    made.claim(epochs=((0, 0), (4, 150)))
    made.copy(0, 100)
    made.copy(100, 200, epochs=((0, 100),))

    assert start(made) == 0


def test_a_lost_lineage_is_freed_with_the_offsets_it_lies_at() -> None:
    """Off-lineage copies are kept until the start has passed them; then nobody will ever ask for them."""
    made = World(policy=POLICY)
    made.claim(epochs=((0, 0), (4, 100)))
    made.copy(0, 100)
    lost = made.copy(100, 150, epochs=((3, 100),), age_ms=0)
    made.copy(100, 200, epochs=((4, 100),))

    found = act(made)

    assert isinstance(found, Advance)
    assert found.new_start == 200
    assert (lost.segment_id, FreedBy.START) in {(freed.segment_id, freed.by) for freed in found.freed}


@pytest.mark.parametrize(
    ("hold", "expected"),
    [((150, 160), 100), ((0, 1), 0), ((200, None), 200), ((100, 101), 100), ((301, None), 300)],
)
def test_never_into_a_hold(hold: tuple[int, int | None], expected: int) -> None:
    """The start stops at the last boundary at or before a hold (T5)."""
    made = world()
    for base in (0, 100, 200):
        made.copy(base, base + 100)
    made.hold(*hold)

    assert start(made) == expected
    assert why(made) is (Reason.AT_FRONTIER if expected == 300 else Reason.HELD)


def test_a_hold_behind_the_start_keeps_what_follows() -> None:
    """What is removed is a prefix: where the prefix is held, nothing more is freed behind it."""
    made = World()
    made.claim(log_start=100)
    made.copy(100, 200)
    made.hold(0, 50)

    assert (start(made), why(made)) == (100, Reason.HELD)


def test_the_blast_limit_cuts_the_advance_short() -> None:
    """No more segments, and no more bytes, than one run may free; the rest comes with the next."""
    made = world(replace(POLICY, grace_ms=HOUR_MS, blast_per_hour=BlastLimit(2, 10**9)))
    for base in (0, 100, 200):
        made.copy(base, base + 100)
    assert (start(made), why(made)) == (200, Reason.BLAST_LIMIT)

    made.policy = replace(made.policy, blast_per_hour=BlastLimit(100, 19_999))
    assert (start(made), why(made)) == (100, Reason.BLAST_LIMIT)

    made.policy = replace(made.policy, blast_per_hour=BlastLimit(100, 9_999))
    assert (start(made), why(made)) == (0, Reason.BLAST_LIMIT)


def test_one_advance_may_free_what_a_grace_may_remove() -> None:
    """The start moves once in a grace: a day's move is a day's worth of the hourly limit."""
    assert POLICY.grace_ms == DAY_MS
    assert POLICY.blast_per_advance == BlastLimit(24 * 1000, 24 * 2**40)


def test_no_declared_retention_keeps_everything() -> None:
    """Unlimited, or undeclared: nothing ever expires."""
    made = world(replace(POLICY, total_ms=None, total_bytes=None))
    made.copy(0, 100)

    assert why(made) is Reason.UNLIMITED
