"""A rule set that is tried out: what it says otherwise than the one that is shipped, as a file has it.

    version = 1

    [terms]                        graces that are ours, of every log
    copy_deadline_ms = "2h"

    [rules.RET-05]                 one table a rule
    disabled = true                it finds nothing, and statements say that it was not applied
    severity = "error"             critical, error, warning
    grace_ms = "30min"             of rules about a state of things

Owns the form. Refuses what it does not know, each by its name, all of it at once: a misspelt rule would be
judged as it is shipped, and nobody would notice. Refuses a grace for what happened: that is decided when its
evidence is complete, not after a time.

Invariant: an empty rule set judges as the shipped one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rules.catalogue import RULES, Rule, Sort
from rules.machine.terms import RuleTerms, Terms
from rules.policy.errors import Problem, nearest
from rules.policy.quantities import read_time
from rules.severities import SEVERITY_LETTERS

VERSION = 1
TERMS = (
    "scan_ms",
    "clock_tolerance_ms",
    "copy_deadline_ms",
    "object_grace_ms",
    "lateness_ms",
)
_BY_ID = {each.id: each for each in RULES}
_TOP = ("version", "terms", "rules")
_OF_A_RULE = ("disabled", "severity", "grace_ms")
_DEVIATES = "RET-03"  # a state, and decided by the grace of the policy's declarations


class RuleSetRefused(Exception):
    """Every problem at once; no part of it is judged by."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    terms: tuple[tuple[str, int], ...] = ()
    rules: tuple[RuleTerms, ...] = ()

    def on(self, terms: Terms) -> Terms:
        """`terms` as this rule set has them."""
        named: dict[str, Any] = dict(self.terms)
        return replace(terms, rules=self.rules, **named)


def read_rule_set(tree: Mapping[str, Any]) -> RuleSet:
    """RuleSetRefused, with every problem, if it is not one that can be judged by."""
    found: list[Problem] = [Problem(key=name, what=_unknown(name, _TOP)) for name in tree if name not in _TOP]
    version = tree.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        found.append(Problem(key="version", what=f"is {version!r}; this Seawall reads version {VERSION}"))
    terms = tuple(_terms(_table(tree, "terms", found), found))
    rules = tuple(_rules(_table(tree, "rules", found), found))
    if found:
        raise RuleSetRefused(found)
    return RuleSet(terms=terms, rules=rules)


def _table(tree: Mapping[str, Any], name: str, found: list[Problem]) -> Mapping[str, Any]:
    table = tree.get(name, {})
    if isinstance(table, Mapping):
        return table
    found.append(Problem(key=name, what=f"must be a table, [{name}]"))
    return {}


def _terms(entries: Mapping[str, Any], found: list[Problem]) -> Iterator[tuple[str, int]]:
    for name, raw in sorted(entries.items()):
        if name not in TERMS:
            found.append(Problem(table="[terms]", key=name, what=_unknown(name, TERMS)))
        elif (value := _value("[terms]", name, raw, read_time, found)) is not None:
            yield name, value


def _rules(entries: Mapping[str, Any], found: list[Problem]) -> Iterator[RuleTerms]:
    for rule_id, told in sorted(entries.items()):
        where = f"[rules.{rule_id}]"
        if rule_id not in _BY_ID:
            found.append(Problem(table=where, what=f"no such rule; {_near(rule_id, _BY_ID)}"))
        elif not isinstance(told, Mapping):
            found.append(Problem(key=f"rules.{rule_id}", what=f"must be a table, {where}"))
        else:
            yield _rule(where, _BY_ID[rule_id], told, found)


def _rule(where: str, rule: Rule, told: Mapping[str, Any], found: list[Problem]) -> RuleTerms:
    found += [
        Problem(table=where, key=name, what=_unknown(name, _OF_A_RULE))
        for name in told
        if name not in _OF_A_RULE
    ]
    values: dict[str, Any] = {}
    readers: Mapping[str, Callable[[object], Any]] = {
        "disabled": _flag,
        "severity": _severity,
        "grace_ms": read_time,
    }
    for name, read in readers.items():
        if name in told:
            values[name] = _value(where, name, told[name], read, found)
    if "grace_ms" in told and not has_grace(rule):
        what = "this rule is decided when its evidence is complete, and not after a time of its own"
        found.append(Problem(table=where, key="grace_ms", what=what))
    return RuleTerms(
        rule_id=rule.id,
        is_disabled=bool(values.get("disabled")),
        severity=values.get("severity"),
        grace_ms=values.get("grace_ms"),
    )


def has_grace(rule: Rule) -> bool:
    """Whether it is about a state of a log, and waits."""
    return rule.sort is Sort.STATE and rule.judged_by == "log" and rule.id != _DEVIATES


def _value(
    where: str, key: str, raw: object, read: Callable[[object], Any], found: list[Problem]
) -> Any | None:
    try:
        return read(raw)
    except ValueError as refused:
        found.append(Problem(table=where, key=key, what=f"{raw!r} is not allowed; it must be {refused}"))
        return None


def _flag(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise ValueError("true or false")
    return raw


def _severity(raw: object) -> str:
    if not isinstance(raw, str) or raw not in SEVERITY_LETTERS:
        raise ValueError(f"one of {', '.join(SEVERITY_LETTERS)}")
    return SEVERITY_LETTERS[raw]


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"unknown key; {_near(name, known)}"


def _near(name: str, known: Iterable[str]) -> str:
    listed = list(known)
    near = nearest(name, listed)
    return f"did you mean `{near}`?" if near else f"there are {', '.join(listed)}"
