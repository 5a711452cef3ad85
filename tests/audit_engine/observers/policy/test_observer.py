"""Each change of the policy is told, whoever dies in between, and by every agent in the same words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from audit_engine.observers.policy.observer import FILE_NAME, Observer
from rules.events import Event, PolicyDeclared
from rules.policy import read_policy
from rules.policy.record import declared_change
from rules.policy.timeline import Applied

NOW_MS = 1_000
DAY_MS = 86_400_000


def changes(*days: int) -> list[Applied]:
    """One change behind the other: the retention of all topics."""
    applied: list[Applied] = []
    for at, each in enumerate(days):
        change = declared_change(
            policy=read_policy({"topics": {"*": {"total_retention_ms": f"{each}d"}}}),
            base=applied[-1].as_base if applied else None,
            cluster_id="c",
            principal="alice",
            change_id=f"CHG-{at}",
            occurred_at_ms=at,
        )
        applied.append(Applied(offset=at, change=change))
    return applied


class Refused(Exception):
    """The sink is full."""


class Watched:
    """An observer over changes that a test sets, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.applied: Sequence[Applied] = ()
        self.said: list[Event] = []
        self.is_refusing = False
        ids = count()
        self.observer = Observer(
            changes=lambda: self.applied,
            cluster_id="c",
            sink=self,
            now_ms=lambda: NOW_MS,
            new_id=lambda: f"e{next(ids)}",
            folder=folder,
        )

    def emit_many(self, events: Sequence[Event]) -> None:
        if self.is_refusing:
            raise Refused
        self.said += events

    def look(self, applied: Sequence[Applied]) -> list[Event]:
        self.applied = applied
        self.said.clear()
        self.observer.run_once()
        return list(self.said)


def values(events: Sequence[Event]) -> list[tuple[int, int | None, int | None]]:
    """Offset, and days before and after."""
    return [
        (each.policy_offset, days(each.before), days(each.after))
        for each in events
        if isinstance(each, PolicyDeclared)
    ]


def days(told: str | None) -> int | None:
    return None if told is None else json.loads(told) // DAY_MS


def test_each_change_is_told_once_by_one_agent(tmp_path: Path) -> None:
    """Two changes at the first look, one more later, none afterwards, also by the next run."""
    every = changes(30, 7, 1)
    watched = Watched(tmp_path)

    first, then, quiet = watched.look(every[:2]), watched.look(every), watched.look(every)
    watched.observer.close()
    again = Watched(tmp_path)

    assert values(first) == [(0, None, 30), (1, 30, 7)]
    assert values(then) == [(2, 7, 1)]
    assert (quiet, again.look(every)) == ([], [])
    again.observer.close()


def test_agents_tell_the_same_events(tmp_path: Path) -> None:
    """Ids and all: what two tell is one."""
    every = changes(30, 7)
    (tmp_path / "b").mkdir()
    one, other = Watched(tmp_path), Watched(tmp_path / "b")

    assert one.look(every) == other.look(every) != []
    one.observer.close()
    other.observer.close()


@pytest.mark.parametrize("is_lost", [False, True], ids=["killed", "killed, and its memory gone"])
def test_what_was_not_out_is_told_again(tmp_path: Path, *, is_lost: bool) -> None:
    """The sink refused, the process ended: the next one tells all of it, in the same words."""
    every = changes(30)
    watched = Watched(tmp_path)
    watched.is_refusing = True
    with pytest.raises(Refused):
        watched.look(every)
    watched.observer.close()
    if is_lost:
        (tmp_path / FILE_NAME).write_bytes(b"not a database")

    again = Watched(tmp_path)

    assert values(again.look(every)) == [(0, None, 30)]
    again.observer.close()


def test_a_topic_that_was_made_anew_is_told_from_its_beginning(tmp_path: Path) -> None:
    """Other changes at the same offsets."""
    watched = Watched(tmp_path)
    watched.look(changes(30))

    assert values(watched.look(changes(7, 1))) == [(0, None, 7), (1, 7, 1)]
    watched.observer.close()
