"""From one policy to another: what changes in which table, and for whom.

Owns the comparison of declared values (`Change`) and of effective ones (`Effect`). The second is what
matters: to remove a table can shrink retention for some topics and lengthen it for others. Effects are found
per cell (`cells`), so that a change counts for topics that do not exist yet, too.

Invariant: there is no effect on any topic without a change, and two policies are equal if and only if there
is no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rules.policy.cells import cells
from rules.policy.declared import PURGED, Policy, Table
from rules.policy.keys import KEYS
from rules.policy.topic import Origin, TopicPolicy
from rules.policy.values import Value
from rules.policy.weakening import Weakening


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One key of one table; None: not declared there."""

    pattern: str
    key: str
    before: Value | None
    after: Value | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the changes come to for one key of a topic; None: undeclared."""

    key: str
    before: Value | None
    after: Value | None
    before_origin: Origin
    after_origin: Origin

    @property
    def weakening(self) -> Weakening | None:
        return KEYS[self.key].weakens(self.before, self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """A topic, or all those of a cell under the name of one of them, for which something changes."""

    topic: str
    before: TopicPolicy
    after: TopicPolicy
    effects: tuple[Effect, ...]

    @property
    def weakens(self) -> bool:
        return any(effect.weakening for effect in self.effects)


def changes(before: Policy, after: Policy) -> Iterator[Change]:
    """In the order of patterns, then of keys."""
    patterns = {table.pattern.text for policy in (before, after) for table in policy.tables}
    for pattern in sorted(patterns):
        old, new = before.table(pattern), after.table(pattern)
        for key in KEYS:
            was, is_now = _declared(old, key), _declared(new, key)
            if was != is_now:
                yield Change(pattern=pattern, key=key, before=was, after=is_now)


def affected(before: Policy, after: Policy, topics: Iterable[str]) -> Iterator[Affected]:
    """Those of these topics for which an effective value changes."""
    for topic in topics:
        found = _compared(before.effective(topic), after.effective(topic))
        if found.effects:
            yield found


def affected_kinds(before: Policy, after: Policy) -> Iterator[Affected]:
    """As `affected`, for every topic that there could be: one example of each kind.

    TooIntricate if the two policies' patterns together overlap in too many ways.
    """
    for cell in cells([*before.patterns, *after.patterns, PURGED]):
        found = _compared(before.of_cell(cell), after.of_cell(cell))
        if found.effects:
            yield found


def _declared(table: Table | None, key: str) -> Value | None:
    return table.get(key) if table is not None else None


def _compared(before: TopicPolicy, after: TopicPolicy) -> Affected:
    effects = (
        Effect(
            key=key,
            before=getattr(before, key),
            after=getattr(after, key),
            before_origin=before.origins[key],
            after_origin=after.origins[key],
        )
        for key in KEYS
    )
    return Affected(
        topic=before.topic,
        before=before,
        after=after,
        effects=tuple(effect for effect in effects if effect.before != effect.after),
    )
