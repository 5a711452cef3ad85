"""Objects that are asked for, and the last word on each."""

from __future__ import annotations

import pytest

from tests.workers.scaler.world import QUICK, FakeGroups, desk, wait_until
from workers.scaler.chain import Link
from workers.scaler.desk import Desk, TooMany, Unknown
from workers.scaler.options import OptionRefused, Options
from workers.scaler.ports import InMemoryLog, Unwritten
from workers.scaler.values import Evaluation, Sample


def known(at: Desk, key: str) -> Evaluation | None:
    word = at.word(key)
    return word if isinstance(word, Evaluation) else None


def test_a_word_comes_from_samples_and_goes_with_them() -> None:
    """Unknown before there are samples, known after three, unknown again when they end; never zero."""
    groups = FakeGroups(lag=30)
    with desk(groups) as at:
        key, _ = at.opened("ns", "orders", QUICK)
        first = at.word(key)
        wait_until(lambda: known(at, key) is not None)
        groups.trouble = "the coordinator moved"
        wait_until(lambda: known(at, key) is None)
        last = at.word(key)

    assert isinstance(first, Unknown)
    assert isinstance(last, Unknown)
    assert "the coordinator moved" in last.why


def test_two_objects_of_one_group_are_one_sampler() -> None:
    """One look for both, however many ask."""
    groups = FakeGroups(lag=30)
    with desk(groups) as at:
        keys = [at.opened("ns", name, QUICK)[0] for name in ("a", "b") for _ in range(5)]
        wait_until(lambda: all(known(at, key) for key in keys))

    assert groups.looks - at.counts.samples in (0, 1)
    assert len(set(keys)) == 2


def test_replicas_share_their_looks_and_say_the_same() -> None:
    """Two desks on one log: they take turns, and have the same last word for the same place."""
    groups, shared = FakeGroups(lag=30), InMemoryLog()
    with desk(groups, shared, by="a") as one, desk(groups, shared.another_reader(), by="b") as other:
        key = one.opened("ns", "orders", QUICK)[0]
        assert other.opened("ns", "orders", QUICK)[0] == key
        wait_until(lambda: len(shared.links) > 12)

    places = [each.place for each in shared.links]
    by_place = {each.place: each for each in reversed(shared.links)}  # the first of two is the one
    assert sorted(by_place) == list(range(max(places) + 1))
    for at in (one, other):
        last = at._chains[key].last
        assert last is not None
        assert last == by_place[last.place]


def test_what_was_known_is_known_after_a_restart() -> None:
    """The log has it: another process does not wait for three samples."""
    groups, shared = FakeGroups(lag=30), InMemoryLog()
    told = {**QUICK, "gapMaxSeconds": "60"}  # a slow start is no gap
    with desk(groups, shared) as before:
        key = before.opened("ns", "orders", told)[0]
        wait_until(lambda: known(before, key) is not None)
    groups.trouble = "no more samples"

    with desk(groups, shared.another_reader(), by="b") as after:
        after.opened("ns", "orders", told)
        wait_until(lambda: known(after, key) is not None)
        word = known(after, key)

    assert word is not None
    assert word.lag_records == 30


def test_a_link_that_cannot_be_written_is_no_word() -> None:
    """What is said was read from the log: one that takes nothing leaves nothing to say, and why."""

    class Full(InMemoryLog):
        def append(self, link: Link) -> None:
            raise Unwritten("the topic takes nothing")

    with desk(FakeGroups(lag=30), Full()) as at:
        key, _ = at.opened("ns", "orders", QUICK)
        wait_until(lambda: at.counts.unwritten > 1)
        word = at.word(key)

    assert isinstance(word, Unknown)
    assert "takes nothing" in word.why


def test_what_nobody_asks_for_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """KEDA has no call to say that an object is gone: its sampler ends, and begins again with the next
    call.
    """
    monkeypatch.setattr("workers.scaler.desk.FORGET_S", 0.3)
    groups = FakeGroups(lag=30)
    with desk(groups) as at:
        key, _ = at.opened("ns", "orders", QUICK)
        wait_until(lambda: not at.words())
        gone = at.word(key)
        at.opened("ns", "orders", QUICK)
        wait_until(lambda: known(at, key) is not None)

    assert isinstance(gone, Unknown)


def test_a_defect_in_looking_is_told_and_looking_goes_on() -> None:
    """Whatever a client raises, the group is looked at again."""

    class Broken(FakeGroups):
        def look(self, options: Options) -> Sample:
            if self.looks < 2:
                self.looks += 1
                raise ValueError("not of ours")
            return super().look(options)

    groups = Broken(lag=30)
    with desk(groups) as at:
        key, _ = at.opened("ns", "orders", QUICK)
        wait_until(lambda: known(at, key) is not None)

    assert at.counts.unseen == 2


def test_more_objects_than_are_seen_to_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit, and one that is already seen to is not over it."""
    monkeypatch.setattr("workers.scaler.desk.OBJECTS_MAX", 1)
    with desk(FakeGroups()) as at:
        key, _ = at.opened("ns", "orders", QUICK)
        with pytest.raises(TooMany):
            at.opened("ns", "other", QUICK)
        again, _ = at.opened("ns", "orders", QUICK)

    assert again == key


def test_a_cluster_that_nobody_named_is_refused_by_its_key() -> None:
    """Where credentials go is the operator's to say."""
    with desk(FakeGroups()) as at, pytest.raises(OptionRefused) as refused:
        at.opened("ns", "orders", {**QUICK, "cluster": "elsewhere"})

    assert refused.value.key == "cluster"
