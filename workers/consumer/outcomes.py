"""What a handler says of a record, as a value; and how often and how soon a failed one is tried again.

A handler that raises says nothing: that is `Raised`, a bounded retry. One that returns anything else than an
outcome is taken to have raised, so that a forgotten `return` never counts as done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from workers.consumer.records import Record

REASON_CHARACTERS_MAX = 500


@dataclass(frozen=True, slots=True)
class Done:
    """Handled."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Not to be handled, and that is right: counted, and finished."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Again, after so many seconds (without a number, as the retry policy says); only its key waits.

    A handler may ask for it as often as it likes; `Record.attempt` tells it how often it did.
    """

    after_s: float | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Never again: into the dead letter topic. The offset moves once the letter is durable."""

    reason: str


@dataclass(frozen=True, slots=True)
class Park:
    """Set aside for a person: its offset and its key stay where they are until `unpark` or a restart."""

    reason: str


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler came to no outcome. Made by executors, never by handlers."""

    reason: str

    @classmethod
    def by(cls, error: BaseException) -> Raised:
        return cls(f"{type(error).__name__}: {error}"[:REASON_CHARACTERS_MAX])


Outcome: TypeAlias = Done | Skip | Retry | DeadLetter | Park
Result: TypeAlias = Outcome | Raised
Handler: TypeAlias = Callable[[Record], Outcome]
AsyncHandler: TypeAlias = Callable[[Record], Awaitable[Outcome]]

OUTCOMES = (Done, Skip, Retry, DeadLetter, Park)


def checked(answer: object) -> Result:
    """What a handler returned, or the failure to return an outcome."""
    if isinstance(answer, OUTCOMES):
        return answer
    return Raised(f"the handler returned {type(answer).__name__}, which is no outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Waits grow by `factor` from `first_s` to `most_s`, less up to `jitter` of it at random."""

    attempts_max: int = 5  # of a handler that raises: the first one and four more
    first_s: float = 0.2
    factor: float = 2.0
    most_s: float = 30.0
    jitter: float = 0.2

    def wait_s(self, failures: int, chance: float) -> float:
        """The wait after so many failures in a row (1 or more); `chance` is in [0, 1)."""
        # The power is bounded first: a letter that cannot be delivered for a week fails thousands of times.
        grown = self.first_s * self.factor ** min(failures - 1, 60)
        return min(grown, self.most_s) * (1 - self.jitter * chance)
