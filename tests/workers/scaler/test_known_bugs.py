"""What is known to go wrong in other scalers, by the name under which it was reported there."""

from __future__ import annotations

from itertools import pairwise

from tests.workers.scaler.seen import Seen, options, partition
from tests.workers.scaler.world import QUICK, FakeGroups, desk, wait_until
from workers.scaler.desk import Unknown
from workers.scaler.options import Options
from workers.scaler.values import Move, PartitionVerdict, Verdict


def roomy(**told: object) -> Options:
    """Of one partition, with room for replicas all the same."""
    return options(**{"balanced": "none", "allow_idle_consumers": True, "max_replicas": 8, **told})


def outs(seen: Seen) -> int:
    return sum(word.move is Move.OUT for word in seen.words)


def test_keda_exclude_persistent_lag_one_equal_poll_is_no_stall() -> None:
    """keda#7516: a commit each 5 s, looked at each 2 s, is the same in two of three looks and healthy: it is
    never left out, and all of its lag counts."""
    seen = Seen(options(sampling_interval_s=2.0))
    committed = 1_000

    for turn in range(200):
        if turn % 5 in (0, 3):  # at 0, 6 and 10 s: what commits each 5 s looks like
            committed += 50
        word = seen.see(partition(committed=committed, end=committed + 700), after_s=2.0)
        assert word.partitions[0].is_counted
        assert word.partitions[0].lag_records == 700

    assert not word.alerts


def test_keda_5906_a_partition_without_a_commit_whose_records_are_gone_has_no_lag() -> None:
    """Nothing was ever committed, and retention took everything: there is nothing to do, at whatever end
    offset, and a start of the group does not ask for the most replicas."""
    for reset in ("earliest", "latest"):
        seen = Seen(roomy(offset_reset=reset))
        for _ in range(40):
            word = seen.see(partition(committed=None, log_start=90_000, end=90_000))

        assert (word.lag_records, outs(seen)) == (0, 0)
        assert not word.alerts


def test_keda_5906_a_partition_that_never_has_a_commit_does_not_pin_the_most_replicas() -> None:
    """Its consumers are there and have never committed anything: that is a stall as any other, left out of
    the metric and alerted."""
    seen = Seen(roomy(offset_reset="earliest", stall_s=100.0))

    for turn in range(60):
        word = seen.see(
            partition(0, committed=None, end=5_000 + 10 * turn),
            partition(1, committed=10 * turn, end=10 * turn + 5),
            members=2,
        )

    assert word.partitions[0].verdict is PartitionVerdict.STALLED
    assert (word.lag_records, word.verdict) == (5, Verdict.LOW)
    assert "nothing was committed" in word.alerts[0]
    assert outs(seen) <= 1  # before it was known to be one


def test_keda_5675_the_markers_of_transactions_let_a_group_go_to_sleep() -> None:
    """Each partition keeps one offset that nobody can commit past: the group is idle all the same, and is not
    woken by them; the next real record wakes it."""
    seen = Seen(options(release_s=60.0))
    for number in range(30):
        asleep = seen.see(*(partition(n, committed=99, end=100) for n in range(3)), members=int(number < 20))

    awake = seen.see(
        partition(0, committed=99, end=102), *(partition(n, committed=99, end=100) for n in (1, 2)), members=0
    )

    assert (asleep.verdict, asleep.replicas) == (Verdict.IDLE, 0.0)
    assert (awake.is_active, awake.replicas) == (True, 1.0)


def test_keda_7092_scaling_out_that_lowers_the_throughput_is_not_gone_on_with() -> None:
    """What is behind the consumers is at its end, and more of them do less: one attempt, then it is frozen
    for all of the time that was set, and said."""
    seen = Seen(roomy(freeze_s=900.0))
    seen.lags([600 + 10 * n for n in range(13)], produced=100, members=2)

    lag = 720
    for _ in range(80):  # four members do 7/s where two did 9/s
        lag += 30
        seen.lags([lag], produced=100, members=4)

    assert outs(seen) == 1
    assert any(alert.startswith("ineffective") for alert in seen.words[-1].alerts)


def test_keda_4098_a_coordinator_that_moves_is_unknown_and_never_nothing() -> None:
    """While brokers are replaced nothing is known of the partitions: the word is unknown, what was wanted is
    kept, and nothing is scaled in, out or to nothing by it, then or afterwards."""
    seen = Seen(roomy())
    seen.lags([400] * 40, members=4)
    before = seen.words[-1]
    moving = [
        seen.see(partition(unknown="the coordinator is another broker"), members=0, membership="")
        for _ in range(60)
    ]

    after = seen.lags([400] * 4, members=4)

    assert {word.verdict for word in moving} == {Verdict.UNKNOWN}
    assert {word.replicas for word in moving} == {before.replicas} == {4.0}
    assert (after.is_known, after.is_active, after.replicas) == (True, True, 4.0)
    assert {word.move for word in seen.words} == {Move.HOLD}


def test_keda_4098_a_group_that_cannot_be_looked_at_is_unavailable() -> None:
    """The look itself fails: there is no number to give, so KEDA's fallback acts."""
    groups = FakeGroups(lag=30, members=3)
    with desk(groups) as one:
        key, _ = one.opened("shop", "orders", QUICK)
        wait_until(lambda: not isinstance(one.word(key), Unknown))
        groups.trouble = "not the coordinator"
        wait_until(lambda: isinstance(one.word(key), Unknown))
        word = one.word(key)

    assert isinstance(word, Unknown)
    assert "not the coordinator" in word.why


def test_the_prior_scalers_jump_from_nothing_to_the_total() -> None:
    """sarkarshuvojit/keda-persistent-kafka-lag-scaler says 0, then all of the lag, then 0: here a lag of a
    hundred thresholds moves what is wanted by steps, up and down."""
    seen = Seen(roomy(max_replicas=100, step_up=4, step_down=1))
    seen.lags([0] * 20, members=1)
    for turn in range(60):
        seen.lags([50_000 + turn], members=max(1, int(seen.words[-1].replicas)))
    seen.lags([0] * 300, members=8, produced=10)

    wanted = [word.replicas for word in seen.words if word.is_known]
    steps = [after - before for before, after in pairwise(wanted)]

    assert max(wanted) > 4
    assert (max(steps) <= 4, min(steps) >= -1) == (True, True)


def test_the_prior_scalers_stretch_that_is_over() -> None:
    """There any persistent stretch in the window is enough, though the lag is gone: here it has to be now."""
    before = Seen(roomy())
    before.lags([900] * 20)
    assert outs(before) == 1

    anew = Seen(roomy(), window=before.window, now_s=before.now_s, end=before.end)
    word = anew.lags([0] * 3)

    assert outs(anew) == 0
    assert word.verdict is Verdict.LOW
