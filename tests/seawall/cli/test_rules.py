"""`seawall rules` as a user runs it."""

from __future__ import annotations

import json

from rules.catalogue import RULES, rule, rule_set_hash
from tests.seawall.cli.calling import call


def test_list_names_every_rule() -> None:
    """One line a rule with its invariant, and the rule set's hash; --json has the same."""
    shown = call("rules", "list")
    told = json.loads(call("rules", "list", "--json").stdout)

    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines[1 : len(RULES) + 1]] == [each.id for each in RULES]
    assert all(each.invariant in line for each, line in zip(RULES, lines[1:], strict=False))
    assert lines[-1] == f"Rule set {rule_set_hash()}"
    assert told["rule_set"] == rule_set_hash()
    assert [each["id"] for each in told["rules"]] == [each.id for each in RULES]


def test_list_of_one_deployment() -> None:
    """Rules about a tier are not shown for logs that have none."""
    told = json.loads(call("rules", "list", "--tiered-by", "none", "--json").stdout)
    ids = {each["id"] for each in told["rules"]}

    assert {"START-02", "SEG-02"} <= ids
    assert not ids & {"DEL-01", "SEG-09", "META-01"}


def test_show_and_explain_one() -> None:
    """All that the page says, in words and as data; small letters will do."""
    shown = call("rules", "show", "start-02")
    words = call("rules", "explain", "START-02")
    told = json.loads(call("rules", "explain", "START-02", "--json").stdout)
    expected = rule("START-02")

    assert shown.status == words.status == 0
    assert expected.remedy in shown.stdout
    assert "log_start_advanced" in shown.stdout
    assert expected.why in words.stdout
    assert expected.example in words.stdout
    assert told["why"] == expected.why
    assert told["severity"] == "C"
    assert told["closes"] == "happened"


def test_an_id_that_is_none_is_a_usage_error() -> None:
    """It says where the ids are."""
    ended = call("rules", "show", "START-99")

    assert ended.status == 2
    assert "seawall rules list" in ended.stderr
