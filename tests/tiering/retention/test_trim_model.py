"""T4 as a property: no history makes a trim take what it may not; without any one of its rules, one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.tiering.retention.expiry_model import Model
from tests.tiering.retention.expiry_truth import Violated
from tests.tiering.retention.trim_model import LOG_END, Eyes, TrimModel
from tests.tiering.retention.world import HOUR_MS
from tiering.log.checkpoints import EpochStart
from tiering.retention import local, local_trim
from tiering.retention.facts import TierCopy
from tiering.retention.local_policy import LocalPolicy

pytestmark = pytest.mark.slow

Op = Callable[[TrimModel], None]

TENS = st.integers(0, LOG_END // 10 - 1).map(lambda ten: ten * 10)
LENGTHS = st.sampled_from([10, 20, 30])
AGES_H = st.sampled_from([50] * 8 + [1, None, -500])
KINDS = st.sampled_from(["whole"] * 4 + ["unfinished", "other", "forked"])


def _tier(change: Callable[[Model], None]) -> Op:
    return lambda model: change(model.tier)


def _set(**fields: Any) -> Op:
    def change(model: TrimModel) -> None:
        for name, value in fields.items():
            setattr(model, name, value)

    return change


def _copied(base: int, length: int, age_h: int | None, kind: str) -> Op:
    return _tier(lambda tier: tier.add_copy(base, length, age_h=age_h, kind=kind))


def _held(name: str, start: int, length: int | None) -> Op:
    return _tier(lambda tier: getattr(tier, name)(start, None if length is None else start + length))


def _waited(hours: int) -> Op:
    def wait(model: TrimModel) -> None:
        model.tier.now_ms += hours * HOUR_MS

    return wait


def _limited(hours: int | None, size_bytes: int | None) -> Op:
    def limit(model: TrimModel) -> None:
        local_ms = None if hours is None else hours * HOUR_MS
        model.policy = LocalPolicy(trims=model.policy.trims, local_ms=local_ms, local_bytes=size_bytes)

    return limit


def _told_to(*, trims: bool) -> Op:
    def tell(model: TrimModel) -> None:
        model.policy = replace(model.policy, trims=trims)

    return tell


OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(_copied, TENS, LENGTHS, AGES_H, KINDS),
    st.builds(_held, st.sampled_from(["place_hold", "place_newer_hold", "lose_hold"]), TENS, LENGTHS),
    st.builds(lambda n: _tier(lambda tier: tier.pin(n)), st.integers(0, 9)),
    st.builds(lambda a, n: _tier(lambda tier: tier.put_gap(a, n)), TENS, LENGTHS),
    st.builds(lambda us: _tier(lambda tier: tier.change_leader(to_us=us)), st.booleans()),
    st.builds(lambda h: _tier(lambda tier: tier.rewrite(keep_until_ms=tier.now_ms + h)), st.integers(1, 9)),
    st.just(_tier(lambda tier: tier.rewrite(topic_deleted_at_ms=1))),
    st.builds(
        lambda n, kind: lambda m: m.lose_object(n, kind), st.integers(0, 9), st.sampled_from(["log", "aux"])
    ),
    st.just(lambda model: model.elect()),
    st.sampled_from(["theirs", "electing", "unknown"]).map(lambda led: _set(led=led)),
    st.sampled_from(["remote_is_on", "is_compacted", "was_compacted", "settings_are_unknown"]).map(
        lambda name: _set(**{name: True})
    ),
    st.builds(
        lambda broker, how: lambda m: m.agents.update({broker: how}),
        st.sampled_from([2, 3]),
        st.sampled_from(["is silent", "is behind", "differs"]),
    ),
    TENS.map(lambda start: _set(unsaved=EpochStart(3, start + 1))),
    st.just(_set(doubts=("a checkpoint cannot be read",))),
    st.integers(0, LOG_END).map(lambda bound: _set(high_watermark=bound)),
    st.just(_told_to(trims=False)),
    st.sampled_from([(None, 200), (10, 400), (None, None), (None, 0)]).map(lambda pair: _limited(*pair)),
    st.sampled_from([1, 12]).map(_waited),
)
EYES = st.one_of(
    st.just(Eyes()),
    st.integers(1, 3).map(lambda behind: Eyes(behind=behind)),
    st.sampled_from(
        [
            Eyes(end_is_early=True),
            Eyes(is_empty=True),
            Eyes(answers_are_old=True),
            Eyes(digest_is_early=True),
        ]
    ),
)


def _run(eyes: Eyes, disturbance: Op | None) -> Op:
    return lambda model: model.run(eyes, None if disturbance is None else partial(disturbance, model))


RUN = _run(Eyes(), None)
RUNS: st.SearchStrategy[Op] = st.one_of(
    st.just(RUN), st.builds(_run, EYES, st.none()), st.builds(_run, st.just(Eyes()), OPS)
)
CUTS = st.sets(st.integers(1, LOG_END - 1), min_size=1, max_size=5).map(lambda inner: (0, *sorted(inner)))


@st.composite
def histories(draw: st.DrawFn) -> list[Op]:
    """A disk cut anywhere, copies mostly end to end, then anything; runs in between and at the end."""
    cuts = draw(CUTS)
    ops: list[Op] = [lambda model: model.cut(cuts)]
    base, is_plain = 0, draw(st.integers(0, 3)) > 0
    while base < LOG_END:
        length = draw(LENGTHS)
        age_h, kind = (50, "whole") if is_plain else (draw(AGES_H), draw(KINDS))
        ops.append(_copied(base, length, age_h, kind))
        base += length if is_plain or draw(st.booleans()) else 10
    for _ in range(draw(st.integers(0, 3))):
        ops += [draw(OPS), draw(RUNS)]
    return [*ops, _run(draw(EYES), None), RUN]


HOLD = _held("place_hold", 0, None)
REWRITE = _tier(lambda tier: tier.rewrite())
# What each rule is for: some things that happen to a log of which all would be trimmed, and then a run.
TROUBLES: dict[str, list[list[Op]]] = {
    "policy_opts_in": [[_told_to(trims=False), RUN]],
    "answers_are_of_this_minute": [[_set(remote_is_on=True), _run(Eyes(answers_are_old=True), None)]],
    "remote_storage_is_off": [[_set(remote_is_on=True), RUN]],
    "never_compacted": [[_set(is_compacted=True), RUN], [_set(was_compacted=True), RUN]],
    "is_behind": [[HOLD, _run(Eyes(behind=1), None)]],
    "is_unclaimed": [[_run(Eyes(is_empty=True), None)]],
    "is_unreadable": [
        [_tier(lambda tier: tier.pin(2)), RUN],
        [_held("place_newer_hold", 0, None), RUN],
    ],
    "is_contended": [[REWRITE, _held("lose_hold", 0, None), RUN]],
    "topic_is_not_recorded_as_gone": [[_tier(lambda tier: tier.rewrite(topic_deleted_at_ms=1)), RUN]],
    "this_broker_leads": [[_set(led=led), RUN] for led in ("theirs", "electing", "unknown")],
    "files_are_read": [[_set(doubts=("a checkpoint cannot be read",)), RUN]],
    "claim_is_ours": [
        [lambda model: model.elect(), RUN],
        [_tier(lambda tier: tier.change_leader(to_us=False)), RUN],
    ],
    "end_was_asked_after_the_claim": [[_run(Eyes(end_is_early=True), None)]],
    "nobody_holds": [[HOLD, RUN], [_held("place_hold", 70, 10), RUN]],
    "no_restore_asks_for_time": [[_tier(lambda tier: tier.rewrite(keep_until_ms=tier.now_ms + 1)), RUN]],
    "digests_agree": [
        [lambda model: model.agents.update({3: "differs"}), RUN],
        [lambda model: model.agents.update({2: "is silent"}), RUN],
        [lambda model: model.agents.update({2: "is behind"}), RUN],
        [_run(Eyes(digest_is_early=True), None)],
    ],
    "without a break": [[_set(disk_start=0), _tier(lambda tier: tier.put_gap(0, 20)), RUN]],
    "below every bound": [[_set(high_watermark=1), RUN]],
    "old": [[_waited(-45), RUN], [_limited(None, 10**9), RUN]],
    "much": [[_limited(None, 10**9), RUN]],
    "epochs saved": [[_set(unsaved=EpochStart(3, 0)), RUN]],
    "in the store": [[lambda model: model.lose_object(0, "log"), RUN]],
    "a second look": [[_run(Eyes(), HOLD)], [_run(Eyes(), _set(led="theirs"))]],
}


@st.composite
def troubled(draw: st.DrawFn, rules: Sequence[str]) -> list[Op]:
    """All of a log expired and in the tier, unless the trouble is a hole in that; then the trouble."""
    rule, cuts = draw(st.sampled_from(rules)), draw(CUTS)
    ops: list[Op] = [lambda model: model.cut(cuts)]
    base = 20 if rule == "without a break" else 0
    while base < LOG_END:
        length = draw(LENGTHS)
        ops.append(_copied(base, length, 50, "whole"))
        base += length
    return [*ops, *draw(st.sampled_from(TROUBLES[rule]))]


def play(history: list[Op]) -> None:
    model = TrimModel()
    for op in history:
        op(model)


@given(histories() | troubled(tuple(TROUBLES)))
@settings(deadline=None, max_examples=200)
def test_no_history_makes_a_trim_take_what_it_may_not(history: list[Op]) -> None:
    """T4: every request is allowed by the whole truth, certified before, and told of after."""
    play(history)


def test_the_model_does_trim() -> None:
    """A judge who is never called finds nothing wrong: the plain history trims all that is closed."""
    model = TrimModel()
    for base in range(0, LOG_END, 20):
        model.tier.add_copy(base, 20, age_h=50, kind="whole")

    model.run()

    assert model.asked == [70]


def _all_finished(finished: Iterator[TierCopy], start: int) -> list[TierCopy]:
    return list(finished)


def _nothing(*_: object) -> None:
    return None


def _without(guard: local.Guard) -> Callable[[pytest.MonkeyPatch], None]:
    left = tuple(each for each in local.GUARDS if each is not guard)
    return lambda patch: patch.setattr(local, "GUARDS", left)


UNGUARDED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    **{guard.__name__: _without(guard) for guard in local.GUARDS},
    "without a break": lambda patch: (
        patch.setattr(local, "_chain", _all_finished),
        patch.setattr(local, "_bound", lambda facts, chain, needed: LOG_END),
    )[-1],
    "below every bound": lambda patch: patch.setattr(local, "_bound", lambda facts, chain, needed: LOG_END),
    "old": lambda patch: patch.setattr(local, "_old_up_to", lambda facts, chain: LOG_END),
    "much": lambda patch: patch.setattr(local, "_is_much", lambda facts, left: True),
    "epochs saved": lambda patch: patch.setattr(local, "_unsaved_epoch", _nothing),
    "in the store": lambda patch: patch.setattr(local_trim, "_not_as_recorded", _nothing),
    "a second look": lambda patch: patch.setattr(local_trim, "_changed", _nothing),
}


# Without these a trim comes to an assertion of its own before it comes to the judge.
ASSERTED_TOO = {"is_unclaimed", "this_broker_leads"}


def test_every_rule_has_its_trouble() -> None:
    """No rule is added without a history that it is for."""
    assert set(UNGUARDED) == set(TROUBLES)


@pytest.mark.parametrize("rule", UNGUARDED)
def test_without_any_one_rule_a_history_is_found(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """The model is worth something: each rule is the only thing between some history and a loss, but for the
    audit's own machine, which is asked behind all of them."""
    UNGUARDED[rule](monkeypatch)
    monkeypatch.setattr(local_trim, "before_trim", _nothing)

    @given(troubled((rule,)))
    @settings(
        deadline=None,
        max_examples=50,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    def search(history: list[Op]) -> None:
        play(history)

    with pytest.raises(AssertionError if rule in ASSERTED_TOO else Violated):
        search()
