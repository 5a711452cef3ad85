"""Attempts: how many, how far apart, until when, and of what."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.store.hands import Hands
from tiering.store.errors import (
    AlreadyExists,
    ChecksumRefused,
    DeadlinePassed,
    DefectInSegment,
    Denied,
    Missing,
    NotVersioned,
    Rejected,
    StoredDiffers,
    StoreError,
    Throttled,
    Transient,
    Unavailable,
    Unsupported,
)
from tiering.store.retry import Deadline, Retried, Retrier, RetryPolicy

POLICY = RetryPolicy(attempts_max=5, attempt_s=10, overall_s=100, soon_s=0.1, later_s=1.0, pause_max_s=3.0)


def error(kind: type[StoreError]) -> StoreError:
    return kind(bucket="b", key="k", operation="put", why="as the test asked")


def failing(*kinds: type[StoreError]) -> Callable[[Deadline], str]:
    """An attempt that fails so often, and then succeeds."""
    left = list(kinds)

    def attempt(_: Deadline) -> str:
        if left:
            raise error(left.pop(0))
        return "done"

    return attempt


def retrier(hands: Hands, seen: list[Retried], *, draws: Iterator[float] | None = None) -> Retrier:
    return Retrier(
        POLICY,
        clock=hands.clock,
        sleep=hands.sleep,
        random=(lambda: next(draws)) if draws else lambda: 1.0,
        on_retry=seen.append,
    )


@pytest.mark.parametrize("kind", [Unavailable, Transient, Throttled, DeadlinePassed, ChecksumRefused])
def test_what_may_pass_is_tried_again(kind: type[StoreError]) -> None:
    """An attempt that failed for now is followed by another, which is told of."""
    hands, seen = Hands(), list[Retried]()

    answer = retrier(hands, seen).run(failing(kind, kind))

    assert answer == "done"
    assert [(type(retried.error), retried.attempt) for retried in seen] == [(kind, 1), (kind, 2)]
    assert hands.slept == [retried.pause_s for retried in seen]


@pytest.mark.parametrize(
    "kind",
    [
        Denied,
        Missing,
        AlreadyExists,
        Rejected,
        Unsupported,
        NotVersioned,
        StoredDiffers,
        DefectInSegment,
    ],
)
def test_what_will_not_change_is_not_tried_again(kind: type[StoreError]) -> None:
    """The first answer stands."""
    hands, seen = Hands(), list[Retried]()

    with pytest.raises(kind) as raised:
        retrier(hands, seen).run(failing(kind))

    assert raised.value.attempts == 1
    assert (seen, hands.slept) == ([], [])


def test_the_last_error_is_raised_with_its_number() -> None:
    """After the last attempt the error is what that attempt met, and says how many there were."""
    hands = Hands()

    with pytest.raises(Transient) as raised:
        retrier(hands, []).run(failing(*[Throttled] * 4, Transient))

    assert raised.value.attempts == POLICY.attempts_max
    assert "attempts: 5" in str(raised.value)


def test_pauses_double_up_to_a_limit() -> None:
    """With the longest draw: twice as long each time, and longer from the start where less is asked for."""
    soon, later = Hands(), Hands()

    retrier(soon, []).run(failing(*[Transient] * 4))
    retrier(later, []).run(failing(*[Throttled] * 4))

    assert soon.slept == [0.2, 0.4, 0.8, 1.6]
    assert later.slept == [2.0, 3.0, 3.0, 3.0]


@given(draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=4, max_size=4))
def test_pauses_are_drawn_from_nothing_to_the_limit(draws: list[float]) -> None:
    """Full jitter: each pause is its draw's share of the longest."""
    hands = Hands()

    retrier(hands, [], draws=iter(draws)).run(failing(*[Transient] * 4))

    assert hands.slept == pytest.approx([d * m for d, m in zip(draws, [0.2, 0.4, 0.8, 1.6], strict=True)])


def test_nothing_starts_past_the_overall_deadline() -> None:
    """Attempts that each take long stop when all of them together have taken too long."""
    hands, begun = Hands(), list[float]()

    def attempt(deadline: Deadline) -> str:
        begun.append(hands.now_s)
        hands.turn(40)
        raise error(Unavailable)

    with pytest.raises(Unavailable) as raised:
        retrier(hands, []).run(attempt)

    assert raised.value.attempts == len(begun) == 3
    assert all(moment < 1000.0 + POLICY.overall_s for moment in begun)


def test_a_sleep_that_takes_too_long_ends_it() -> None:
    """A machine that was suspended in a pause does not go on with what is long overdue."""
    hands = Hands()
    patient = Retrier(POLICY, clock=hands.clock, sleep=lambda _: hands.turn(1000), random=lambda: 0.5)

    with pytest.raises(Transient) as raised:
        patient.run(failing(Transient, Transient))

    assert raised.value.attempts == 1


def test_a_stop_ends_the_waiting() -> None:
    """What `sleep` raises comes out at once: that is how a process is told to end."""

    def stop(_: float) -> None:
        raise InterruptedError

    patient = Retrier(POLICY, clock=Hands().clock, sleep=stop, random=lambda: 0.5)

    with pytest.raises(InterruptedError):
        patient.run(failing(Transient))


def test_an_attempt_has_its_own_deadline() -> None:
    """It passes after the attempt's time, names what was asked, and leaves out waits for the byte rate."""
    hands = Hands()
    deadline = Deadline(clock=hands.clock, seconds=10)

    hands.turn(9.9)
    deadline.check(bucket="b", key="k", operation="put")
    hands.turn(5)
    deadline.extend(5)
    deadline.check(bucket="b", key="k", operation="put")
    hands.turn(0.2)

    with pytest.raises(DeadlinePassed, match="put of 'k' in bucket b did not end within 10 s"):
        deadline.check(bucket="b", key="k", operation="put")


def test_waits_for_the_byte_rate_do_not_use_up_the_time() -> None:
    """A slow rate is wanted; it must not look like a store that is slow."""
    hands = Hands()

    def attempt(deadline: Deadline) -> str:
        hands.turn(60)
        deadline.extend(60)
        raise error(Transient)

    with pytest.raises(Transient) as raised:
        retrier(hands, []).run(attempt)

    assert raised.value.attempts == POLICY.attempts_max
