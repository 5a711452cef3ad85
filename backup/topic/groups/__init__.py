"""Consumer groups' positions, from the source's offsets to the target's (pure; `kafka` asks and sets them).

Owns the translation, and the record of what stood before. Refuses to invent a position beyond what was
replayed: the group then stays where it is in the target, and is told so.

Invariant: a consumer that goes on from a translated position reads each record that it had not read, and, of
what was replayed, none that it had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from backup.topic.offset_map import OffsetMap

VERSION = 1


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A map, and what it leads from and to."""

    source: Place
    target: Place
    map: OffsetMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One partition of a group. `position` None: `why` says what keeps it from being moved."""

    source: Place
    target: Place
    committed: int
    position: int | None
    why: str = ""


class Groups(Protocol):
    """The groups of one cluster."""

    def positions(self, group: str) -> Mapping[Place, int]: ...

    def state(self, group: str) -> str:
        """As Kafka names it: EMPTY, STABLE, …; DEAD for one that is not there."""

    def commit(self, group: str, positions: Mapping[Place, int]) -> None: ...


def moves(committed: Mapping[Place, int], maps: list[Mapped]) -> list[Move]:
    """Where a group would go on in the target; partitions without a position are not in it."""
    found: list[Move] = []
    for each in maps:
        position = committed.get(each.source)
        if position is None:
            continue
        to = each.map.translate(position)
        if to is not None:
            why = f"is below what was replayed, from {each.map.start} on" if position < each.map.start else ""
        else:
            why = f"is beyond what was replayed, up to {each.map.end}"
        found.append(Move(source=each.source, target=each.target, committed=position, position=to, why=why))
    return found


def write_saved(path: Path, group: str, positions: Mapping[Place, int | None], moved_ms: int) -> None:
    """What stood in the target before; never over another file. None: there was no position."""
    rows = [
        {"topic": place.topic, "partition": place.partition, "offset": at} for place, at in positions.items()
    ]
    written = {"version": VERSION, "group": group, "saved_at_ms": moved_ms, "positions": rows}
    with path.open("x", encoding="utf-8") as file:
        json.dump(written, file, indent=1)
        file.write("\n")


def read_saved(path: Path) -> tuple[str, dict[Place, int | None]]:
    """The group and its positions. Raises ValueError for another file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise ValueError(f"{path} holds no saved positions of version {VERSION}")
    rows = {Place(str(each["topic"]), int(each["partition"])): each["offset"] for each in found["positions"]}
    return str(found["group"]), rows
