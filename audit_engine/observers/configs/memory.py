"""What was told of each configuration: what the next look is compared with.

    look                    when the last look was, and what it was not told
    <resource>              the name, the values, and when they were seen last if not at the last look

Owns the form of these. The file is `kept`'s. A look is kept with its events before the first is emitted.

Invariant: what is kept of a resource is what was last told of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from audit_engine.observers.configs.effective import Value, Values
from audit_engine.observers.kept import Kept
from rules.events import ConfigSource, Event

FILE_NAME = "configs-observer.sqlite"
_LOOK = "look"


class Resource(NamedTuple):
    """A broker's own configuration, or a topic's as one broker goes by it."""

    broker_id: int
    topic_id: str | None = None

    @property
    def key(self) -> str:
        return f"broker:{self.broker_id}" + ("" if self.topic_id is None else f":topic:{self.topic_id}")

    @classmethod
    def of_key(cls, key: str) -> Resource:
        _, broker_id, *topic = key.split(":")
        return cls(int(broker_id), topic[1] if topic else None)


class Known(NamedTuple):
    """`last_seen_ms` is None for what was seen at the last look."""

    topic: str | None
    values: Values
    last_seen_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the looks so far left behind; `at_ms` is None before the first."""

    at_ms: int | None = None
    is_partial: bool = False  # the last look was not told everything
    resources: Mapping[Resource, Known] = field(default_factory=dict)


class Memory:
    """One observer's. Raises MemoryUnusable when its folder does not take it."""

    def __init__(self, folder: Path, *, cluster_id: str) -> None:
        self._kept = Kept(folder / FILE_NAME, owner=f"configs of {cluster_id}")

    def load(self, now_ms: int) -> tuple[Seen, tuple[Event, ...], str | None]:
        """What was kept, the events that were not out, and why there is nothing if there was something."""
        kept, pending, damage = self._kept.load(now_ms)
        at_ms, is_partial = kept.get(_LOOK, (None, False))
        resources = {Resource.of_key(key): _known(*found) for key, found in kept.items() if key != _LOOK}
        return Seen(at_ms=at_ms, is_partial=is_partial, resources=resources), pending, damage

    def keep(self, before: Seen, seen: Seen, events: Sequence[Event]) -> None:
        """Durable when it returns."""
        changed: dict[str, object] = {
            each.key: known for each, known in seen.resources.items() if before.resources.get(each) != known
        }
        gone = [each.key for each in before.resources.keys() - seen.resources.keys()]
        self._kept.keep(changed | {_LOOK: (seen.at_ms, seen.is_partial)}, gone=gone, events=events)

    def emitted(self) -> None:
        self._kept.emitted()

    def close(self) -> None:
        self._kept.close()


def _known(
    topic: str | None, values: Mapping[str, tuple[str | None, str]], last_seen_ms: int | None
) -> Known:
    typed = {name: Value(value, ConfigSource(source)) for name, (value, source) in values.items()}
    return Known(topic, typed, last_seen_ms)
