"""Orders, outcomes, bounds, commits and stalls, each in a world where nothing happens by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workers.consumer.worlds import (
    NO_MAPS,
    P0,
    P1,
    committed,
    counts,
    finish,
    joined,
    running,
    seen,
    settle,
    world,
)
from workers.consumer.commits import CommitSettings
from workers.consumer.flow import Flow, FlowLimits
from workers.consumer.order import NullKeys, Order
from workers.consumer.outcomes import DeadLetter, Done, Park, Raised, Retry, RetryPolicy, Skip
from workers.testing.world import SETTINGS, World


def told(made: World, event: str) -> list[dict[str, object]]:
    return [facts for name, facts in made.told if name == event]


def test_by_key_one_record_of_a_key_runs_at_a_time() -> None:
    """Other keys run beside it; the next of the key follows when it is done."""
    made = world(b"a", b"a", b"b", b"a")
    member = joined(made)
    assert running(member) == [0, 2]

    finish(member, 0)
    made.turns(2)

    assert running(member) == [2, 1]


def test_a_key_in_two_partitions_is_two_keys() -> None:
    """Kafka gives no order between partitions, and none is made up."""
    made = world(b"a", partitions=2)
    made.broker.produce(P1, b"a")

    assert len(running(joined(made))) == 2


def test_by_partition_one_record_of_a_partition_runs_at_a_time() -> None:
    """Whatever the keys are."""
    made = world(b"a", b"b", partitions=2, settings=replace(NO_MAPS, order=Order.BY_PARTITION))
    made.broker.produce(P1, b"c")

    assert running(joined(made)) == [0, 0]


def test_without_order_everything_runs() -> None:
    """Up to what the executor takes."""
    made = world(b"a", b"a", b"a", settings=replace(NO_MAPS, order=Order.NONE))

    assert running(joined(made, at_once=2)) == [0, 1]


@pytest.mark.parametrize(
    ("null_keys", "expected"), [(NullKeys.UNORDERED, [0, 1]), (NullKeys.BY_PARTITION, [0])]
)
def test_records_without_a_key_go_by_the_policy(null_keys: NullKeys, expected: list[int]) -> None:
    """Unordered unless told otherwise; never all of them as the one key that is empty."""
    made = world(None, None, settings=replace(NO_MAPS, null_keys=null_keys))

    assert running(joined(made)) == expected


def test_the_oldest_record_goes_first() -> None:
    """It holds the commit back, so a key that is let go does not queue behind younger ones."""
    made = world(b"a", b"a", b"b", b"c")
    member = joined(made, at_once=1)

    finish(member, 0)
    made.turns(2)

    assert running(member) == [1]


def test_a_retry_holds_only_its_key() -> None:
    """The others go on; after its time the same record comes again, with its attempt, before the next."""
    made = world(b"a", b"a", b"b")
    member = joined(made)
    finish(member, 0, Retry(1.0))
    finish(member, 2)
    settle(made)
    assert running(member) == []
    assert member.consumer.snapshot().retrying == 1

    made.clock.advance(1.0)
    made.turns(2)

    assert [(each.record.offset, each.record.attempt) for each in member.executor.held] == [(0, 1)]


def test_what_raises_is_tried_a_bounded_number_of_times() -> None:
    """Then it is a dead letter, with what it raised and how often it was tried."""
    made = world(b"a", settings=replace(NO_MAPS, retries=RetryPolicy(attempts_max=3, first_s=0.01)))
    member = joined(made)
    for _ in range(3):
        finish(member, 0, Raised("KeyError: 'x'"))
        settle(made)

    [letter] = member.letters.durable
    assert (letter.attempts, letter.record.offset) == (3, 0)
    assert "KeyError" in letter.reason
    assert (counts(member)["raised"], committed(made)) == (3, 1)


def test_a_retry_that_is_asked_for_is_not_counted_as_a_failure() -> None:
    """A handler may wait for something as long as it likes."""
    made = world(b"a", settings=replace(NO_MAPS, retries=RetryPolicy(attempts_max=2)))
    member = joined(made)
    for _ in range(10):
        finish(member, 0, Retry(0.01))
        settle(made)

    assert running(member) == [0]
    assert member.executor.held[0].record.attempt == 10


def test_the_offset_waits_for_the_dead_letter_to_be_durable() -> None:
    """While the dead letter topic is silent or refuses, nothing is committed and the key waits."""
    made = world(b"a", b"a")
    member = joined(made)
    member.letters.is_silent = True
    finish(member, 0, DeadLetter("poison"))
    settle(made)
    assert (committed(made) or 0, running(member)) == (0, [])

    member.letters.is_silent, member.letters.fail_next = False, 1
    settle(made, 1)
    assert committed(made) in (0, None)
    assert told(made, "dead_letter_failed")

    made.clock.advance(1)
    settle(made)
    assert (committed(made), running(member)) == (1, [1])


def test_without_a_dead_letter_topic_a_record_is_parked() -> None:
    """It is never dropped for want of a place."""
    made = world(b"a", b"b")
    member = joined(made)
    member.consumer._core._has_dead_letters = False

    finish(member, 0, DeadLetter("poison"))
    finish(member, 1)
    settle(made)

    assert member.consumer.snapshot().parked == 1
    assert committed(made) in (0, None)


def test_a_parked_record_waits_for_a_person() -> None:
    """Its key and its offset stay, the others go on; unparked it is tried again."""
    made = world(b"a", b"a", b"b")
    member = joined(made)
    finish(member, 0, Park("who is this?"))
    finish(member, 2)
    settle(made)
    assert (committed(made) or 0, running(member), seen(member).gaps) == (0, [], ((0, 2),))

    member.consumer.unpark(P0, 0)
    settle(made)

    assert running(member) == [0]


def test_a_skip_is_finished_and_counted() -> None:
    """Not to be handled is an outcome too."""
    made = world(b"a")
    member = joined(made)
    finish(member, 0, Skip("not ours"))
    settle(made)

    assert (committed(made), counts(member)["skipped"], counts(member)["done"]) == (1, 1, 0)


def test_in_flight_records_are_bounded_and_polling_goes_on() -> None:
    """With every handler busy no more is taken in, and the membership is kept alive all the same."""
    limits = FlowLimits(records_max=5, partition_records_max=5, poll_records_max=3)
    made = world(*[b"k%d" % number for number in range(20)], settings=replace(NO_MAPS, flow=limits))
    member = joined(made, at_once=2)
    settle(made, 10)
    polls = member.source.polls
    made.clock.advance(1)
    settle(made, 60)

    assert member.consumer.snapshot().in_flight_records == 5
    assert member.source.polls > polls
    assert P0 in member.source.paused
    made.quiesce()
    made.check_end()


def test_in_flight_bytes_are_bounded() -> None:
    """By the largest record seen so far; one larger than the bound passes alone."""
    limits = FlowLimits(bytes_max=4_000, partition_records_max=100, poll_records_max=1)
    made = World([P0], replace(NO_MAPS, flow=limits))
    for _ in range(10):
        made.broker.produce(P0, None, b"x" * 1_500)
    made.broker.produce(P0, None, b"x" * 9_000)
    member = joined(made, at_once=100)
    settle(made, 20)

    assert member.consumer.snapshot().in_flight_bytes <= 4_000
    made.quiesce()
    made.check_end()


def test_one_giant_record_is_forgotten() -> None:
    """Else a single one above the bound would let records through one by one for ever."""
    flow = Flow(FlowLimits(bytes_max=10_000, records_max=100, poll_records_max=100))
    flow.saw(20_000)
    assert flow.room(0, 0) == 1

    for _ in range(5_000):
        flow.saw(100)

    assert flow.room(0, 0) > 50


def test_a_stuck_partition_is_paused_and_the_other_goes_on() -> None:
    """What is finished above the stuck record counts too, for a crash repeats it."""
    limits = FlowLimits(records_max=100, partition_records_max=4, poll_records_max=2)
    made = world(
        *[b"k%d" % number for number in range(9)], partitions=2, settings=replace(NO_MAPS, flow=limits)
    )
    member = joined(made, at_once=20)
    for _ in range(8):
        for offset in [each for each in running(member) if each != 0]:
            finish(member, offset)
        settle(made, 2)
    assert seen(member).paused
    assert seen(member).ahead_records <= 4 + 2

    made.broker.produce(P1, b"x")
    settle(made, 2)

    assert P1 in [work.record.partition for work in member.executor.held]
    assert not seen(member, P1).paused


def test_commits_are_batched_by_count_or_time() -> None:
    """Ten finished records are one commit, by whichever comes first."""
    commits = CommitSettings(every_s=60, every_records=10)
    made = world(*[b"k%d" % n for n in range(12)], settings=replace(SETTINGS, commits=commits))
    member = joined(made, at_once=20)
    for offset in range(9):
        finish(member, offset)
    settle(made)
    assert made.broker.commits == []

    finish(member, 9)
    settle(made)
    assert [each.offset for each in made.broker.commits] == [10]

    finish(member, 10)
    made.clock.advance(60)
    settle(made)
    assert [each.offset for each in made.broker.commits] == [10, 11]


def test_a_rebalance_drains_only_what_is_revoked() -> None:
    """The partition that stays keeps all its work; of the other what runs is waited for."""
    made = world(b"a", b"a", partitions=2)
    made.broker.produce(P1, b"b")
    made.broker.produce(P1, b"b")
    first = joined(made)

    def end_one(executor: object) -> None:
        held = [work.record.partition for work in first.executor.held]
        if P1 in held:
            first.executor.finish(held.index(P1), Done())

    first.executor.while_waiting = end_one
    second = made.join()
    made.turns(4)

    assert committed(made, P1) == 1  # drained, and the one that had not begun was given up
    assert [work.record.partition for work in first.executor.held] == [P0]
    assert [(work.record.partition, work.record.offset) for work in second.executor.held] == [(P1, 1)]
    assert counts(first)["late_results"] == 0


def test_a_handler_that_does_not_end_delays_a_rebalance_by_its_deadline_at_most() -> None:
    """What was finished is committed in the floor that is kept for it; the late result moves nothing."""
    made = world(b"a", b"b")
    member = joined(made)
    finish(member, 0)
    began_s = made.clock.now_s
    member.consumer.close()

    deadline_s = NO_MAPS.commits.deadline_s
    assert made.clock.now_s - began_s <= deadline_s + 0.01
    assert committed(made) == 1
    assert told(made, "revoked_unfinished") == [{"partitions": ["t-0"], "handlers": 1}]


def test_what_is_lost_is_not_committed() -> None:
    """It is somebody else's already."""
    made = world(b"a")
    member = joined(made)
    made.expel(member)
    finish(member, 0)
    made.turns(1)

    assert made.broker.commits == []
    assert told(made, "lost")


def test_a_restart_repeats_less_with_a_map() -> None:
    """What was finished above the commit point is remembered, and not handled again."""
    made = world(b"a", b"b", b"c", settings=SETTINGS)
    member = joined(made)
    finish(member, 1)
    finish(member, 2)
    settle(made)
    made.crash(member)

    after = joined(made)

    assert running(after) == [0]
    assert counts(after)["remembered"] == 2


def test_a_stall_is_told_once_with_its_cause() -> None:
    """One line when it begins, naming what the record waits for, and one when it ends."""
    made = world(b"a", b"b", settings=replace(NO_MAPS, stall_after_s=5))
    member = joined(made)
    finish(member, 1)
    settle(made)
    made.clock.advance(5)
    settle(made)
    settle(made)

    [stall] = told(made, "stalled")
    assert (stall["partition"], stall["blocking_offset"], stall["blocked"]) == ("t-0", 0, "its handler runs")
    assert (stall["ahead_records"], stall["in_flight_records"]) == (2, 1)
    assert seen(member).blocking_age_s >= 5

    finish(member, 0)
    made.clock.advance(1)
    settle(made)
    assert told(made, "stall_ended") == [{"partition": "t-0", "blocking_offset": 0}]


def test_the_snapshot_says_where_everything_is() -> None:
    """Gaps, the blocking offset, and how many records wait, run, are retried and parked."""
    made = world(b"a", b"a", b"b", b"c", b"d")
    member = joined(made)
    finish(member, 2)
    finish(member, 3, Retry(9))
    finish(member, 4, Park("odd"))
    made.turns(1)

    snapshot = member.consumer.snapshot()
    assert (snapshot.queue_depth, snapshot.running, snapshot.retrying, snapshot.parked) == (1, 1, 1, 1)
    assert snapshot.in_flight_records == 4
    only = seen(member)
    assert (only.position, only.commit_point, only.blocking_offset) == (5, 0, 0)
    assert only.gaps == ((0, 2), (3, 5))
