"""The byte rate: never exceeded over any span, smooth inside a segment, shared by all threads."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.store.hands import Hands
from tiering.store.throttle import InTurn, Throttle, unlimited

RATE = 1000.0
BURST_BYTES = 500


def throttle(hands: Hands) -> Throttle:
    return Throttle(bytes_per_s=RATE, burst_bytes=BURST_BYTES, clock=hands.clock, sleep=hands.sleep)


@given(steps=st.lists(st.tuples(st.integers(1, 2000), st.floats(0, 3)), min_size=1, max_size=30))
def test_no_span_of_time_lets_more_through(steps: list[tuple[int, float]]) -> None:
    """Between any two moments at most rate x time + burst passes, whatever the pieces and the pauses."""
    hands = Hands()
    limit = throttle(hands)

    passed: list[tuple[float, int]] = []
    for size_bytes, pause_s in steps:
        limit.take(size_bytes)
        passed.append((hands.now_s, size_bytes))
        hands.turn(pause_s)

    for first, last in combinations(range(len(passed)), 2):
        through = sum(size_bytes for _, size_bytes in passed[first + 1 : last + 1])
        allowed = RATE * (passed[last][0] - passed[first][0]) + BURST_BYTES
        assert through <= allowed + 1e-3


def test_a_steady_flow_gets_the_whole_rate() -> None:
    """Waiting is no longer than the rate asks for."""
    hands = Hands()
    limit = throttle(hands)

    for _ in range(100):
        limit.take(250)

    assert abs(hands.now_s - 1000.0 - 100 * 250 / RATE) < 1e-6
    assert abs(limit.waited_s - sum(hands.slept)) < 1e-6


def test_what_is_not_used_is_not_saved_up() -> None:
    """After an idle hour no more than one burst passes at once."""
    hands = Hands()
    limit = throttle(hands)
    hands.turn(3600)

    waits = [limit.take(250) for _ in range(4)]

    assert waits[:2] == [0.0, 0.0]
    assert all(wait_s > 0 for wait_s in waits[2:])


def test_a_piece_larger_than_the_burst_passes_late_and_whole() -> None:
    """The size of a piece is not limited by the burst."""
    hands = Hands()

    throttle(hands).take(10 * BURST_BYTES)

    assert hands.slept == [10 * BURST_BYTES / RATE]


def test_without_a_limit_nobody_waits() -> None:
    """No rate, no pause."""
    assert [unlimited().take(10**12) for _ in range(3)] == [0.0, 0.0, 0.0]


@given(
    rates=st.tuples(st.integers(10, 1000), st.integers(10, 1000)),
    pieces=st.lists(st.integers(1, 500), min_size=1, max_size=20),
)
def test_of_several_limits_each_holds(rates: tuple[int, int], pieces: list[int]) -> None:
    """An agent's own rate and a topic's: what both would let through, no sooner than either alone."""

    def passing_s(*limits: int) -> float:
        hands = Hands()
        paces = [
            Throttle(bytes_per_s=rate, burst_bytes=1, clock=hands.clock, sleep=hands.sleep) for rate in limits
        ]
        waited_s = sum(InTurn(*paces).take(size) for size in pieces)
        assert abs(waited_s - sum(hands.slept)) < 1e-6
        return hands.now_s

    assert passing_s(*rates) >= max(passing_s(rate) for rate in rates) - 1e-6
