"""The policy as a value: tables by pattern, and what they come to for a topic.

Owns precedence. A topic's value for a key is that of the most specific table that matches the topic and has
the key; a table that lacks a key leaves it to the less specific ones, and last to the default. Tables that
are equally specific may both speak if they say the same.

Refuses to choose between equals: that is a `PolicyRefused`, and `reading.read_policy` refuses the file in
which it could happen. So `effective` never fails on a policy that was read.

Invariant: the content hash depends on what is declared, and on nothing of how the file writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rules.policy.cells import Cell
from rules.policy.errors import PolicyRefused, Problem, table_of
from rules.policy.keys import KEYS, STREAMS_PURGED
from rules.policy.patterns import Pattern
from rules.policy.topic import DEFAULT, Contradiction, Origin, TopicPolicy, complete, contradictions
from rules.policy.values import Plain, Value

VERSION = 1
PURGED = Pattern(STREAMS_PURGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    pattern: Pattern
    values: tuple[tuple[str, Value], ...]  # by key, in the order of KEYS

    def get(self, key: str) -> Value | None:
        return next((value for name, value in self.values if name == key), None)

    def plain(self) -> dict[str, Plain]:
        return {name: KEYS[name].form.plain(value) for name, value in self.values}


class Tie(NamedTuple):
    key: str
    tables: tuple[Table, Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The tables that match a topic, taken together."""

    values: Mapping[str, Any]
    origins: Mapping[str, Origin]
    ties: tuple[Tie, ...]
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`tables` in the order of their patterns. Made by `reading.read_policy`."""

    tables: tuple[Table, ...]
    _by_text: Mapping[str, Table] = field(init=False, repr=False, compare=False)
    _globs: tuple[Table, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_text", {table.pattern.text: table for table in self.tables})
        object.__setattr__(self, "_globs", tuple(table for table in self.tables if table.pattern.is_glob))

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        return tuple(table.pattern for table in self.tables)

    def table(self, pattern: str) -> Table | None:
        return self._by_text.get(pattern)

    def matching(self, topic: str) -> tuple[Table, ...]:
        """Every table that matches, in no order of precedence."""
        globs = [table for table in self._globs if table.pattern.matches(topic)]
        own = self._by_text.get(topic)  # no topic's name has a *
        return (*globs, own) if own is not None else tuple(globs)

    def under(self, cell: Cell) -> Resolved:
        """What holds for every topic of a cell, be it this policy's or one that has more patterns."""
        tables = (self._by_text.get(pattern.text) for pattern in cell.matching)
        return resolve(cell.example, [table for table in tables if table is not None])

    def effective(self, topic: str) -> TopicPolicy:
        return _topic_policy(topic, resolve(topic, self.matching(topic)))

    def of_cell(self, cell: Cell) -> TopicPolicy:
        return _topic_policy(cell.example, self.under(cell))

    def tree(self) -> dict[str, Any]:
        """As the file has it, in plain numbers. `reading.read_policy` takes it back."""
        return {"version": VERSION, "topics": {table.pattern.text: table.plain() for table in self.tables}}

    @property
    def content_hash(self) -> str:
        """SHA-256, as 64 hexadecimal digits."""
        canonical = json.dumps(self.tree(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


EMPTY = Policy(tables=())


def resolve(topic: str, matching: Sequence[Table]) -> Resolved:
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    ties: list[Tie] = []
    for key in KEYS.values():
        top = _most_specific([table for table in matching if table.get(key.name) is not None])
        if not top:
            is_purged = key.default_of_purged is not None and PURGED.matches(topic)
            values[key.name] = key.default_of_purged if is_purged else key.default
            origins[key.name] = DEFAULT
            continue
        values[key.name] = top[0].get(key.name)
        origins[key.name] = Origin(tuple(sorted(table.pattern.text for table in top)))
        unlike = (table for table in top[1:] if table.get(key.name) != values[key.name])
        ties += [Tie(key.name, (top[0], table)) for table in unlike]
    complete(values, origins)
    return Resolved(
        values=values,
        origins=origins,
        ties=tuple(ties),
        contradictions=() if ties else tuple(contradictions(values)),
    )


def _topic_policy(topic: str, resolved: Resolved) -> TopicPolicy:
    found = problems(topic, resolved)
    if found:
        raise PolicyRefused(found)
    return TopicPolicy(topic=topic, origins=resolved.origins, **resolved.values)


def _most_specific(tables: Sequence[Table]) -> list[Table]:
    return [
        table
        for table in tables
        if not any(other is not table and table.pattern.covers(other.pattern) for other in tables)
    ]


def problems(topic: str, resolved: Resolved) -> list[Problem]:
    """What is wrong with what was resolved for this topic, and for all others that the same tables match."""
    ties = [_tie(topic, tie) for tie in resolved.ties]
    return ties + [_contradiction(topic, resolved, found) for found in resolved.contradictions]


def _tie(topic: str, tie: Tie) -> Problem:
    one, other = tie.tables
    here, there = (KEYS[tie.key].spoken(table.get(tie.key)) for table in tie.tables)
    where = table_of(other.pattern.text)
    what = (
        f"{here} here, and {there} in {where}; neither pattern is more specific than the other, and "
        "topics match both: declare it in a table for those, too"
    )
    return Problem(table=table_of(one.pattern.text), key=tie.key, what=what, example=topic)


def _contradiction(topic: str, resolved: Resolved, found: Contradiction) -> Problem:
    said = ", ".join(_said(key, resolved) for key in found.keys)
    blamed = next((key for key in found.keys if resolved.origins[key].patterns), found.keys[0])
    patterns = resolved.origins[blamed].patterns
    table = table_of(patterns[0]) if patterns else None
    return Problem(table=table, key=blamed, what=f"{found.why}: {said}", example=topic)


def _said(key: str, resolved: Resolved) -> str:
    tables = ", ".join(map(table_of, resolved.origins[key].patterns)) or "default"
    return f"{key} = {KEYS[key].spoken(resolved.values[key])} ({tables})"
