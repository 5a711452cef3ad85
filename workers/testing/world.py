"""Consumers, a broker and everything that can happen to them, in one thread: each step is a call.

What a test or a plan calls is what happens; nothing else does. So a run is its sequence of calls, and the
same sequence gives the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.consumer.commits import CommitSettings
from workers.consumer.loop import ParallelConsumer, Settings
from workers.consumer.outcomes import Done, Result
from workers.consumer.records import Partition, Record
from workers.testing.broker import MemoryBroker
from workers.testing.by_hand import ByHand, LettersByHand
from workers.testing.checks import assert_all_handled, assert_key_order, assert_no_loss
from workers.testing.clock import FakeClock
from workers.testing.journal import Journal
from workers.testing.source import MemorySource

QUIET_TURNS_MAX = 2_000
# Short, for the clock moves only while somebody waits: a handler that does not end costs a few turns.
SETTINGS = Settings(
    commits=CommitSettings(every_s=0.01, every_records=3, maps=True, deadline_s=0.03, floor_s=0.01)
)


@dataclass(slots=True)
class Member:
    name: str
    source: MemorySource
    executor: ByHand
    letters: LettersByHand
    consumer: ParallelConsumer


class World:
    def __init__(self, partitions: Sequence[Partition], settings: Settings = SETTINGS) -> None:
        self.clock = FakeClock()
        self.broker = MemoryBroker(partitions)
        self.journal = Journal()
        self.members: list[Member] = []
        self.told: list[tuple[str, dict[str, object]]] = []
        self._settings = settings
        self._letters: list[LettersByHand] = []
        self._numbers = 0

    def join(self, *, at_once: int = 4) -> Member:
        """A new process with a consumer in it."""
        self._numbers += 1
        name = f"member-{self._numbers}"
        source = MemorySource(self.broker, name, self.clock)
        executor = ByHand(name, self.journal, self.clock, at_once=at_once)
        letters = LettersByHand()
        consumer = ParallelConsumer(
            source,
            executor,
            settings=self._settings,
            dead_letters=letters,
            clock=self.clock,
            chance=lambda: 0.5,
            tell=lambda event, **facts: self.told.append((event, facts)),
        )
        consumer.open()
        member = Member(name, source, executor, letters, consumer)
        self.members.append(member)
        self._letters.append(letters)
        return member

    def leave(self, member: Member) -> None:
        """In order."""
        self.members.remove(member)
        member.consumer.close()

    def crash(self, member: Member) -> None:
        """kill -9: what its handlers were at is nobody's."""
        self.members.remove(member)
        member.executor.close(deadline_s=0)
        member.source.vanish()

    def expel(self, member: Member) -> None:
        """Its session ran out while it lives: its partitions are given away, and it hears of that later."""
        self.broker.leave(member.name)

    def turn(self, member: Member) -> None:
        member.consumer.turn()

    def turns(self, count: int = 1) -> None:
        for _ in range(count):
            for member in list(self.members):
                member.consumer.turn()

    def buried(self) -> list[Record]:
        return [letter.record for letters in self._letters for letter in letters.durable]

    def quiesce(self, result: Callable[[Record], Result] = lambda _: Done()) -> None:
        """No more faults: until everything is handled and committed. Fails if that never comes."""
        if not self.members:
            self.join()
        for member in self.members:
            member.letters.is_silent, member.letters.fail_next = False, 0
            member.source.break_next_poll, member.source.fail_commits = False, 0
        for _ in range(QUIET_TURNS_MAX):
            if not self.broker.lag() and not any(member.executor.held for member in self.members):
                return
            for member in self.members:
                for partition in member.consumer.snapshot().partitions:
                    if partition.blocking_offset is not None:
                        member.consumer.unpark(partition.partition, partition.blocking_offset)
                while member.executor.held:
                    member.executor.finish(0, result(member.executor.held[0].record))
                member.consumer.turn()
            self.clock.advance(0.05)
        raise AssertionError(f"{self.broker.lag()} records were never dealt with")

    def check(self) -> None:
        """At any moment."""
        assert_no_loss(self.broker, self.journal, self.buried())
        assert_key_order(self.broker, self.journal)

    def check_end(self) -> None:
        """After `quiesce`."""
        self.check()
        assert_all_handled(self.broker, self.journal, self.buried())
