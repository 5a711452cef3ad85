"""What an observer invents that looks at names only: the traps, each with what is true beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rules.events import SegmentDeletedLocal
from tests.audit_engine.observers.disk.model import NAME, Disk
from tests.audit_engine.observers.disk.test_model import Watched, fact


def bases(disk: Disk) -> set[int]:
    """Segments by the names under the partition's name, wherever it is."""
    found = [path for folder in disk.paths for path in (folder / NAME).glob("*.log")]
    return {int(path.stem) for path in found}


def reassign(disk: Disk) -> None:
    disk.unassign()
    disk.assign(0)
    disk.empty(9000)
    disk.empty(8784)


TRAPS: dict[str, Callable[[Disk], object]] = {
    "reassigned there and back": reassign,
    "unmounted": lambda disk: disk.unmount(0),
    "made anew under its name": lambda disk: disk.recreate(),
    "truncated": lambda disk: disk.truncate(7),
    "emptied": lambda disk: disk.empty(500),
    "compacted": lambda disk: disk.compact(0),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_went_otherwise_is_no_deletion(tmp_path: Path, trap: str) -> None:
    """Names say that segments were deleted; the observer says what it was, and no deletion."""
    watched = Watched(tmp_path)
    for count in (5, 6, 7):
        watched.disk.roll(count)
    watched.look()
    before = bases(watched.disk)
    watched.facts()

    TRAPS[trap](watched.disk)
    watched.look()
    watched.look()

    assert before - bases(watched.disk), "a look at names alone calls this deleted"
    removals = [each for each in watched.said if isinstance(each, SegmentDeletedLocal)]
    assert [fact(each).kind for each in removals if fact(each).kind != "swapped"] == []
    assert watched.facts()
    watched.observer.close()


def test_the_start_of_a_replica_that_came_back_is_never_compared(tmp_path: Path) -> None:
    """Start 9000, then 0, 9000 and 8784 on the broker that has it again: each a new life (AUDIT_FACTS 4)."""
    watched = Watched(tmp_path)
    watched.disk.empty(9000)
    watched.look()
    watched.facts()

    for act in (
        watched.disk.unassign,
        lambda: watched.disk.assign(0),
        lambda: watched.disk.empty(9000),
        lambda: watched.disk.empty(8784),
    ):
        act()
        watched.look()
        watched.look()

    assert [
        fact(each)[:2] for each in watched.said if each.kind not in ("high_watermark", "log_baseline")
    ] == [
        ("replica_removed", "renamed_delete"),
        ("replica_started", "created"),
        ("replica_started", "truncated_fully"),
        ("replica_started", "truncated_fully"),
    ]
    watched.observer.close()
