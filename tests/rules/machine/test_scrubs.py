"""AUD-05, of scrubs: the tier's copies are read again as often as the policy declares, where it does."""

from __future__ import annotations

from rules.events import CopyFinished, CopyStarted, ScrubDepth, ScrubOutcome
from rules.machine import decode, encode
from rules.machine.calm import calm_of
from rules.machine.verdict import Finding, Status
from tests.rules.machine import acts
from tests.rules.machine.histories import DAY_MS, HOUR_MS, MIB, T0_MS, TERMS, History, fixture, segment

KEPT = {
    "total_retention_ms": '"30d"',
    "declare_grace_ms": '"1h"',
    "local_retention_ms": '"1h"',
    "tiering": "true",
}
DAILY = KEPT | {"scrub_interval_ms": '"1d"'}  # declared a day before T0, when the copies were made


def scrub(
    h: History,
    *indexes: int,
    depth: ScrubDepth = ScrubDepth.DEEP,
    outcome: ScrubOutcome = ScrubOutcome.VERIFIED,
    suffix: str = "log",
) -> None:
    for index in indexes:
        segment_id, base, end, _ = segment(index)
        key = f"p/{base:020d}-{segment_id}.{suffix}"
        copy = (segment_id, base, end)
        acts.scrubs(h, copy, key, outcome=outcome, depth=depth, metadata_offset=0)


def unread(h: History) -> list[Finding]:
    return [each for each in h.judged().findings if each.rule_id == "AUD-05"]


def test_a_copy_that_nobody_read_for_too_long_is_told_once_and_until_it_is_read() -> None:
    """Not before its time; with the copy that waits longest; not resolved while any waits; and a day later
    the same finding is open again."""
    h = fixture("ours", declared=DAILY)
    h.now_ms = T0_MS - HOUR_MS
    before = unread(h)
    [overdue] = unread(h.after(hours=2))
    scrub(h, *range(9))
    [but_one] = unread(h)
    scrub(h, 9)
    [read] = unread(h.after(minutes=1))
    [again] = unread(h.after(hours=25))

    assert before == []
    assert (overdue.status, overdue.severity, overdue.ranges) == (Status.OPEN, "W", ((0, 1000),))
    assert (but_one.status, but_one.ranges) == (Status.OPEN, ((9000, 10000),))
    assert (read.status, again.status) == (Status.RESOLVED, Status.OPEN)
    assert {each.finding_id for each in (but_one, read, again)} == {overdue.finding_id}


def test_only_reading_a_segment_back_is_a_look_at_it() -> None:
    """Not a listing, not one that could not tell, not the small object beside it."""
    h = fixture("ours", declared=DAILY)
    scrub(h, *range(10), depth=ScrubDepth.LISTED)
    scrub(h, *range(10), outcome=ScrubOutcome.INCONCLUSIVE)
    scrub(h, *range(10), suffix="aux")
    assert [each.status for each in unread(h.after(hours=1))] == [Status.OPEN]


def test_a_copy_that_came_again_counts_as_read_when_it_was_made() -> None:
    """Its objects are others: how long ago those before them were read says nothing."""
    h = fixture("ours", declared=DAILY)
    scrub(h, *range(10))
    h.after(hours=20)
    scrub(h, *range(1, 10))
    segment_id, base, end, newest_ms = segment(0)
    fields = {"data_end": end, "record_count": 1000, "size_bytes": MIB, "max_timestamp_ms": newest_ms}
    h.tier(CopyStarted, segment_id, base, end, generation=1, **fields)
    h.tier(CopyFinished, segment_id, base, end, generation=1, objects=(), **fields)

    assert unread(h.after(hours=20)) == []
    assert [each.status for each in unread(h.after(hours=5))] == [Status.OPEN]


def test_where_no_policy_says_how_often_nothing_is_overdue() -> None:
    """The default is what our own scrub goes by, and nobody's word; an untiered log has nothing to read."""
    assert unread(fixture("ours", declared=KEPT).after(hours=24 * 29)) == []
    assert unread(fixture("none", declared=DAILY | {"tiering": "false"}).after(hours=48)) == []


def test_a_log_that_waits_for_its_next_scrub_alone_is_at_rest() -> None:
    """The screen may excuse it until then, and not longer; the last look is carried from run to run."""
    h = fixture("ours", declared=DAILY)
    scrub(h, *range(10))
    state = h.after(minutes=30).state(TERMS)
    calm = calm_of(state, TERMS)

    assert calm is not None
    assert T0_MS + DAY_MS <= calm.until_ms <= T0_MS + DAY_MS + HOUR_MS
    assert decode(encode(state)) == state
    assert {each.read_ms is not None for each in state.tier.values()} == {True}
