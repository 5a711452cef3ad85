"""The catalogue of rules: complete, stable, and shown as it is."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest

import rules.catalogue
from rules.catalogue import RULES, Severity, Sort, rule, rule_set_hash
from rules.catalogue.page import pages
from rules.events import KINDS
from rules.machine import (
    causes,
    cluster,
    deviations,
    emitters,
    fleet,
    obligations,
    removals,
    replicas,
    tier,
    watermarks,
)
from rules.machine.conditions import ages, copies, differences, holes, starts

DOCS = Path(__file__).parents[2] / "docs" / "rules"
# RULES.md's own table, and what AUDIT_FACTS adds to it (points 2, 12 and 19).
CATALOGUE = """
START-01 C  START-02 C  START-03 C  START-04 E  START-05 E  START-06 C  RET-01 C  RET-02 C  RET-03 E  RET-04 W
RET-05 W  RET-06 W  SEG-01 E  SEG-02 C  SEG-03 W  SEG-04 E  SEG-05 E  SEG-06 C  SEG-07 W  SEG-08 C  SEG-09 C
SEG-10 C  SEG-11 W  DEL-01 C  META-01 E  META-02 C  HWM-01 C  HWM-02 C  HWM-03 C  EPO-01 C  OPS-01 C  OPS-02 C
OPS-03 C  AUD-01 E  AUD-02 E  AUD-03 W  AUD-04 C  AUD-05 W  RST-01 C
HLD-01 C  AUD-06 W  AUD-07 C
"""
STATES = """
START-03 START-04 START-06 RET-03 RET-05 RET-06 SEG-02 SEG-03 SEG-04 SEG-06 SEG-07 SEG-08 SEG-11 META-01
AUD-01 AUD-03 AUD-05 AUD-07
"""


def test_every_rule_is_there_with_its_severity() -> None:
    """Ids and least severities are those of RULES.md; other tools key on them."""
    listed = dict(re.findall(r"(\S+) ([CEW])\b", CATALOGUE))

    assert {each.id: each.severity.value for each in RULES} == listed
    assert len({each.id for each in RULES}) == len(RULES)


def test_what_is_a_state_and_what_happened() -> None:
    """The list of AUDIT_FACTS 1: all else never resolves by absence. SEG-04 stays while the record does."""
    states = {each.id for each in RULES if each.sort is Sort.STATE}

    assert states == set(STATES.split())


def test_what_rises_is_no_warning() -> None:
    """A rule that can become critical is an error before."""
    assert {each.severity for each in RULES if each.rises_when} == {Severity.ERROR}


def test_the_evidence_of_a_rule_about_logs_is_kinds_of_events() -> None:
    """A rule that is judged from events names kinds that exist."""
    kinds = {kind.kind for kind in KINDS}

    for each in RULES:
        if each.judged_by in ("log", "fleet"):
            assert set(each.evidence) <= kinds, each.id


def test_the_machine_finds_what_the_catalogue_has_and_all_of_it() -> None:
    """Each rule about logs, emitters or the fleet is said in the machine, and none that is not here."""
    held = (watermarks, deviations, ages, copies, differences, holes, starts)
    modules = (replicas, tier, cluster, obligations, removals, emitters, fleet, *held)
    said = set()
    for module in modules:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said |= set(re.findall(r"^[A-Z]{3,5}-\d\d$", node.value))

    assert said == {each.id for each in RULES if each.judged_by != "run"}
    assert set(causes.EXPLAINED_BY) <= said


def test_a_rule_is_found_by_its_id() -> None:
    """And only by that."""
    assert rule("START-02").severity is Severity.CRITICAL
    with pytest.raises(KeyError):
        rule("START-99")


def test_the_hash_is_of_what_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other words leave it as it is; another severity, grace or version does not."""
    before = rule_set_hash()
    first, *others = RULES

    def hashed(*changed: object) -> str:
        monkeypatch.setattr(rules.catalogue, "RULES", (*changed, *others))
        rule_set_hash.cache_clear()
        return rule_set_hash()

    assert hashed(replace(first, why="Because.", remedy="Wait.")) == before
    assert hashed(replace(first, severity=Severity.WARNING)) != before
    assert hashed(replace(first, major=2)) != before
    monkeypatch.undo()
    rule_set_hash.cache_clear()
    assert rule_set_hash() == before


def test_the_pages_are_the_catalogue() -> None:
    """docs/rules is what `python -m rules.catalogue.page docs/rules` writes, and has no page more."""
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}

    assert written == pages()
