"""What is known to go wrong in other parallel consumers, by the name under which it was reported there."""

from __future__ import annotations

from dataclasses import replace

from tests.workers.consumer.worlds import (
    NO_MAPS,
    P0,
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
from workers.consumer.outcomes import Done, Retry
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
