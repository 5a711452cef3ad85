"""One history, whoever writes it and whoever reads it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workers.scaler.seen import options, partition, sample
from workers.scaler.chain import Chain, Link, object_key
from workers.scaler.codec import NotReadable, dumps, loads, to_json
from workers.scaler.values import Move, Sample

OPTIONS = options(balanced="none", allow_idle_consumers=True, max_replicas=8)
KEY = object_key("ns", "orders", OPTIONS)


def lagging(lag: int, turn: int) -> Sample:
    return sample(0.0, partition(committed=100 * turn, end=100 * turn + lag))


def link(chain: Chain, lag: int, now_s: float, by: str = "a") -> Link:
    return chain.next(KEY, OPTIONS, lagging(lag, round(now_s)), by=by, now_s=now_s, wall_s=1_000.0 + now_s)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2_000)), min_size=1, max_size=40), st.data())
def test_replicas_agree_wherever_they_began_to_read(
    turns: list[tuple[str, int]], drawn: st.DataObject
) -> None:
    """Three write, sometimes two for one place; a fourth reads from the middle: all come to the same
    words.
    """
    log: list[Link] = []
    readers = {by: Chain() for by in "abc"}
    for turn, (by, lag) in enumerate(turns):
        written = [link(readers[by], lag, 10.0 * turn, by)]
        if drawn.draw(st.booleans()):
            written.append(link(readers["a"], lag + 1, 10.0 * turn, "late"))
        log += written
        for reader in readers.values():
            taken = [reader.take(each, now_s=10.0 * turn) for each in written]
            assert taken == [True] + [False] * (len(written) - 1)
    late = Chain()
    for each in log[drawn.draw(st.integers(0, len(log) - 1)) :]:
        late.take(each, now_s=0.0)

    assert len({(repr(reader.last), repr(reader.window)) for reader in readers.values()}) == 1
    assert late.last is not None
    assert late.last.place == len(turns) - 1


def test_a_restart_goes_on_where_the_log_ends() -> None:
    """A lag that was high for 100 s before scales out 20 s after: nothing begins anew."""
    before, after = Chain(), Chain()
    for turn in range(11):
        written = link(before, 600, 10.0 * turn)
        before.take(written, now_s=10.0 * turn)
        after.take(loads(Link, dumps(written)), now_s=5_000.0, age_s=100.0 - 10.0 * turn)

    words = []
    for turn in range(1, 3):
        written = link(after, 600, 5_000.0 + 10.0 * turn, "b")
        after.take(written, now_s=5_000.0 + 10.0 * turn)
        words.append(written.word.move)

    assert words == [Move.HOLD, Move.OUT]


def test_a_clock_of_another_machine_is_carried_on() -> None:
    """Each begins its monotonic clock elsewhere; in the chain ten seconds are ten seconds."""
    one, other = Chain(), Chain()
    first = link(one, 600, 7.0)
    one.take(first, now_s=7.0)
    other.take(first, now_s=90_000.0)

    second = link(other, 600, 90_010.0, "b")

    assert second.sample.at_s - first.sample.at_s == pytest.approx(10.0)


def test_a_link_is_read_as_it_was_written() -> None:
    """And a key that a newer scaler added is passed over."""
    chain = Chain()
    for turn in range(14):
        written = link(chain, 600, 10.0 * turn)
        chain.take(written, now_s=10.0 * turn)
    newer = {**to_json(written), "since_version_9": 1}

    assert loads(Link, dumps(written)) == written
    assert loads(Link, json.dumps(newer)) == written


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"object_key":1}',
        b"\xff",
        b'{"object_key":"k","place":"0","by":"b","horizon_s":1}',
        b"[" * 5_000,
    ],
)
def test_what_is_no_link_is_refused(text: bytes) -> None:
    """Never anything but NotReadable, whatever stands in the topic."""
    with pytest.raises(NotReadable):
        loads(Link, text)


def test_other_options_are_another_object() -> None:
    """What was decided under others does not count."""
    assert object_key("ns", "orders", replace(OPTIONS, step_up=1)) != KEY
