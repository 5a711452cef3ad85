"""Attempts: how often, how far apart, and until when.

The pause before attempt n is drawn evenly from [0, min(cap, first * 2^n)) ("full jitter"), so that clients
that failed together do not come back together. Whether there is another attempt is the error's own class to
say (`errors.Again`). Two deadlines bound it all: one for each attempt, one for all of them.

Invariant: `run` calls at most `attempts_max` times, and starts nothing past the overall deadline. The last
error is raised as it is, with the number of attempts on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tiering.store.errors import Again, DeadlinePassed, StoreError
from tiering.store.throttle import Clock, Sleep

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The defaults outlast a minute's outage of the store, and notice a hang within the first minute."""

    attempts_max: int = 10
    attempt_s: float = 60.0
    overall_s: float = 300.0
    soon_s: float = 0.1
    later_s: float = 1.0  # the store asked for fewer requests
    pause_max_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """An attempt that failed, and the pause before the next: for logs and counters."""

    error: StoreError
    attempt: int
    pause_s: float


class Deadline:
    """When an attempt must have ended. Time spent waiting for the byte rate is not the attempt's."""

    def __init__(self, *, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._last_moment = clock() + seconds
        self.extended_s = 0.0

    def extend(self, seconds: float) -> None:
        self._last_moment += seconds
        self.extended_s += seconds

    @property
    def has_passed(self) -> bool:
        return self._clock() >= self._last_moment

    def check(self, *, bucket: str, key: str, operation: str) -> None:
        """Raise DeadlinePassed once it has."""
        if self.has_passed:
            raise DeadlinePassed(bucket=bucket, key=key, operation=operation, why=f"{self._seconds:g} s")


class Retrier:
    """Runs one operation until it succeeds, cannot succeed, or has taken too long."""

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        clock: Clock,
        sleep: Sleep,
        random: Callable[[], float],
        on_retry: Callable[[Retried], None] = lambda _: None,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._on_retry = on_retry

    def run(self, attempt: Callable[[Deadline], T]) -> T:
        """The first answer of `attempt`, or its last error."""
        overall = self._clock() + self._policy.overall_s
        number = 1
        while True:
            left_s = overall - self._clock()
            deadline = Deadline(clock=self._clock, seconds=min(self._policy.attempt_s, left_s))
            try:
                return attempt(deadline)
            except StoreError as error:
                overall += deadline.extended_s
                error.attempts = number
                pause_s = self._pause_s(error, number)
                is_last = number == self._policy.attempts_max or self._clock() + pause_s >= overall
                if error.again is Again.NEVER or is_last:
                    raise
                self._on_retry(Retried(error=error, attempt=number, pause_s=pause_s))
                self._sleep(pause_s)
                if self._clock() >= overall:  # slept longer than it asked for
                    raise
            number += 1

    def _pause_s(self, error: StoreError, number: int) -> float:
        policy = self._policy
        first_s = policy.later_s if error.again is Again.LATER else policy.soon_s
        return self._random() * min(policy.pause_max_s, first_s * 2.0**number)
