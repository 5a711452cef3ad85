"""Handlers that end when they are told, and dead letters that are answered when told: no thread anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workers.consumer.outcomes import Result
from workers.consumer.ports import ExecutorBroken, Letter, LetterAnswer
from workers.consumer.work import Work
from workers.testing.clock import FakeClock
from workers.testing.journal import Journal


class ByHand:
    """`held` is what runs. `while_waiting` is asked whenever somebody waits: it may finish something."""

    def __init__(self, member: str, journal: Journal, clock: FakeClock, *, at_once: int = 4) -> None:
        self.capacity = at_once
        self.held: list[Work] = []
        self.while_waiting: Callable[[ByHand], None] = lambda _: None
        self.is_broken = False
        self._member, self._journal, self._clock = member, journal, clock
        self._finished: list[tuple[Work, Result]] = []

    def submit(self, works: Sequence[Work]) -> None:
        for work in works:
            self._journal.begin(self._member, work.record)
            self.held.append(work)

    def finish(self, number: int, result: Result) -> None:
        """The handler at this place in `held` ends so."""
        work = self.held.pop(number)
        self._journal.end(self._member, work.record, result)
        self._finished.append((work, result))

    def collect(self, timeout_s: float) -> Sequence[tuple[Work, Result]]:
        if self.is_broken:
            raise ExecutorBroken("as planned")
        if not self._finished and timeout_s > 0:
            self.while_waiting(self)
            self._clock.advance(timeout_s)
        finished, self._finished = self._finished, []
        return finished

    def close(self, *, deadline_s: float) -> int:
        """What runs is thrown away, as the processes of a supervisor's run before are."""
        for work in self.held:
            self._journal.give_up(self._member, work.record)
        self.held.clear()
        return 0


class LettersByHand:
    """Durable at once, unless told to fail or to keep silent."""

    def __init__(self) -> None:
        self.durable: list[Letter] = []
        self.fail_next = 0
        self.is_silent = False
        self._sent: list[tuple[int, Letter]] = []

    def send(self, number: int, letter: Letter) -> None:
        self._sent.append((number, letter))

    def answers(self) -> Sequence[LetterAnswer]:
        if self.is_silent:
            return []
        answers = []
        for number, letter in self._sent:
            if self.fail_next:
                self.fail_next -= 1
                answers.append(LetterAnswer(number, "as planned"))
            else:
                self.durable.append(letter)
                answers.append(LetterAnswer(number, None))
        self._sent.clear()
        return answers

    def close(self, *, deadline_s: float) -> None:
        self._sent.clear()
