"""The machine against the second judge of what tiering says, over random tiers.

`random_tier(seed)` makes a history again; a failure names its seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rules.machine import objects, tier, watermarks
from rules.machine.conditions import ages, copies, starts
from tests.rules.machine.brute_tiers import JUDGED, TierJudge
from tests.rules.machine.comparing import tiers_by_machine
from tests.rules.machine.random_tiers import random_tier

FAST, MANY = 100, 3_000


def _differences(seed: int) -> dict[str, Any]:
    h = random_tier(seed)
    told, truth = tiers_by_machine(h.judged()), TierJudge(h.told, h.now_ms).judge()
    return {
        f"{rule_id} {when}": (of_machine[rule_id], of_truth[rule_id])
        for when, of_machine, of_truth in zip(("ever", "at the end"), told, truth, strict=True)
        for rule_id in of_truth
        if of_machine[rule_id] != of_truth[rule_id]
    }


@pytest.mark.slow
def test_the_two_judges_agree_about_tiers() -> None:
    """Each rule of them, what was ever so and what is so at the end, by copy, object and broker."""
    wrong = {seed: found for seed in range(FAST) if (found := _differences(seed))}

    assert wrong == {}


@pytest.mark.long  # minutes
@pytest.mark.timeout(3600)
def test_the_two_judges_agree_about_thousands_of_tiers(
    record_property: Callable[[str, object], None],
) -> None:
    """Thousands; and each rule is true often enough among them for its agreement to mean something."""
    wrong: dict[int, Any] = {}
    fired: Counter[str] = Counter()
    for seed in range(2_000_000, 2_000_000 + MANY):
        if differences := _differences(seed):
            wrong[seed] = differences
        h = random_tier(seed)
        ever, _ = TierJudge(h.told, h.now_ms).judge()
        fired.update(rule_id for rule_id in JUDGED if ever[rule_id])
    record_property("fired", dict(fired))

    assert wrong == {}
    assert min(fired[rule_id] for rule_id in JUDGED) >= 10, fired


# --- the machine with one check removed: each is caught

Maim = Callable[[pytest.MonkeyPatch], None]


def _any_step_may_follow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tier, "_illegal", lambda *arguments: None)


def _anybodys_copy_may_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tier, "_unknown", lambda state, event: None)


def _holds_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tier, "_against_holds", lambda *arguments: None)


def _contents_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tier, "_two_contents", lambda *arguments: None)


def _every_table_is_right(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tier, "_odd", lambda state, said: set())


def _nobody_deletes_by_hand(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(objects, "_deleted_by_hand", lambda *arguments: None)


def _objects_are_never_missing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(objects, "GONE", frozenset[str]())


def _records_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copies, "untrue", lambda copy: None)


def _no_time_lies_ahead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ages, "_lies_ahead", lambda state, leader: False)


def _starts_may_be_anywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(starts, "_above_watermark", lambda state, replica, terms: iter(()))


def _watermarks_may_fall(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watermarks, "low", lambda state, replica, event, terms: None)


MAIMED: tuple[Maim, ...] = (
    _any_step_may_follow,
    _anybodys_copy_may_go,
    _holds_are_not_looked_at,
    _contents_are_not_compared,
    _every_table_is_right,
    _nobody_deletes_by_hand,
    _objects_are_never_missing,
    _records_are_not_looked_at,
    _no_time_lies_ahead,
    _starts_may_be_anywhere,
    _watermarks_may_fall,
)


@pytest.mark.parametrize("maim", MAIMED, ids=lambda maim: maim.__name__.strip("_"))
def test_a_machine_with_a_check_of_tiers_less_is_caught(maim: Maim, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the second judge."""
    maim(monkeypatch)

    assert any(_differences(seed) for seed in range(400))
