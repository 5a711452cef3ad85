"""Declared changes as bytes and in order: which of them count, and what is in force at an offset."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.policy import EMPTY, Policy, read_policy
from rules.policy.difference import changes
from rules.policy.events import policy_declared
from rules.policy.record import (
    Base,
    DeclaredChange,
    RecordMalformed,
    RecordTooNew,
    declared_change,
    decode,
    encode,
)
from rules.policy.timeline import Applied, PolicyUnknown, Reason, Timeline
from tests.rules.policies import policies

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def _policy(days: int) -> Policy:
    return read_policy({"topics": {"*": {"total_retention_ms": f"{days}d"}}})


def _change(days: int, base: Base | None = None, cluster_id: str = CLUSTER) -> DeclaredChange:
    return declared_change(
        policy=_policy(days),
        base=base,
        cluster_id=cluster_id,
        principal="alice",
        change_id=f"CHG-{days}",
        occurred_at_ms=1_700_000_000_000,
    )


def _followed(values: Iterable[bytes | None]) -> Timeline:
    timeline = Timeline(cluster_id=CLUSTER)
    for value in values:
        timeline = timeline.follow(timeline.next_offset, value)
    return timeline


def _newer() -> bytes:
    """A record of a version that is not known here."""
    return json.dumps({"version": 2, "whatever": True}).encode()


# The bytes.


@pytest.mark.slow
@given(
    policy=policies,
    base=st.none() | st.builds(Base, st.integers(0, 2**63 - 1), st.text(max_size=64)),
    names=st.tuples(*[st.text(max_size=20)] * 3),
    occurred_at_ms=st.integers(0, 2**63 - 1),
)
def test_change_reads_back_from_its_bytes(
    policy: Policy, base: Base | None, names: tuple[str, str, str], occurred_at_ms: int
) -> None:
    """Nothing of a change is lost in the topic."""
    cluster_id, principal, change_id = (name.encode("utf-8", "replace").decode() for name in names)
    change = declared_change(
        policy=policy,
        base=base,
        cluster_id=cluster_id,
        principal=principal,
        change_id=change_id,
        occurred_at_ms=occurred_at_ms,
    )

    assert decode(encode(change)) == change


def test_names_of_tomorrow_are_ignored() -> None:
    """A newer Seawall may add to a record without shutting older ones out."""
    change = _change(7)
    tree = {**json.loads(encode(change)), "approved_by": ["bob"]}

    assert decode(json.dumps(tree).encode()) == change


@pytest.mark.parametrize(
    ("differing", "error"),
    [
        ({"version": 2}, RecordTooNew),
        ({"version": 0}, RecordMalformed),
        ({"version": True}, RecordMalformed),
        ({"principal": None}, RecordMalformed),
        ({"occurred_at_ms": "now"}, RecordMalformed),
        ({"base": {"offset": 3}}, RecordMalformed),
        ({"policy_hash": "0" * 64}, RecordMalformed),
        ({"policy": {"topics": {"*": {"key_of_tomorrow": True}}}}, RecordTooNew),
    ],
)
def test_what_cannot_be_read_is_told_from_what_cannot_be(
    differing: dict[str, Any], error: type[Exception]
) -> None:
    """A newer version, or a policy with a key of tomorrow, may well count; what contradicts itself cannot."""
    tree = {**json.loads(encode(_change(7))), **differing}

    with pytest.raises(error):
        decode(json.dumps(tree).encode())


@given(value=st.binary(max_size=40) | st.none() | st.just(b"[" * 100_000))
def test_bytes_of_strangers_are_malformed_and_nothing_else(value: bytes | None) -> None:
    """Anyone with the right to write can put anything into the topic."""
    with pytest.raises(RecordMalformed):
        decode(value)


# Which changes count.


def test_nothing_is_in_force_before_the_first_change() -> None:
    """An empty topic is an answer: only defaults hold."""
    assert _followed([]).in_force() is None


def test_changes_that_follow_each_other_count() -> None:
    """Each is based on the one before, and each was in force from its offset to the next one's."""
    first = Applied(offset=0, change=_change(30))
    second = Applied(offset=1, change=_change(7, first.as_base))

    timeline = _followed([encode(first.change), encode(second.change)])

    assert timeline.applied == (first, second)
    assert (timeline.at(0), timeline.at(1), timeline.in_force()) == (first, second, second)


def test_of_two_changes_with_one_base_the_first_counts() -> None:
    """Neither of two people who declare at the same time undoes what the other has, unseen."""
    first = Applied(offset=0, change=_change(30))
    winner, loser = _change(7, first.as_base), _change(90, first.as_base)

    timeline = _followed(encode(change) for change in (first.change, winner, loser))

    assert timeline.in_force() == Applied(offset=1, change=winner)
    (passed,) = timeline.passed_over
    assert (passed.offset, passed.reason, passed.event_id) == (2, Reason.OVERTAKEN, loser.event_id)
    assert timeline.find(loser.event_id) == passed


def test_base_is_its_offset_and_its_content() -> None:
    """A base that another record has taken the offset of, as after an unclean election, is not in force."""
    first = _change(30)
    mistaken = _change(7, base=Base(0, _policy(90).content_hash))

    timeline = _followed([encode(first), encode(mistaken)])

    assert timeline.in_force() == Applied(offset=0, change=first)


def test_change_sent_twice_counts_once() -> None:
    """A retry whose first attempt was not lost after all changes nothing."""
    first = _change(30)

    timeline = _followed([encode(first), encode(first)])

    assert timeline.applied == (Applied(offset=0, change=first),)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"not a record", Reason.MALFORMED),
        (None, Reason.MALFORMED),
        (encode(_change(7, cluster_id="of-a-mirror")), Reason.OTHER_CLUSTER),
    ],
)
def test_what_is_not_ours_is_passed_over_and_told(value: bytes | None, reason: Reason) -> None:
    """A stranger's record neither counts nor keeps those behind it from counting."""
    timeline = _followed([value, encode(_change(30))])

    assert [(each.offset, each.reason) for each in timeline.passed_over] == [(0, reason)]
    assert [each.offset for each in timeline.applied] == [1]


def test_after_a_record_of_a_newer_seawall_the_policy_is_unknown() -> None:
    """Unknown is not unchanged; what was in force before it is still known."""
    first = Applied(offset=0, change=_change(30))
    timeline = _followed([encode(first.change), _newer(), encode(_change(7, first.as_base))])

    with pytest.raises(PolicyUnknown):
        timeline.in_force()
    assert timeline.at(0) == first
    assert [each.reason for each in timeline.passed_over] == [Reason.OVERTAKEN]


def test_readable_change_based_on_an_unread_one_makes_the_policy_known_again() -> None:
    """Who made it had read the other."""
    known_again = _change(7, base=Base(1, "whatever the newer one declared"))

    timeline = _followed([encode(_change(30)), _newer(), encode(known_again)])

    assert timeline.in_force() == Applied(offset=2, change=known_again)
    with pytest.raises(PolicyUnknown):
        timeline.at(1)


def test_offset_that_was_not_read_yet_is_unknown() -> None:
    """An agent that lags does not take what it has for what is in force."""
    with pytest.raises(PolicyUnknown):
        _followed([encode(_change(30))]).at(1)


@pytest.mark.slow
@given(days=st.lists(st.tuples(st.integers(1, 9), st.integers(-1, 5)), max_size=8))
def test_every_reader_holds_the_same_to_be_in_force(days: list[tuple[int, int]]) -> None:
    """Each record's base is any earlier record or none: the chain of those that count is unbroken, always."""
    values: list[DeclaredChange] = []
    for each, back in days:
        based = len(values) - 1 - back  # -1: on itself, which is none
        base = Base(based, values[based].policy.content_hash) if 0 <= based < len(values) else None
        values.append(_change(each, base=base))

    timeline = _followed(encode(change) for change in values)

    expected: Base | None = None
    for applied in timeline.applied:
        assert applied.change.base == expected
        expected = applied.as_base
    assert len(timeline.applied) + len(timeline.passed_over) == len(values)


# The events.


def test_change_comes_to_one_event_for_each_key() -> None:
    """Each carries who declared it and why, and together they are the difference, ids stable."""
    first = Applied(offset=0, change=_change(30))
    second = Applied(offset=1, change=_change(7, first.as_base))

    events = [*policy_declared(None, first), *policy_declared(first, second)]

    assert [
        (each.principal, each.change_id, each.policy_offset, each.before, each.after) for each in events
    ] == [
        ("alice", "CHG-30", 0, None, "2592000000"),
        ("alice", "CHG-7", 1, "2592000000", "604800000"),
    ]
    assert events == [*policy_declared(None, first), *policy_declared(first, second)]
    assert len({each.event_id for each in events}) == 2


@pytest.mark.slow
@given(policy=policies)
def test_first_change_declares_every_key_of_every_table(policy: Policy) -> None:
    """Nothing that is in force came without an event."""
    change = declared_change(
        policy=policy, base=None, cluster_id=CLUSTER, principal="p", change_id="c", occurred_at_ms=0
    )

    events = list(policy_declared(None, Applied(offset=0, change=change)))

    assert [(each.pattern, each.key) for each in events] == [
        (each.pattern, each.key) for each in changes(EMPTY, policy)
    ]
    assert len({each.event_id for each in events}) == len(events)
