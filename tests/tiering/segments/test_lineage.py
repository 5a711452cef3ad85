"""Which offsets of a copy are the log's, against a comparison of every offset by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tiering.segments.lineage import Epochs, UnknownBelow, covered_until, epoch_at, extended, fork
from tiering.segments.records import EpochStart

LAST = 24


def epochs(*pairs: tuple[int, int]) -> Epochs:
    return tuple(EpochStart(*pair) for pair in pairs)


@st.composite
def histories(draw: st.DrawFn, first: int | None = None) -> Epochs:
    """Epochs 0..5, starts within LAST offsets."""
    begin = draw(st.integers(0, LAST - 1)) if first is None else first
    starts = sorted({begin} | draw(st.sets(st.integers(begin, LAST - 1), max_size=3)))
    numbers = sorted(draw(st.sets(st.integers(0, 5), min_size=len(starts), max_size=len(starts))))
    return epochs(*zip(numbers, starts, strict=True))


def offset_by_offset(lineage: Epochs, base: int, end: int, own: Epochs) -> int:
    """`covered_until` as its docstring has it, one offset after the other."""
    compared = range(max(base, lineage[0].start_offset), end)
    same = [epoch_at(lineage, offset) == epoch_at(own, offset) for offset in compared]
    agreeing = same.index(False) if False in same else len(same)
    if agreeing == 0 or any(same[agreeing:]):
        return base
    return compared[0] + agreeing


@given(st.data())
def test_a_copy_is_the_logs_up_to_the_first_difference(data: st.DataObject) -> None:
    """T6: the prefix that agrees in every offset; nothing at all if it agrees again after a difference."""
    base = data.draw(st.integers(0, LAST - 1))
    end = data.draw(st.integers(base + 1, LAST))
    own = data.draw(histories(base))
    lineage = data.draw(histories())

    assert covered_until(lineage, base, end, own) == offset_by_offset(lineage, base, end, own)


def test_hard_cases_by_name() -> None:
    """What the log's history makes of a copy of [10, 20) that was begun in epoch 1 and ended in epoch 2."""
    own = epochs((1, 10), (2, 15))

    assert covered_until(epochs((1, 0), (2, 15)), 10, 20, own) == 20  # the same history
    assert covered_until(epochs((1, 0), (2, 15), (3, 18)), 10, 20, own) == 18  # forked inside epoch 2
    assert covered_until(epochs((1, 0), (3, 12)), 10, 20, own) == 12  # epoch 2 never was
    assert covered_until(epochs((0, 0), (3, 9)), 10, 20, own) == 10  # nor was epoch 1
    assert covered_until(epochs((1, 0), (2, 14)), 10, 20, own) == 10  # another start: not Kafka's
    assert covered_until(epochs((2, 15)), 10, 20, own) == 20  # cut at 15, and what agrees there agrees before
    assert covered_until(epochs((2, 17)), 10, 20, own) == 20  # cut at 17, its first entry moved up
    assert covered_until(epochs((3, 20)), 10, 20, own) == 10  # nothing is known so far down


def test_where_histories_part() -> None:
    """The first offset whose record is another, where one of them goes on with an epoch of its own."""
    old = epochs((1, 0), (2, 15))

    assert fork(old, old) is None
    assert fork(old, epochs((1, 0), (3, 12))) == 12
    assert fork(old, epochs((1, 0), (2, 15), (4, 40))) == 40
    assert fork(old, epochs((2, 20))) is None
    assert fork(old, epochs((0, 0), (2, 15))) == 0


@given(histories(0), st.integers(0, LAST))
def test_a_cut_history_is_made_whole_again(whole: Epochs, local_start: int) -> None:
    """Whatever a broker cut off its own history at its local start, the log's record knows."""
    kept = [each for each in whole if each.start_offset > local_start]
    live = (EpochStart(epoch_at(whole, local_start) or 0, local_start), *kept)

    assert extended(whole, live) == whole
    assert extended(None, live) == live


def test_a_boundary_that_nobody_knows_is_not_guessed() -> None:
    """The local history begins with an epoch that the log's record never heard of."""
    assert extended(epochs((0, 0)), epochs((2, 50))) == UnknownBelow(offset=50, epoch=2)
    assert extended(epochs((0, 0), (2, 60)), epochs((2, 50))) == UnknownBelow(offset=50, epoch=2)


@given(st.data())
def test_without_unclean_elections_every_copy_still_counts_where_it_did(data: st.DataObject) -> None:
    """T6: a history cut above an unknown epoch takes nothing from copies of what was committed before."""
    whole = data.draw(histories(0))
    committed = data.draw(st.integers(whole[-1].start_offset + 1, LAST))
    cut = data.draw(st.integers(committed, LAST + 4))
    live = epochs((7, cut), (8, cut + 2))
    lineage = extended(whole, live, committed_survives=True)
    assert not isinstance(lineage, UnknownBelow)

    base = data.draw(st.integers(0, committed - 1))
    end = data.draw(st.integers(base + 1, committed))
    own = (
        EpochStart(epoch_at(whole, base) or 0, base),
        *(each for each in whole if base < each.start_offset < end),
    )

    assert covered_until(lineage, base, end, own) == end
    assert [epoch_at(lineage, offset) for offset in (cut, cut + 2)] == [7, 8]


def test_where_no_copy_is_read_the_brokers_history_will_do() -> None:
    """Nothing in the tier, or all of it expired: there is nothing to be wrong about."""
    before, live = epochs((0, 0)), epochs((2, 50))

    assert extended(before, live, unread_below=50) == live
    assert extended(before, live, unread_below=49) == UnknownBelow(offset=50, epoch=2)


def test_a_fork_below_the_local_start_is_taken_from_the_broker() -> None:
    """An unclean election: the record says epoch 2 from 40 on, the broker that leads has epoch 1 at 50."""
    before = epochs((0, 0), (1, 20), (2, 40))

    assert extended(before, epochs((1, 50), (3, 80))) == epochs((0, 0), (1, 20), (3, 80))
