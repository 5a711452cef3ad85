"""A rule set's file: what it says is judged by, and whatever it does not know is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue import RULES
from rules.machine.terms import RuleTerms, Terms
from rules.ruleset import RuleSet, RuleSetRefused, has_grace, read_rule_set


def test_an_empty_rule_set_is_the_shipped_one() -> None:
    """Nothing is judged otherwise."""
    assert read_rule_set({"version": 1}).on(Terms()) == Terms()


def test_what_it_says_is_judged_by() -> None:
    """Graces of ours, a rule left out, another severity, a longer grace."""
    read = read_rule_set(
        {
            "terms": {"copy_deadline_ms": "2h", "clock_tolerance_ms": 1},
            "rules": {
                "RET-05": {"severity": "error", "grace_ms": "30min"},
                "SEG-07": {"disabled": True},
            },
        }
    )

    assert read == RuleSet(
        terms=(("clock_tolerance_ms", 1), ("copy_deadline_ms", 7_200_000)),
        rules=(
            RuleTerms(rule_id="RET-05", severity="E", grace_ms=1_800_000),
            RuleTerms(rule_id="SEG-07", is_disabled=True),
        ),
    )
    on = read.on(Terms())
    assert (on.copy_deadline_ms, on.grace_of("RET-05", 5)) == (7_200_000, 1_800_000)


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"version": 2}, "`version`"),
        ({"ruls": {}}, "`ruls`: unknown key; did you mean `rules`?"),
        ({"terms": {"scan": 1}}, "[terms] `scan`"),
        ({"terms": {"scan_ms": "soon"}}, "[terms] `scan_ms`"),
        ({"rules": {"RET-99": {}}}, "[rules.RET-99]: no such rule"),
        ({"rules": {"RET-05": {"severty": "error"}}}, "did you mean `severity`?"),
        ({"rules": {"RET-05": {"severity": "bad"}}}, "critical, error, warning"),
        ({"rules": {"RET-05": {"disabled": "yes"}}}, "true or false"),
        ({"rules": {"START-02": {"grace_ms": 1}}}, "[rules.START-02] `grace_ms`"),
        ({"rules": {"RET-05": 1}}, "must be a table"),
        ({"rules": 1}, "`rules`: must be a table"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(tree: dict[str, Any], named: str) -> None:
    """The key, and what was likely meant."""
    with pytest.raises(RuleSetRefused) as refused:
        read_rule_set(tree)

    assert named in str(refused.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    """One look at the file is enough."""
    with pytest.raises(RuleSetRefused) as refused:
        read_rule_set({"a": 1, "b": 2, "rules": {"X": {}}})

    assert len(refused.value.problems) == 3


def test_only_a_state_waits() -> None:
    """What happened is decided when its evidence is complete."""
    assert {each.id for each in RULES if has_grace(each)} >= {"RET-05", "SEG-02", "START-04"}
    assert not {"START-02", "RET-03", "AUD-01"} & {each.id for each in RULES if has_grace(each)}
