"""From a mapping, as TOML or JSON gives it, to a policy; and all that is wrong with it at once.

Owns the refusals. A key that is not known is a problem with the nearest name that is, never ignored: a
misspelt `trim = false` would be a deletion. A policy is checked for every topic that there could be, not only
for those of today (`cells`).

Invariant: `read_policy(policy.tree()) == policy`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rules.policy.cells import STATES_MAX, TooIntricate, cells
from rules.policy.declared import PURGED, VERSION, Policy, Table, problems
from rules.policy.errors import PolicyRefused, Problem, nearest, table_of
from rules.policy.keys import KEYS
from rules.policy.patterns import read_pattern
from rules.policy.values import Value

TOPICS = "topics"
_TOP = ("version", TOPICS)


def read_policy(tree: Mapping[str, Any]) -> Policy:
    """PolicyRefused, with every problem, if it is not one that can be followed."""
    found: list[Problem] = []
    policy = Policy(tables=tuple(_tables(tree, found)))
    if not found:
        found += _for_any_topic(policy)
    if found:
        raise PolicyRefused(found)
    return policy


def _tables(tree: Mapping[str, Any], found: list[Problem]) -> Iterator[Table]:
    found += [Problem(key=name, what=_unknown_at_top(name)) for name in tree if name not in _TOP]
    version = tree.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        found.append(Problem(key="version", what=f"is {version!r}; this Seawall reads version {VERSION}"))
    topics = tree.get(TOPICS)
    if not isinstance(topics, Mapping) or not topics:
        if not found:  # else that is why
            found.append(Problem(what=f"no table of topics, such as {table_of('*')}: nothing is declared"))
        return
    for pattern, entries in sorted(topics.items()):
        table = _table(str(pattern), entries, found)
        if table is not None:
            yield table


def _table(text: str, entries: Any, found: list[Problem]) -> Table | None:
    where = table_of(text)
    if not isinstance(entries, Mapping):
        suggestion = f"; did you mean {table_of('*')} and `{text}` in it?" if text in KEYS else ""
        found.append(Problem(key=f"{TOPICS}.{text}", what=f"must be a table, {where}{suggestion}"))
        return None
    try:
        pattern = read_pattern(text)
    except ValueError as refused:
        found.append(Problem(table=where, what=f"the pattern is not one of topics' names: {refused}"))
        return None
    found += [Problem(table=where, key=key, what=_unknown(key)) for key in entries if key not in KEYS]
    if not entries:
        found.append(Problem(table=where, what="the table declares nothing"))
    values = [(key, _value(where, key, entries[key], found)) for key in KEYS if key in entries]
    return Table(pattern=pattern, values=tuple((key, value) for key, value in values if value is not None))


def _value(where: str, key: str, raw: object, found: list[Problem]) -> Value | None:
    try:
        return KEYS[key].form.read(raw)
    except ValueError as refused:
        shown = json.dumps(raw, ensure_ascii=False, default=str)
        found.append(Problem(table=where, key=key, what=f"{shown} is not allowed; it must be {refused}"))
        return None


def _unknown(key: str) -> str:
    near = nearest(key, KEYS)
    return f"unknown key; did you mean `{near}`?" if near else f"unknown key; there are {', '.join(KEYS)}"


def _unknown_at_top(name: str) -> str:
    if name in KEYS:
        return f"stands outside of a table of topics; begin one before it, such as {table_of('*')}"
    near = nearest(name, _TOP)
    hint = f"did you mean `{near}`?" if near else f"patterns of topics stand under {TOPICS}: {table_of(name)}"
    return f"unknown key; {hint}"


def _for_any_topic(policy: Policy) -> list[Problem]:
    """Ties and contradictions, for whatever topic there could be."""
    try:
        # PURGED decides about defaults, whether or not a table has it.
        return [
            problem
            for cell in cells([*policy.patterns, PURGED])
            for problem in problems(cell.example, policy.under(cell))
        ]
    except TooIntricate:
        what = f"the patterns overlap in more than {STATES_MAX} ways; have fewer that begin with a *"
        return [Problem(what=what)]
