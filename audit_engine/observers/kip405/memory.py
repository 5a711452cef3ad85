"""How far the topic was read, and what the tier held then: what an observer goes on from.

    topic            the topic's id
    partition:<n>    [next offset, leader epoch before it, phase]
    copy:<id>        the copy

Owns the form of these. The file is `kept`'s.

Invariant: the copies of a partition are those after exactly the records below its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from audit_engine.observers.kept import Kept
from audit_engine.observers.kip405.segments import Copy, Mark
from audit_engine.observers.kip405.source import Position

FILE_NAME = "kip405-observer.sqlite"
_TOPIC, _PARTITION, _COPY = "topic", "partition:", "copy:"


class Phase(str, Enum):
    """How far an observer is with a partition."""

    READING = "reading"  # for the first time, and not at its end yet: nothing of it was told
    TELLING = "telling"  # what was there at that end is being told
    TOLD = "told"  # from here on each record is told as it comes


class Progress(NamedTuple):
    position: Position
    phase: Phase


@dataclass(slots=True, kw_only=True)
class State:
    """What is known between two reads."""

    topic_id: str | None = None
    partitions: dict[int, Progress] = field(default_factory=dict)
    copies: dict[int, dict[str, Copy]] = field(default_factory=dict)  # by metadata partition, by id

    def copies_of(self, partition: int) -> dict[str, Copy]:
        return self.copies.setdefault(partition, {})


class Memory:
    """One observer's. Raises MemoryUnusable when its folder does not take it."""

    def __init__(self, folder: Path, *, cluster_id: str) -> None:
        self._kept = Kept(folder / FILE_NAME, owner=f"kip405 of {cluster_id}")

    def load(self, now_ms: int) -> tuple[State, str | None]:
        """What was kept, or nothing and why."""
        values, _, damage = self._kept.load(now_ms)
        if damage is not None:
            return State(), damage
        state = State(topic_id=values.get(_TOPIC))
        for key, value in values.items():
            if key.startswith(_PARTITION):
                offset, leader_epoch, phase = value
                state.partitions[int(key.removeprefix(_PARTITION))] = Progress(
                    Position(offset, leader_epoch), Phase(phase)
                )
            elif key.startswith(_COPY):
                copy = _as_copy(value)
                state.copies_of(copy.metadata_partition)[copy.segment_id] = copy
        return state, None

    def keep(self, partition: int, progress: Progress, changed: Mapping[str, Copy | None]) -> None:
        """Durable when it returns."""
        there: dict[str, object] = {f"{_PARTITION}{partition}": [*progress.position, progress.phase.value]}
        there |= {_COPY + key: copy for key, copy in changed.items() if copy is not None}
        self._kept.keep(there, gone=[_COPY + key for key, copy in changed.items() if copy is None])

    def begin(self, topic_id: str, forgotten: State) -> None:
        """Another topic than before: nothing is known of it yet."""
        gone = [f"{_PARTITION}{number}" for number in forgotten.partitions]
        gone += [_COPY + key for copies in forgotten.copies.values() for key in copies]
        self._kept.keep({_TOPIC: topic_id}, gone=gone)

    def close(self) -> None:
        self._kept.close()


def _as_copy(value: Any) -> Copy:
    found = Copy(*value)
    return found._replace(
        epochs=tuple((epoch, start) for epoch, start in found.epochs),
        started=_as_mark(found.started),
        finished=_as_mark(found.finished),
        deleting=_as_mark(found.deleting),
    )


def _as_mark(value: Any) -> Mark | None:
    return None if value is None else Mark(*value)
