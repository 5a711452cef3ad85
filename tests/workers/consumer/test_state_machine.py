"""Anything that can happen to a group, in any order: no committed gap, no key out of order, nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from workers.consumer.outcomes import DeadLetter, Done, Park, Raised, Result, Retry, Skip
from workers.consumer.records import Partition
from workers.testing.world import Member, World

PARTITIONS = [Partition("t", number) for number in range(2)]
KEYS = st.sampled_from([b"a", b"b", b"c", None])
RESULTS = st.sampled_from(
    [Done(), Done(), Done(), Skip("no"), Retry(0.01), Raised("boom"), DeadLetter("poison"), Park("odd")]
)
PLACES = st.integers(0, 5)


class Group(RuleBasedStateMachine):
    """Consumers that deliver, finish, fail, are rebalanced and crash, on a log that is compacted and cut."""

    @initialize()
    def begin(self) -> None:
        self.world = World(PARTITIONS)
        self.world.join()

    def member(self, place: int) -> Member:
        return self.world.members[place % len(self.world.members)]

    @rule(partition=st.sampled_from(PARTITIONS), keys=st.lists(KEYS, min_size=1, max_size=4))
    def produce(self, partition: Partition, keys: list[bytes | None]) -> None:
        for key in keys:
            self.world.broker.produce(partition, key)

    @rule(partition=st.sampled_from(PARTITIONS))
    def mark(self, partition: Partition) -> None:
        self.world.broker.logs[partition].mark()

    @rule(partition=st.sampled_from(PARTITIONS))
    def compact(self, partition: Partition) -> None:
        self.world.broker.logs[partition].compact()

    @rule(partition=st.sampled_from(PARTITIONS), records=st.integers(1, 3))
    def cut(self, partition: Partition, records: int) -> None:
        point, log = self.world.broker.committed(partition), self.world.broker.logs[partition]
        if point is not None and point.leader_epoch >= 0:
            log.cut(log.end - records)

    @precondition(lambda self: self.world.members)
    @rule(place=PLACES)
    def turn(self, place: int) -> None:
        self.world.turn(self.member(place))

    @rule()
    def everybody_turns(self) -> None:
        self.world.turns(2)

    @precondition(lambda self: any(each.executor.held for each in self.world.members))
    @rule(place=PLACES, work=PLACES, result=RESULTS)
    def finish(self, place: int, work: int, result: Result) -> None:
        busy = [each for each in self.world.members if each.executor.held]
        executor = busy[place % len(busy)].executor
        executor.finish(work % len(executor.held), result)

    @precondition(lambda self: len(self.world.members) < 3)
    @rule(drains=st.booleans())
    def join(self, drains: bool) -> None:
        member = self.world.join()
        if drains:  # its handlers end when a rebalance waits for them
            member.executor.while_waiting = lambda executor: (
                executor.finish(0, Done()) if executor.held else None
            )

    @precondition(lambda self: self.world.members)
    @rule(place=PLACES)
    def leave(self, place: int) -> None:
        self.world.leave(self.member(place))

    @precondition(lambda self: self.world.members)
    @rule(place=PLACES)
    def crash(self, place: int) -> None:
        self.world.crash(self.member(place))

    @precondition(lambda self: self.world.members)
    @rule(place=PLACES)
    def expel(self, place: int) -> None:
        self.world.expel(self.member(place))

    @precondition(lambda self: self.world.members)
    @rule(place=PLACES, commits=st.booleans())
    def hinder(self, place: int, commits: bool) -> None:
        if commits:
            self.member(place).source.fail_commits += 1
        else:
            self.member(place).letters.fail_next += 1

    @rule(seconds=st.floats(0.001, 0.5))
    def wait(self, seconds: float) -> None:
        self.world.clock.advance(seconds)

    @invariant()
    def nothing_is_lost_or_overtaken(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.quiesce()
            self.world.check_end()


Group.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.slow
class TestGroup(Group.TestCase):  # type: ignore[misc, valid-type]
    """Played by pytest."""
