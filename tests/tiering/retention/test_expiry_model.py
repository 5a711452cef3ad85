"""T5 as a property: no history of a log makes expiry remove what it may not; without any rule, one does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.tiering.retention.expiry_model import Model
from tests.tiering.retention.expiry_truth import LOG_END, Violated, bytes_of
from tests.tiering.retention.world import HOUR_MS, killed
from tiering.retention import expire, expiry, remote
from tiering.retention.remote import Presence
from tiering.retention.remote_policy import BlastLedger, BlastLimit
from tiering.retention.unique_bytes import Extent
from tiering.segments.records import SegmentState
from tiering.store.errors import Denied

pytestmark = pytest.mark.slow

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
    st.sampled_from([(10, None), (None, 300), (10, 500), (None, 1)]).map(
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
@settings(deadline=None, max_examples=200)
def test_no_history_makes_expiry_remove_what_it_may_not(history: list[Op]) -> None:
    """T5: every act of every run, killed, failed or raced as it may be, is allowed by the whole truth."""
    play(history)


def test_a_longer_retention_keeps_what_a_start_has_passed_already_until_it_expires_by_it() -> None:
    """Declared in the start's grace, it saves what had not gone; and expiry is not held up for ever."""
    model = Model()
    model.add_copy(0, 20, age_h=12, kind="whole")
    model.add_copy(20, 20, age_h=1, kind="whole")
    model.run()
    assert model.log_start == 20
    _set(total_ms=50 * HOUR_MS)(model)
    _wait(30)(model)
    model.run_to_the_end()
    assert not model.marked()
    _wait(10)(model)
    model.run_to_the_end()
    assert [end for (_, end), state in model.states().items() if state is SegmentState.COPY_FINISHED] == [40]


RUN: Op = lambda model: model.run()  # noqa: E731 a value among values
HOLD: Op = lambda model: model.place_hold(0, None)  # noqa: E731
# What each rule is for: what happens to a log whose start has moved and is settled, and then a run.
TROUBLES: dict[str, list[list[Op]]] = {
    "is_behind": [[HOLD, lambda model: model.run(lag=1)]],
    "is_unreadable": [[lambda model: model.pin(0), RUN], [lambda model: model.pin(1), RUN]],
    "is_contended": [[lambda model: model.lose_hold(0, None), RUN]],
    "topic_is_known": [[_topic(Presence.UNKNOWN), RUN]],
    "claim_is_ours": [[lambda model: model.change_leader(to_us=False), _wait(3), RUN]],
    "policy_opts_in": [[_set(deletes=False), RUN]],
    "no_restore_asks_for_time": [
        [lambda model: model.rewrite(keep_until_ms=model.now_ms + 9 * HOUR_MS), _wait(3), RUN]
    ],
    "a removal is held": [[HOLD, _wait(3), RUN]],
    "a start is held": [[lambda model: model.place_hold(20, 30), RUN]],
    "grace": [[RUN, RUN]],
    "the blast limit": [[_set(blast_per_hour=BlastLimit(1, 10**6)), RUN, RUN]],
    "it has expired": [[_set(total_ms=100 * HOUR_MS), RUN]],
    "a second look": [[_disturbed(HOLD, moment)] for moment in range(8)],
}


OF_THE_FIRST_START = {"a start is held", "grace", "it has expired"}


@st.composite
def troubled(draw: st.DrawFn, rules: Sequence[str]) -> list[Op]:
    """All of a log expired, its start moved past some of it a grace ago, or not yet; then the trouble."""
    rule = draw(st.sampled_from(rules))
    ops: list[Op] = []
    base = 0
    while base < LOG_END:
        length = draw(LENGTHS)
        ops.append(_copied(base, length, 50, "whole"))
        base += length
    settled = [] if rule in OF_THE_FIRST_START else [RUN, _wait(3)]
    return [*ops, *settled, *draw(st.sampled_from(TROUBLES[rule]))]


@given(troubled(tuple(TROUBLES)))
@settings(deadline=None, max_examples=60)
def test_no_trouble_makes_expiry_remove_what_it_may_not(history: list[Op]) -> None:
    """The histories that each rule is for, with all rules in force."""
    play(history)


def _without(guard: remote.Guard) -> Callable[[pytest.MonkeyPatch], None]:
    left = tuple(each for each in remote.GUARDS if each is not guard)
    return lambda patch: patch.setattr(remote, "GUARDS", left)


def _no_held_start(patch: pytest.MonkeyPatch) -> None:
    begin = expiry._Walk.__init__

    def begin_unheld(walk: Any, *arguments: Any) -> None:
        begin(walk, *arguments)
        walk._held_from = None

    patch.setattr(expiry._Walk, "__init__", begin_unheld)


def _nothing(*_: object) -> None:
    return None


UNGUARDED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    # A table without any record of the log has no start to go by: an assertion stops what comes of that.
    **{guard.__name__: _without(guard) for guard in remote.GUARDS if guard.__name__ != "is_unclaimed"},
    "a removal is held": lambda patch: patch.setattr(remote, "_held", _nothing),
    "a start is held": _no_held_start,
    "grace": lambda patch: patch.setattr(remote, "_grace", _nothing),
    "the blast limit": lambda patch: patch.setattr(
        BlastLedger, "left", lambda *_, **__: BlastLimit(10**9, 10**9)
    ),
    "it has expired": lambda patch: patch.setattr(expiry._Walk, "_expired", lambda *_: expiry.FreedBy.TIME),
    "a second look": lambda patch: patch.setattr(expire, "_still_first", _nothing),
}


def test_every_rule_has_its_trouble() -> None:
    """No rule is added without a history that it is for."""
    assert set(UNGUARDED) == set(TROUBLES)


@pytest.mark.parametrize("rule", UNGUARDED)
def test_without_any_one_rule_a_history_is_found(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """The judge is worth something: each rule is what stands between some history and a loss."""
    UNGUARDED[rule](monkeypatch)

    @given(troubled((rule,)))
    @settings(
        deadline=None,
        max_examples=60,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    def search(history: list[Op]) -> None:
        play(history)

    with pytest.raises(Violated):
        search()
