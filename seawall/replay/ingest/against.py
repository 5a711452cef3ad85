"""The rows that a topic makes now, held against those that are in the tables, position by position. Pure.

One position of Kafka is one row: of audit_events where its envelope can be read, else of audit_quarantine. A
record that a replay of the quarantine took up has both, and counts as the event that it became.

Two differences are no divergence, and are counted: what an older version put into quarantine, or could not
read the body of, and this one can. A newer reader knows more; the other way round would be a loss.

Owns the comparison. Invariant: each position of either side is looked at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from workers.proof import Chain, Compared, Divergence, Equal, Step

EVENT, QUARANTINE = "audit_events", "audit_quarantine"
# What a newer version may say otherwise of one and the same record.
_OF_READING = ("is_read", "unrecognised")


class Row(NamedTuple):
    """`says`: its columns as JSON, the day of the commit apart."""

    partition: int
    offset: int
    table: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstTables:
    """`read_since`: rows that an older version wrote, and this one reads better."""

    rows: int
    read_since: int
    first: Compared


def step(row: Row) -> Step:
    return Step(f"{row.partition}@{row.offset}", f"{row.table} {row.says}")


class Executions:
    """Two of one log, gone through side by side and once: its rows are the first's, as long as both are the
    same."""

    def __init__(self, first: Iterable[Row], second: Iterable[Row]) -> None:
        self._pairs = enumerate(zip_longest(first, second))
        self._chain = Chain()
        self._diverges: Divergence | None = None

    def __iter__(self) -> Iterator[Row]:
        for number, (one, other) in self._pairs:
            if one is None or one != other:
                first, second = (None if each is None else step(each) for each in (one, other))
                self._diverges = Divergence(number=number, first=first, second=second)
                self._pairs = enumerate(())
                return
            self._chain.add(step(one))
            yield one

    def compared(self) -> Compared:
        """To the end of both, whoever stopped asking for rows before."""
        for _ in self:
            """What nobody asked for."""
        return self._diverges or Equal(steps=self._chain.steps, hash=self._chain.hex())


def against(rebuilt: Iterable[Row], held: Iterable[Row]) -> AgainstTables:
    """Both in the order of partition and offset."""
    chain, read_since = Chain(), 0
    for number, (here, there) in enumerate(_side_by_side(iter(rebuilt), _once(held))):
        if here is not None and here == there:
            chain.add(step(here))
        elif here is not None and there is not None and _is_newer(here, there):
            read_since += 1
            chain.add(step(here))
        else:
            first, second = (None if each is None else step(each) for each in (here, there))
            diverges = Divergence(number=number, first=first, second=second)
            return AgainstTables(rows=chain.steps, read_since=read_since, first=diverges)
    equal = Equal(steps=chain.steps, hash=chain.hex())
    return AgainstTables(rows=chain.steps, read_since=read_since, first=equal)


def _is_newer(here: Row, there: Row) -> bool:
    """The topic's row is the table's, read by a version that knows more."""
    if here.table != EVENT:
        return False
    if there.table == QUARANTINE:
        return True
    now, then = json.loads(here.says), json.loads(there.says)
    return bool(now.get("is_read")) and not then.get("is_read") and _rest(now) == _rest(then)


def _rest(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name not in _OF_READING}


def _once(held: Iterable[Row]) -> Iterator[Row]:
    """Of a position in both tables the event; of one that is in a table twice both, which is a divergence."""
    waiting: Row | None = None
    for row in held:
        if waiting is not None and waiting[:2] == row[:2] and waiting.table != row.table:
            waiting = min(waiting, row, key=lambda each: each.table != EVENT)
            continue
        if waiting is not None:
            yield waiting
        waiting = row
    if waiting is not None:
        yield waiting


def _side_by_side(first: Iterator[Row], second: Iterator[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Pairs of one position; None where that side has no row of it."""
    here, there = next(first, None), next(second, None)
    while here is not None or there is not None:
        is_here = here is not None and (there is None or here[:2] <= there[:2])
        is_there = there is not None and (here is None or there[:2] <= here[:2])
        yield here if is_here else None, there if is_there else None
        here, there = (
            next(first, None) if is_here else here,
            next(second, None) if is_there else there,
        )
