"""What is known to go wrong in other parallel consumers, by the name under which it was reported there."""

from __future__ import annotations

from dataclasses import replace

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
from workers.consumer.flow import FlowLimits
from workers.consumer.outcomes import Done, Raised, Retry, RetryPolicy
from workers.testing.world import SETTINGS


def test_faust_606_commit_past_an_unfinished_head() -> None:
    """Later records are done, the first is not, and it stays uncommitted; a crash repeats it."""
    made = world(b"a", b"b", b"c")
    member = joined(made)
    finish(member, 1)
    finish(member, 2)
    settle(made)
    assert committed(made) in (0, None)

    made.crash(member)

    assert running(joined(made)) == [0, 1, 2]
    made.check()


def test_faust_318_gaps_that_close_in_any_order() -> None:
    """The commit follows as each gap closes, and is at the end when the last one does."""
    made = world(*[b"k%d" % number for number in range(6)])
    member = joined(made, at_once=6)
    points = []
    for offset in (5, 1, 0, 3, 2, 4):
        finish(member, offset)
        settle(made)
        points.append(committed(made) or 0)

    assert points == [0, 0, 2, 2, 4, 6]


def test_pyrallel_commits_go_on_behind_a_compacted_offset() -> None:
    """Offsets that compaction removed are never received and never waited for."""
    made = world(b"a", b"b", b"a", b"c", b"b")
    made.broker.logs[P0].compact()  # leaves 2, 3 and 4
    member = joined(made)
    assert running(member) == [2, 3, 4]

    for offset in (2, 3, 4):
        finish(member, offset)
    settle(made)

    assert committed(made) == 5


def test_confluent_409_a_log_that_was_compacted_whole() -> None:
    """Nothing but holes and markers: the commit reaches the end although no record was ever received."""
    made = world(b"a")
    made.broker.logs[P0].trim(1)
    made.broker.logs[P0].mark()
    joined(made)
    settle(made)

    assert committed(made) == 2


def test_the_one_record_tail_of_a_transaction() -> None:
    """A marker behind the last record leaves no lag behind."""
    made = world(b"a")
    made.broker.logs[P0].mark()
    member = joined(made)
    finish(member, 0)
    settle(made)

    assert committed(made) == made.broker.logs[P0].end == 2


def test_confluent_857_consumption_goes_on_after_a_rebalance() -> None:
    """A partition that was paused when it went is not paused when it comes back."""
    limits = FlowLimits(records_max=100, partition_records_max=2, poll_records_max=2)
    made = world(*[b"k"] * 8, settings=replace(NO_MAPS, flow=limits))
    member = joined(made)
    settle(made, 2)
    assert seen(member).paused

    made.expel(member)
    settle(made, 2)

    assert not member.source.paused or seen(member).paused
    made.quiesce()
    made.check_end()


def test_confluent_909_a_result_of_another_epoch_at_the_same_offset() -> None:
    """The handler of before the rebalance ends after it: the record at its offset is not finished by that."""
    made = world(b"a", b"b")
    member = joined(made)
    made.expel(member)
    settle(made, 2)  # it lost the partition, joined again and has it again; both handlers still run
    assert seen(member).in_flight_records == 2

    finish(member, 0)
    finish(member, 1)
    made.turns(1)

    assert counts(member)["late_results"] == 2
    assert committed(made) in (0, None)
    made.quiesce()
    made.check_end()


def test_confluent_909_a_record_at_an_offset_that_is_used_again() -> None:
    """An unclean election cuts the log, another record takes the offset: it is handled, not remembered."""
    made = world(b"a", b"b", settings=SETTINGS)
    member = joined(made)
    finish(member, 1)
    settle(made)  # the map in the commit says that 1 is finished
    made.broker.logs[P0].cut(1)
    replaced = made.broker.produce(P0, b"b", b"another")

    made.crash(member)
    after = joined(made)

    assert replaced in [work.record for work in after.executor.held]
    assert counts(after)["remembered"] == 0


def test_a_log_that_is_cut_back_keeps_what_lies_below_the_cut() -> None:
    """Found by the fault plan: to forget all that is in flight at a rewind loses what is not sent again."""
    made = world(b"a", b"b", b"c")
    member = joined(made)
    finish(member, 1)
    made.broker.logs[P0].mark()
    settle(made)
    made.broker.logs[P0].cut(2)
    made.broker.produce(P0, b"c", b"another")
    settle(made)

    assert counts(member)["rewinds"] == 1
    assert committed(made) in (0, None)  # record 0 is not finished
    finish(member, 2)  # the handler of the record that is gone
    settle(made)
    assert counts(member)["late_results"] == 1
    made.quiesce()
    made.check_end()


def test_confluent_893_offsets_after_many_rebalances() -> None:
    """Members come and go while one record never ends: nobody commits past it."""
    made = world(*[b"k%d" % number for number in range(4)], partitions=2)
    first = joined(made)
    for _ in range(5):
        second = made.join()
        settle(made, 3)
        for member in made.members:
            for offset in (each for each in running(member) if each != 0):
                finish(member, offset)
        settle(made, 3)
        made.check()
        made.crash(second)
        settle(made, 3)

    assert committed(made) in (0, None)
    assert first in made.members


def test_confluent_547_the_count_in_flight_comes_back_to_nothing() -> None:
    """Rebalances, retries, late results and dead letters leave neither records nor bytes behind."""
    made = world(*[b"k%d" % (number % 3) for number in range(12)])
    member = joined(made)
    finish(member, running(member)[0], Retry(0.01))
    made.expel(member)
    settle(made)
    while member.executor.held:
        member.executor.finish(0, Done())
    made.quiesce()

    snapshot = member.consumer.snapshot()
    assert (snapshot.in_flight_records, snapshot.in_flight_bytes, snapshot.lanes) == (0, 0, 0)
    assert (snapshot.queue_depth, snapshot.running, snapshot.retrying) == (0, 0, 0)


def test_confluent_826_what_was_done_before_a_revocation_is_committed_in_it() -> None:
    """The next owner starts behind it, and at the first record that was not done."""
    made = world(b"a", b"b", b"c", partitions=1)
    first = joined(made)
    finish(first, 0)
    made.leave(first)

    assert committed(made) == 1
    assert running(joined(made)) == [1, 2]


def test_confluent_629_a_commit_that_failed_is_named_and_sent_again() -> None:
    """Partition, offset and error are told; the offset is committed the next time."""
    made = world(b"a")
    member = joined(made)
    member.source.fail_commits = 1
    finish(member, 0)
    settle(made, 8)

    told = [facts for event, facts in made.told if event == "commit_failed"]
    assert {"partition": "t-0", "offset": 1, "error": "as planned"} in told
    assert committed(made) == 1


def test_faust_312_a_gap_in_the_middle_holds_the_commit_however_often_it_is_tried() -> None:
    """Two records of the middle are not done: commit after commit stays at the first, then at the second."""
    made = world(*[b"k%d" % number for number in range(8)])
    member = joined(made, at_once=8)
    for offset in (0, 1, 3, 4, 6, 7):
        finish(member, offset)
    points = []
    for done in (None, 2, 5):
        if done is not None:
            finish(member, done)
        for _ in range(3):  # Faust went past the gap with the second commit
            settle(made)
            points.append(committed(made))

    assert points == [2, 2, 2, 5, 5, 5, 8, 8, 8]


def test_robinhood_401_commits_go_on_in_a_log_of_gaps_and_tombstones() -> None:
    """Markers of transactions, what compaction took, records without a value: each commit goes past them."""
    made = world(b"a", b"b")
    log = made.broker.logs[P0]
    log.mark()
    made.broker.produce(P0, b"a")  # takes the place of offset 0
    log.mark()
    made.broker.produce(P0, b"c")
    log.compact()
    member = joined(made)
    assert running(member) == [1, 3, 5]
    points = []
    for offset in (1, 3, 5):
        finish(member, offset)
        settle(made)
        points.append(committed(made))
    log.mark()
    settle(made)

    assert points == [3, 5, 6]
    assert committed(made) == log.end == 7


def test_robinhood_559_records_that_come_twice_do_not_stop_the_commits() -> None:
    """The session ends while records are at work and all of them come again: each is finished once, and the
    commit is neither held at the first of them nor behind the last."""
    made = world(*[b"k%d" % number for number in range(4)])
    member = joined(made, at_once=8)
    finish(member, 0)
    settle(made)
    made.expel(member)
    settle(made, 2)
    for offset in (1, 2, 3):  # the handlers of before: their keys are theirs until they end
        finish(member, offset)
    settle(made)
    points = [committed(made)]
    assert sorted(running(member)) == [1, 2, 3]
    for offset in (2, 1, 3):
        finish(member, offset)
        settle(made)
        points.append(committed(made))

    assert points == [1, 1, 3, 4]
    assert counts(member)["late_results"] == 3
    made.check()


def test_robinhood_625_a_gap_at_the_head_before_anything_was_committed() -> None:
    """Of the same list, though its thread is not to be had: this is the case that its fixes left over. With
    nothing committed yet, or the very record behind the commit, one unfinished record was passed over."""
    made = world(*[b"k%d" % number for number in range(4)])
    member = joined(made, at_once=8)
    for offset in (1, 2, 3):
        finish(member, offset)
        settle(made)
    never = committed(made)
    finish(member, 0)
    settle(made)
    for number in range(3):
        made.broker.produce(P0, b"k%d" % number)
    settle(made)
    for offset in (5, 6):  # 4 is the very record behind the commit
        finish(member, offset)
        settle(made)

    assert (never, committed(made)) in ((None, 4), (0, 4))
    made.crash(member)
    assert running(joined(made))[0] == 4


def test_robinhood_681_a_partition_that_comes_back_is_committed_again() -> None:
    """Given to another member, and back when that one leaves: what is done of it afterwards is committed."""
    made = world(b"a", partitions=2)
    for key in (b"b", b"c"):
        made.broker.produce(P1, key)
    first = joined(made)
    second = made.join()
    settle(made)
    assert {each.partition for each in second.consumer.snapshot().partitions} == {P1}
    made.leave(second)
    settle(made)
    assert {each.partition for each in first.consumer.snapshot().partitions} == {P0, P1}

    while first.executor.held:
        first.executor.finish(0, Done())
        settle(made)

    assert (committed(made), committed(made, P1)) == (1, 2)


def test_confluent_196_retries_have_an_end_and_it_is_a_dead_letter() -> None:
    """A record that always raises is tried so often and no more, is buried, and nobody has to count."""
    policy = RetryPolicy(attempts_max=3, first_s=0.01)
    made = world(b"a", b"b", settings=replace(NO_MAPS, retries=policy))
    member = joined(made)
    finish(member, 1)
    for attempt in range(3):
        assert member.executor.held[0].record.attempt == attempt
        finish(member, 0, Raised("ValueError: poison"))
        settle(made)

    [letter] = member.letters.durable
    assert (letter.record.offset, letter.record.attempt) == (0, 2)
    assert letter.reason == "raised 3 times; last: ValueError: poison"
    assert running(member) == []
    assert committed(made) == 2


def test_confluent_540_back_pressure_stops_one_partition_and_not_the_others() -> None:
    """A partition whose records do not end is paused; the other goes on being read, done and committed."""
    limits = FlowLimits(records_max=100, partition_records_max=2, poll_records_max=2)
    made = world(*[b"slow"] * 8, partitions=2, settings=replace(NO_MAPS, flow=limits))
    member = joined(made)
    for _ in range(10):
        made.broker.produce(P1, b"quick")
        settle(made, 2)
        for offset in [each.record.offset for each in member.executor.held if each.record.partition == P1]:
            number = [(each.record.partition, each.record.offset) for each in member.executor.held]
            member.executor.finish(number.index((P1, offset)), Done())
        settle(made, 2)

    assert (seen(member, P0).paused, seen(member, P1).paused) == (True, False)
    assert (committed(made), committed(made, P1)) in ((None, 10), (0, 10))


def test_confluent_875_no_record_is_left_out_while_the_group_grows_and_shrinks() -> None:
    """Members come and go while records are written and done: none is skipped until somebody restarts, and no
    commit is held by a record that nobody was given."""
    made = world(partitions=2)
    first = joined(made)
    for turn in range(12):
        for partition in (P0, P1):
            for number in range(3):
                made.broker.produce(partition, b"k%d" % number)
        second = made.join()
        settle(made, 2)
        for member in (first, second):
            while member.executor.held:
                member.executor.finish(-1, Done())
        (made.leave if turn % 2 else made.crash)(second)
        settle(made, 2)
    while first.executor.held:
        first.executor.finish(0, Done())
        settle(made, 2)
    settle(made)

    assert (committed(made), committed(made, P1)) == (36, 36)
    assert [each.blocking_offset for each in first.consumer.snapshot().partitions] == [None, None]
    made.check_end()
