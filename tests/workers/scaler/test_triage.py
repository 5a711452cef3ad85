"""Each named rule: what a partition's lag is worth, and whether replicas would help."""

from __future__ import annotations

import pytest

from tests.workers.scaler.seen import Seen, options, partition
from workers.scaler.values import Evaluation, PartitionVerdict, Verdict


def verdict(word: Evaluation, number: int = 0) -> tuple[PartitionVerdict, int]:
    judged = word.partitions[number]
    return judged.verdict, judged.lag_records


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 70), ("latest", 0)])
def test_no_commit_yet_counts_from_where_the_group_begins(reset: str, expected: int) -> None:
    """`earliest` has all of the log before it, `latest` nothing: neither is a made-up one record."""
    seen = Seen(options(offset_reset=reset))

    for _ in range(4):
        word = seen.see(partition(committed=None, end=100, log_start=30))

    assert verdict(word)[1] == expected
    assert (verdict(word)[0] is PartitionVerdict.NO_COMMIT) == (reset == "earliest") or expected == 0


def test_no_commit_and_no_consumer_counts_what_came_since() -> None:
    """With `latest` and nobody there, what arrives is what a consumer is wanted for: it wakes the group."""
    seen = Seen(options())
    for _ in range(4):
        asleep = seen.see(partition(committed=None, end=100), members=0)

    awake = seen.see(partition(committed=None, end=107), members=0)

    assert (asleep.is_active, asleep.verdict) == (False, Verdict.IDLE)
    assert awake.is_active
    assert verdict(awake) == (PartitionVerdict.NO_COMMIT, 7)


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 40), ("latest", 0)])
def test_log_start_past_the_commit_is_alerted(reset: str, expected: int) -> None:
    """Records are gone unread. They are no lag: nobody can read them."""
    seen = Seen(options(offset_reset=reset))

    for _ in range(4):
        word = seen.see(partition(committed=10, log_start=60, end=100))

    assert verdict(word) == (PartitionVerdict.TRIMMED, expected)
    assert "50 offsets are gone unread" in word.alerts[0]


def test_a_topic_made_anew_is_another_topic() -> None:
    """Nothing that was seen of the old one counts, and its commits are past the new one's end."""
    seen = Seen(options(offset_reset="earliest"))
    seen.lags([900] * 13)

    first = seen.see(partition(committed=5_000, end=3), topic_id="U")
    for _ in range(3):
        word = seen.see(partition(committed=5_000, end=3), topic_id="U")

    assert first.verdict is Verdict.UNKNOWN
    assert verdict(word) == (PartitionVerdict.TRIMMED, 3)
    assert "past the log's end" in word.alerts[0]


def test_an_added_partition_neither_ends_nor_makes_a_persistent_time() -> None:
    """Before it was there it had no lag."""
    persistent, fresh = Seen(options()), Seen(options())
    for turn in range(16):
        old = partition(committed=0, end=600 + turn)
        low = partition(committed=0, end=1)
        added = (partition(1, committed=0, end=900),) if turn > 10 else ()
        of_persistent = persistent.see(old, *added)
        of_fresh = fresh.see(low, *added)

    assert of_persistent.verdict is Verdict.PERSISTENT
    assert of_fresh.verdict is Verdict.TRANSIENT


def test_the_tail_of_a_transaction_marker_is_no_lag() -> None:
    """One offset stands still with a consumer there; the group may go to sleep, and does not wake for it."""
    seen = Seen(options(release_s=60.0))

    for _ in range(12):
        word = seen.see(partition(committed=99, end=100))
    asleep = seen.see(partition(committed=99, end=100), members=0)
    for _ in range(12):
        later = seen.see(partition(committed=99, end=100), members=0)

    assert verdict(word) == (PartitionVerdict.MARKER_TAIL, 0)
    assert not asleep.is_active
    assert not later.is_active
    assert not word.alerts


def test_a_marker_that_was_looked_at_is_no_lag_at_once() -> None:
    """Whoever read behind the commit and found nothing need not wait."""
    seen = Seen(options())

    for _ in range(3):
        word = seen.see(partition(committed=98, end=100, tail_is_marker=True))

    assert verdict(word) == (PartitionVerdict.MARKER_TAIL, 0)


def test_one_record_for_nobody_wakes_the_group() -> None:
    """A lag of one that was never seen with a consumer there is a record."""
    seen = Seen(options())
    for _ in range(4):
        seen.see(partition(committed=99, end=99), members=0)

    word = seen.see(partition(committed=99, end=100), members=0)

    assert word.is_active


def test_a_stalled_partition_is_left_out_and_alerted() -> None:
    """Its lag grows for ever and replicas cannot help: the metric does not see it."""
    seen = Seen(options(stall_s=100.0))

    for turn in range(30):
        word = seen.see(
            partition(0, committed=50, end=5_000 + 100 * turn),
            partition(1, committed=100 * turn, end=100 * turn + 10),
        )

    assert verdict(word)[0] is PartitionVerdict.STALLED
    assert (word.lag_records, word.verdict, word.is_active) == (10, Verdict.LOW, True)
    assert "partition 0 is stalled" in word.alerts[0]


def test_members_that_die_at_one_record_are_a_poisoned_partition() -> None:
    """The commit stays while members come and go."""
    seen = Seen(options(stall_s=100.0))

    for turn in range(30):
        word = seen.see(partition(committed=50, end=5_000 + turn), members=turn % 2, membership=f"m{turn}")

    assert verdict(word)[0] is PartitionVerdict.POISONED
    assert word.alerts


def test_nobody_there_is_not_stalled() -> None:
    """Where no consumer is, a replica does help: the lag counts."""
    seen = Seen(options(stall_s=100.0))

    for _ in range(30):
        word = seen.see(partition(committed=50, end=5_000), members=0)

    assert verdict(word) == (PartitionVerdict.PERSISTENT, 4_950)


def test_a_commit_that_went_back_is_told() -> None:
    """An operator's rewind makes real work: it counts, and is said."""
    seen = Seen(options())
    seen.lags([0, 0, 0])

    word = seen.see(partition(committed=10, end=1_000_300))

    assert verdict(word)[0] is PartitionVerdict.REWOUND
    assert "rewound" in word.alerts[0]


def test_age_is_told_by_the_ends_that_were_sampled() -> None:
    """The oldest record that waits came after the last sample whose end the commit has reached."""
    seen = Seen(options())

    for end in (0, 10, 20, 30, 40):
        word = seen.see(partition(committed=10, end=end))

    assert word.partitions[0].age_s == 20.0
