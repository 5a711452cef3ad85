"""What is said of a group, and the order of what has a say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workers.scaler.seen import Seen, options, partition
from workers.scaler.options import Options
from workers.scaler.values import Move, PartitionSample, Verdict


def roomy(**told: object) -> Options:
    """Of one partition, with room for replicas all the same."""
    return options(**{"balanced": "none", "allow_idle_consumers": True, "max_replicas": 8, **told})


def rules(seen: Seen) -> list[str]:
    return [reason.rule for reason in seen.words[-1].reasons]


def moves(seen: Seen) -> list[Move]:
    return [word.move for word in seen.words if word.move is not Move.HOLD]


def test_a_spike_that_goes_away_scales_nothing() -> None:
    """Above the threshold for less than all of the time."""
    seen = Seen(roomy())

    seen.lags([10] * 5 + [2_000] * 11 + [10] * 10)

    assert moves(seen) == []
    assert Verdict.TRANSIENT in {word.verdict for word in seen.words}


def test_one_sample_below_ends_the_time() -> None:
    """Persistent is all of the time: without smoothing one dip begins it anew."""
    seen = Seen(roomy(smoothing="none"))

    seen.lags(([600] * 11 + [100]) * 4)

    assert moves(seen) == []


def test_a_dip_to_the_exit_ends_the_time_though_smoothing_hides_it() -> None:
    """Who commits once a minute has caught up for one sample in six: the median never sees it."""
    seen = Seen(roomy())

    seen.lags(([900, 900, 900, 900, 900, 5]) * 10)

    assert moves(seen) == []


def test_a_lag_that_stays_scales_out_with_its_samples() -> None:
    """At the threshold for all of 120 s; the reason says of which time it speaks."""
    seen = Seen(roomy())

    word = seen.lags([500] * 13)

    assert (word.move, word.replicas) == (Move.OUT, 2.0)
    persistent = next(reason for reason in word.reasons if reason.rule == "persistent")
    assert (persistent.from_s, persistent.to_s) == (10.0, 130.0)


def test_a_lag_that_falls_is_recovering() -> None:
    """However long it is above the threshold."""
    seen = Seen(roomy())

    word = seen.lags(list(range(100_000, 60_000, -400)))

    assert (word.verdict, moves(seen)) == (Verdict.RECOVERING, [])


def test_a_gap_in_the_samples_is_no_persistence() -> None:
    """What nobody saw was not above the threshold."""
    seen = Seen(roomy())
    seen.lags([600] * 6)

    word = seen.see(partition(committed=0, end=2_000_000), after_s=31.0)
    later = seen.lags([600] * 4)

    assert word.verdict is Verdict.UNKNOWN
    assert (later.verdict, moves(seen)) == (Verdict.TRANSIENT, [])


def test_nothing_is_known_before_there_are_samples() -> None:
    """A cold start is unknown, and neither active nor idle by it."""
    seen = Seen(roomy())

    known = [seen.lags([600]).is_known for _ in range(4)]

    assert known == [False, False, True, True]


def test_between_the_thresholds_nothing_moves() -> None:
    """Two thresholds: 250 to 500."""
    seen = Seen(roomy())

    word = seen.lags([300, 480, 260, 499] * 50)

    assert (word.verdict, moves(seen)) == (Verdict.BETWEEN, [])


def test_scaling_in_waits_for_its_own_time_and_the_cool_down() -> None:
    """Low for 300 s, and 300 s after whatever was last done; one step each time."""
    seen = Seen(roomy())
    seen.lags([10] * 100, members=4)

    downs = [word.at_s for word in seen.words if word.move is Move.IN]

    assert downs == [310.0, 610.0, 910.0]
    assert seen.words[-1].replicas == 1.0


def test_replicas_that_are_needed_are_not_taken_away() -> None:
    """The lag is low because they are there: each of the four does 9.5/s and more, and 36/s come."""
    seen = Seen(roomy())
    seen.lags([1_000 + 10 * n for n in range(12)], produced=200, members=2)  # what a replica does: 9.5/s

    seen.lags([1_110 - 100 * n for n in range(11)] + [5] * 200, produced=360, members=4)

    assert Move.IN not in moves(seen)
    assert "enough to do" in rules(seen)


def test_what_is_wanted_follows_from_the_rates() -> None:
    """Two do 10/s each; 30/s come and 2,500 wait, to be gone in 300 s: 3.8 are wanted, at once."""
    seen = Seen(roomy(lag_threshold=1_200, lag_threshold_exit=600))

    word = seen.lags([1_200 + 100 * n for n in range(1, 25)], produced=300, members=2)
    out = next(word for word in seen.words if word.move is Move.OUT)

    assert 3.7 < out.replicas < 3.9
    assert out.replicas % 1
    assert word.replicas == out.replicas


def test_a_group_that_changed_is_left_alone() -> None:
    """A rebalance makes lag of itself."""
    seen = Seen(roomy())
    seen.lags([600] * 12)

    word = seen.lags([600], members=2)
    after = seen.lags([600] * 3, members=2)

    assert (word.move, after.move) == (Move.HOLD, Move.OUT)
    assert any(reason.rule == "rebalance quiet" for reason in word.reasons)


def test_a_group_that_never_settles_is_alerted() -> None:
    """Quiet for ever would be silence."""
    seen = Seen(roomy())

    for turn in range(30):
        word = seen.see(partition(committed=turn * 10, end=5_000 + turn * 20), membership=f"m{turn}")

    assert moves(seen) == []
    assert any(alert.startswith("unsettled") for alert in word.alerts)


def test_scaling_out_that_did_not_help_is_not_repeated() -> None:
    """Twice the members consume the same: what holds them up is elsewhere. Frozen, and alerted."""
    seen = Seen(roomy())
    seen.lags([600 + 10 * n for n in range(13)], produced=100, members=2)
    assert moves(seen) == [Move.OUT]

    seen.lags([800 + 10 * n for n in range(60)], produced=100, members=4)

    assert moves(seen) == [Move.OUT]
    assert any(alert.startswith("ineffective") for alert in seen.words[-1].alerts)


def test_replicas_that_do_not_come_are_not_asked_for_again() -> None:
    """Pods that are pending: more of them would be pending too."""
    seen = Seen(roomy())

    seen.lags([600 + n for n in range(40)], members=2)

    assert moves(seen) == [Move.OUT]
    assert any(alert.startswith("not come") for alert in seen.words[-1].alerts)


def test_lag_in_time_scales_out_below_the_threshold_in_records() -> None:
    """Ten records a minute, five of them waiting for 300 s and more."""
    seen = Seen(roomy(age_threshold_s=120.0))

    for turn in range(40):
        seen.see(partition(committed=turn, end=turn + 40))

    assert Move.OUT in moves(seen)
    assert "has waited" in " ".join(r.text for word in seen.words for r in word.reasons)


def test_a_group_that_keeps_up_is_not_put_to_sleep() -> None:
    """No lag is not the same as nothing to do."""
    seen = Seen(roomy())

    word = seen.lags([0] * 100)

    assert (word.is_active, word.replicas) == (True, 1.0)


def test_a_group_with_nothing_to_do_sleeps_and_wakes() -> None:
    """Nothing waits and nothing came for 300 s; then one record."""
    seen = Seen(roomy())
    seen.lags([0] * 2)

    asleep = seen.lags([0] * 35, produced=0)
    awake = seen.lags([1], produced=1, members=0)

    assert (asleep.verdict, asleep.is_active, asleep.replicas) == (Verdict.IDLE, False, 0.0)
    assert (awake.is_active, awake.replicas) == (True, 1.0)


def test_a_sleeping_group_is_not_woken_by_a_start() -> None:
    """Nobody there, nothing waits: that is idle, whoever has just begun to look."""
    seen = Seen(roomy())

    word = seen.lags([0] * 3, produced=0, members=0)

    assert (word.verdict, word.is_active) == (Verdict.IDLE, False)


def test_partitions_that_are_not_known_set_nothing_low() -> None:
    """The rest may say that it wants more, and nothing else."""
    gone = partition(1, unknown="no leader")
    low, high = Seen(roomy()), Seen(roomy())

    for turn in range(14):
        of_low = low.see(partition(committed=turn, end=turn), gone)
        of_high = high.see(partition(committed=turn, end=turn * 20 + 800), gone)

    assert (of_low.verdict, of_high.verdict) == (Verdict.UNKNOWN, Verdict.PERSISTENT)


@pytest.mark.parametrize(
    ("partitions", "asked"),
    [((), ()), ((partition(committed=1, end=2),), (7,)), ((partition(unknown="no leader"),), ())],
)
def test_no_partitions_are_not_an_empty_backlog(
    partitions: tuple[PartitionSample, ...], asked: tuple[int, ...]
) -> None:
    """A topic without any, without those that are asked for, or without any that is known."""
    seen = Seen(roomy(partitions=asked))

    words = [seen.see(*partitions) for _ in range(5)]

    assert {word.verdict for word in words} == {Verdict.UNKNOWN}


LAGS = st.lists(st.integers(0, 2_000), min_size=1, max_size=80)


@settings(max_examples=60, deadline=None)
@given(LAGS)
def test_the_same_samples_give_the_same_words(lags: list[int]) -> None:
    """A fold: replicas of the scaler that see the same say the same."""
    one, other = Seen(roomy()), Seen(roomy())
    one.lags(lags)
    other.lags(lags)

    assert (one.words, one.state) == (other.words, other.state)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(251, 499), min_size=5, max_size=80), st.integers(1, 8))
def test_nothing_oscillates_inside_the_band(lags: list[int], members: int) -> None:
    """Whatever the lag does between the thresholds, no replica comes or goes."""
    seen = Seen(roomy())
    seen.lags(lags, members=members)

    assert moves(seen) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 900), min_size=5, max_size=80))
def test_a_lag_that_only_falls_never_scales_out(falls: list[int]) -> None:
    """From wherever, by whatever steps."""
    lag, lags = sum(falls) + 600, []
    for fall in falls:
        lag -= fall + 1 if lag > fall else 0
        lags.append(lag)
    seen = Seen(roomy())
    strictly = [each for n, each in enumerate(lags) if n == 0 or each < lags[n - 1]]
    seen.lags(strictly)

    assert Move.OUT not in moves(seen)


@settings(max_examples=40, deadline=None)
@given(LAGS, st.integers(0, 3_000))
def test_more_lag_never_wants_less(lags: list[int], more: int) -> None:
    """At the first scaling out: a lag that is higher throughout is out no later."""
    one, other = Seen(roomy()), Seen(roomy())
    one.lags(lags)
    other.lags([lag + more for lag in lags])

    def first(seen: Seen) -> float:
        return next((word.at_s for word in seen.words if word.move is Move.OUT), float("inf"))

    assert first(other) <= first(one)
