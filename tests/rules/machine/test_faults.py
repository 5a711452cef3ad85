"""The seventeen faults at the level of the machine: exactly what must be found, whatever happens to it."""

from __future__ import annotations

import random

import pytest

from rules.machine import LogState, Told, decode, encode, fold, is_late, newborn, state_hash
from rules.machine.verdict import Status, Verdict, judge
from tests.rules.machine import acts
from tests.rules.machine.faults import (
    FAULTS,
    Fault,
    dropped_before_its_upload,
    topic_removed,
    trimmed_and_the_tier_follows,
)
from tests.rules.machine.histories import LOG, T0_MS, TERMS, TOPIC, History, fixture, found, parent_of

UNTOUCHED = ("kip405", "ours", "none")
CASES = [(each.name, each.make, each.mode) for each in FAULTS]
CASES += [(f"untouched {mode}", lambda mode: fixture(mode).after(hours=2), mode) for mode in UNTOUCHED]
every_history = pytest.mark.parametrize(
    ("make", "mode"), [each[1:] for each in CASES], ids=[f"{at}-{each[0]}" for at, each in enumerate(CASES)]
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_exactly_what_is_listed_is_found(fault: Fault) -> None:
    """Each fault's findings with their severities and ranges, and none else; each child under its root."""
    judged = fault.make(fault.mode).judged()

    assert found(judged) == fault.found
    assert {rule_id: parent_of(judged, rule_id) for rule_id in fault.parents} == fault.parents
    roots = {each.incident for each in judged.findings if each.status is not Status.WITHDRAWN}
    assert len(roots) <= max(1, sum(parent is None for parent in fault.parents.values()), 2)
    if fault.open_at_end is not None:
        still_open = {each.rule_id for each in judged.findings if each.status is Status.OPEN}
        assert still_open == fault.open_at_end
    if fault.recoverable is not None:
        assert max(each.recoverable_offsets for each in judged.findings) == fault.recoverable


@pytest.mark.parametrize("mode", UNTOUCHED)
def test_an_untouched_log_passes(mode: str) -> None:
    """The fixtures as they are give no finding and PASS."""
    judged = fixture(mode).after(hours=2).judged()

    assert judged.findings == ()
    assert judged.verdict is Verdict.PASS


def test_what_was_deleted_can_be_had_from_versions_alone() -> None:
    """Fault 2: recoverable 3000 where the bucket keeps versions, 0 where it does not."""
    for versioned, recoverable in ((True, 3000), (False, 0)):
        judged = trimmed_and_the_tier_follows("kip405", versioned=versioned).judged()
        [loss] = [each for each in judged.findings if each.rule_id == "START-02"]

        assert (loss.recoverable_offsets, loss.lost_offsets) == (recoverable, 3000 - recoverable)


@pytest.mark.parametrize(("last_leader", "is_found"), [(1, True), (2, False)])
def test_what_goes_while_nobody_leads_is_the_last_leaders(last_leader: int, is_found: bool) -> None:
    """A broker that starts deletes before anybody is elected: judged if it led last, as if it led still."""
    h = dropped_before_its_upload("ours", leaderless_after=last_leader)

    assert (("SEG-09", "C", ((9000, 10_000),)) in found(h.judged())) is is_found


def test_what_was_never_tiered_goes_with_its_topic() -> None:
    """Fault 15: of 10500 offsets 10000 can be had from the tier, and 500 are lost."""
    [loss] = topic_removed("ours").judged().findings

    assert (loss.recoverable_offsets, loss.lost_offsets) == (10_000, 500)


def _once(h: History) -> LogState:
    return fold(newborn(LOG, TOPIC), h.told, TERMS, as_of_ms=h.now_ms)


def _in_runs(h: History, cuts: list[int], said: list[Told] | None = None) -> LogState:
    """Day by day, the state going through its bytes each time."""
    state = newborn(LOG, TOPIC)
    left = list(h.told if said is None else said)
    for cut_ms in [*cuts, h.now_ms]:
        now = [each for each in left if each.observed_at_ms <= cut_ms]
        left = [each for each in left if each.observed_at_ms > cut_ms]
        assert not any(is_late(state, each) for each in now)
        state = decode(encode(fold(state, now, TERMS, as_of_ms=cut_ms)))
    return state


@every_history
def test_told_twice_and_shuffled_is_the_same(make: object, mode: str) -> None:
    """Every event twice, in any order of arrival: the same state, byte for byte."""
    assert callable(make)
    h = make(mode)
    said = [*h.told, *h.told]
    random.Random(7).shuffle(said)

    assert encode(fold(newborn(LOG, TOPIC), said, TERMS, as_of_ms=h.now_ms)) == encode(_once(h))


@every_history
def test_one_run_or_several_is_the_same(make: object, mode: str) -> None:
    """Cut anywhere, at an event or between two: the same state, byte for byte, and so the same ids."""
    assert callable(make)
    h = make(mode)
    times = sorted({each.observed_at_ms for each in h.told})
    whole = state_hash(_once(h))
    rng = random.Random(11)
    for _ in range(6):
        at = rng.choice(times)
        other = rng.randint(T0_MS, h.now_ms)
        assert state_hash(_in_runs(h, sorted([at, other]))) == whole


@every_history
def test_told_again_a_day_later_changes_nothing(make: object, mode: str) -> None:
    """Duplicates of what a former run has judged are passed over, and are not late."""
    assert callable(make)
    h = make(mode)
    state = _once(h)
    again = [each for each in h.told if each.log_seq is not None]

    assert not any(is_late(state, each) for each in again)
    assert encode(fold(state, again, TERMS, as_of_ms=h.now_ms)) == encode(state)


@every_history
def test_late_evidence_is_judged_from_an_earlier_state(make: object, mode: str) -> None:
    """One emitter's events come a run later: seen to be late, and judged again it comes to the same."""
    assert callable(make)
    h = make(mode)
    held = [each for each in h.told if each.speaker.broker_id == 2 and each.observed_at_ms >= T0_MS]
    now = [each for each in h.told if each not in held]
    frozen = fold(
        newborn(LOG, TOPIC),
        [each for each in h.told if each.observed_at_ms < T0_MS],
        TERMS,
        as_of_ms=T0_MS - 1,
    )
    first = fold(frozen, [each for each in now if each.observed_at_ms >= T0_MS], TERMS, as_of_ms=h.now_ms)
    if held:
        assert any(is_late(first, each) for each in held) or h.told[-1] in held
    again = fold(frozen, [each for each in h.told if each.observed_at_ms >= T0_MS], TERMS, as_of_ms=h.now_ms)

    assert state_hash(again) == state_hash(_once(h))


def test_three_quiet_days_and_a_restore() -> None:
    """Fault 1 stays one finding, open, VIOLATION each day; a verified restore closes it, once."""
    h = FAULTS[0].make("kip405")
    state = _once(h)
    ids = set()
    for day in range(3):
        as_of_ms = h.now_ms + (day + 1) * 86_400_000
        state = fold(state, [], TERMS, as_of_ms=as_of_ms)
        judged = judge(state, TERMS, from_ms=as_of_ms - 86_400_000)
        still_open = [each for each in judged.findings if each.status is Status.OPEN]
        ids |= {each.finding_id for each in still_open}
        assert judged.verdict is Verdict.VIOLATION
        assert [each.rule_id for each in still_open] == ["START-02"]
    assert len(ids) == 1

    h.after(hours=73)
    before = len(h.told)
    for broker in (1, 2, 3):
        acts.restores(h, 0, 3000, broker=broker)
        h.start(broker, 3000, 0)
    h.after(hours=1)
    state = fold(state, h.told[before:], TERMS, as_of_ms=h.now_ms)
    judged = judge(state, TERMS, from_ms=h.now_ms - 86_400_000)

    assert [each.status for each in judged.findings if each.rule_id == "START-02"] == [Status.RESTORED]
    assert judged.verdict is Verdict.PASS
