"""T5 as a property: no history of a log makes expiry remove what it may not; without any rule, one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiering.retention.expiry_model import LOG_END, Model, bytes_of
from tests.tiering.retention.world import HOUR_MS, killed
from tiering.retention.remote import Presence
from tiering.retention.unique_bytes import Extent
from tiering.store.errors import Denied

Op = Callable[[Model], None]

TENS = st.integers(0, LOG_END // 10 - 1).map(lambda ten: ten * 10)
LENGTHS = st.sampled_from([10, 20, 30])
ENDS = st.none() | LENGTHS
AGES_H = st.sampled_from([50] * 12 + [12, 1, 1, None, -500])
KINDS = st.sampled_from(["whole"] * 6 + ["unfinished", "other", "forked"])


def called(
    name: str, *arguments: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]
) -> st.SearchStrategy[Op]:
    def call(given_: list[Any], given_named: dict[str, Any]) -> Op:
        return lambda model: getattr(model, name)(*given_, **given_named)

    return st.builds(call, st.tuples(*arguments), st.fixed_dictionaries(named))


def _ranged(name: str) -> st.SearchStrategy[Op]:
    def call(start: int, length: int | None) -> Op:
        return lambda model: getattr(model, name)(start, None if length is None else start + length)

    return st.builds(call, TENS, ENDS)


def _set(**fields: Any) -> Op:
    def change(model: Model) -> None:
        model.policy = replace(model.policy, **fields)

    return change


def _wait(hours: int) -> Op:
    def wait(model: Model) -> None:
        model.now_ms += hours * HOUR_MS

    return wait


def _topic(presence: Presence) -> Op:
    def change(model: Model) -> None:
        model.topic = presence

    return change


def _local(start: int) -> Op:
    """The leader's disk holds all from here on, in segments of its own."""

    def change(model: Model) -> None:
        model.local = tuple(
            Extent(base, min(LOG_END, base + 15), bytes_of(base, base + 15))
            for base in range(start, LOG_END, 15)
        )

    return change


def _fails() -> None:
    raise Denied(bucket="memory", key="k", operation="any", why="as the test asked")


ORDINARY: st.SearchStrategy[Op] = st.one_of(
    called("add_copy", TENS, LENGTHS, age_h=AGES_H, kind=KINDS),
    _ranged("place_hold"),
    called("release_holds"),
    called("put_gap", TENS, LENGTHS),
    called("change_leader", to_us=st.booleans()),
    called("put_back", st.integers(0, 9), keep_h=st.sampled_from([0, 30])),
    called("rewrite", keep_until_ms=st.none()),
    st.sampled_from([{"deletes": False}, {"deletes": True}]).map(lambda fields: _set(**fields)),
    st.sampled_from([(10, None), (None, 300), (10, 500), (None, 0)]).map(
        lambda limits: _set(
            total_ms=None if limits[0] is None else limits[0] * HOUR_MS, total_bytes=limits[1]
        )
    ),
    st.sampled_from([1, 3, 12]).map(_wait),
    st.sampled_from([Presence.THERE, Presence.THERE, Presence.GONE, Presence.UNKNOWN]).map(_topic),
    TENS.map(_local),
)
# After these the table is doubted until somebody writes again, or for good: seldom, or nothing else is seen.
DOUBTFUL: st.SearchStrategy[Op] = st.one_of(
    _ranged("place_newer_hold"), _ranged("lose_hold"), called("pin", st.integers(0, 9))
)
OTHERS = st.integers(0, 9).flatmap(lambda die: DOUBTFUL if die == 9 else ORDINARY)
WAITS = st.sampled_from([1, 3, 3]).map(_wait)


def _disturbed(op: Op | None, moment: int) -> Op:
    def run(model: Model) -> None:
        model.run(disturbance=killed if op is None else partial(op, model), moment=moment)

    return run


def _failing(moment: int) -> Op:
    return lambda model: model.run(disturbance=_fails, moment=moment)


MOMENTS = st.integers(0, 25)
RUNS: st.SearchStrategy[Op] = st.one_of(
    st.just(lambda model: model.run()),
    st.just(lambda model: model.run()),
    st.just(lambda model: model.run_to_the_end()),
    st.just(lambda model: model.forget_removed()),
    st.integers(1, 6).map(lambda lag: lambda model: model.run(lag=lag)),
    st.builds(_disturbed, st.none() | OTHERS, MOMENTS),
    MOMENTS.map(_failing),
)


def _copied(base: int, length: int, age_h: int | None, kind: str) -> Op:
    return lambda model: model.add_copy(base, length, age_h=age_h, kind=kind)


@st.composite
def histories(draw: st.DrawFn) -> list[Op]:
    """Some copies, mostly end to end; then anything, with runs and time in between."""
    ops: list[Op] = []
    base = 0
    while base < LOG_END and draw(st.integers(0, 19)) > 0:
        length = draw(LENGTHS)
        ops.append(_copied(base, length, draw(AGES_H), draw(KINDS)))
        base += draw(st.sampled_from([length, length, length, 10, length + 10]))
    if draw(st.booleans()):
        ops += [lambda model: model.run(), _wait(3)]  # the start has moved, and its grace has passed
    for _ in range(draw(st.integers(2, 8))):
        die = draw(st.integers(0, 9))
        ops.append(draw(OTHERS if die < 3 else WAITS if die < 6 else RUNS))
    return ops


def play(history: list[Op]) -> None:
    model = Model()
    for op in history:
        op(model)


@given(histories())
@settings(deadline=None, max_examples=300)
def test_no_history_makes_expiry_remove_what_it_may_not(history: list[Op]) -> None:
    """T5: every act of every run, killed, failed or raced as it may be, is allowed by the whole truth."""
    play(history)
