"""What the observer remembers of this host's log dirs: what the next look is compared with.

    look      when the last one was that was kept, the dirs out of sight, how many lives there are
    [life]    what is remembered of it

Owns the form of these, and when a look that found nothing is worth a write. The file is `kept`'s: a look is
kept with its events before the first of them is emitted, so that nothing that it found is lost with the
process, and none of it is another event the second time.

Invariant: what `load` gives back is what one `keep` was given, or nothing at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from audit_engine.observers.disk.seen import Life, Piece, Replica, Seen, Unread
from audit_engine.observers.kept import Kept
from rules.events import Event
from tiering.cluster.interface import BrokerIdentity

FILE_NAME = "disk-observer.sqlite"
LOOK_KEPT_EVERY_MS = 60_000  # a quiet look costs no write; after a restart its intervals are that much wider
_LOOK = "look"

_Dirs: TypeAlias = tuple[frozenset[str], frozenset[Life], Mapping[str, Unread]]


class Loaded(NamedTuple):
    """`seen` is None at the first start, and where it could not be read: `damage` then says why."""

    seen: Seen | None
    pending: tuple[Event, ...]
    damage: str | None


class Memory:
    """One observer's. Raises MemoryUnusable when its folder does not take it."""

    def __init__(
        self, folder: Path, broker: BrokerIdentity, *, kept_every_ms: int = LOOK_KEPT_EVERY_MS
    ) -> None:
        self._broker = broker
        self._file = Kept(
            folder / FILE_NAME, owner=f"the log dirs of broker {broker.broker_id} of {broker.cluster_id}"
        )
        self._kept_every_ms = kept_every_ms
        self._kept: Mapping[Life, Replica] = {}
        self._kept_at_ms: int | None = None
        self._kept_dirs: _Dirs = _dirs(None)

    def load(self, now_ms: int) -> Loaded:
        values, pending, damage = self._file.load(now_ms)
        seen = None
        try:
            seen = _restored(self._broker, values)
        except (KeyError, TypeError, ValueError) as odd:
            self._file.set_aside(now_ms)
            pending, damage = (), repr(odd)
        self._kept = {} if seen is None else seen.replicas
        self._kept_at_ms = None if seen is None else seen.at_ms
        self._kept_dirs = _dirs(seen)
        return Loaded(seen, pending, damage)

    def keep(self, seen: Seen, events: Sequence[Event]) -> None:
        """Durable when it returns. Of a quiet look, the time and the growth are written now and then."""
        changed = [each for life, each in seen.replicas.items() if self._kept.get(life) is not each]
        gone = self._kept.keys() - seen.replicas.keys()
        is_due = self._kept_at_ms is None or seen.at_ms - self._kept_at_ms >= self._kept_every_ms
        if not is_due:
            changed = [each for each in changed if _structure(self._kept.get(each.life)) != _structure(each)]
        dirs = _dirs(seen)
        if not (changed or gone or events or is_due or dirs != self._kept_dirs):
            return
        rows: dict[str, object] = {_key(each.life): _replica(each) for each in changed}
        self._file.keep(rows | {_LOOK: _look(seen)}, gone=map(_key, gone), events=events)
        # What grew and was not written now is different from what is kept, and is written when it is due.
        written = {each.life: each for each in changed}
        self._kept = {
            life: written.get(life, self._kept.get(life, each)) for life, each in seen.replicas.items()
        }
        self._kept_at_ms = seen.at_ms if is_due else self._kept_at_ms
        self._kept_dirs = dirs

    def emitted(self) -> None:
        """What was pending is out. Not known after a crash just now: it is emitted once more, the same."""
        self._file.emitted()

    def close(self) -> None:
        self._file.close()


def _structure(replica: Replica | None) -> object:
    """What must be known after a restart. How far the active segment has grown meanwhile is not of it."""
    if replica is None:
        return None
    pieces = tuple(p if p.end_offset is not None else p._replace(size_bytes=0) for p in replica.pieces)
    return replace(replica, pieces=pieces, high_watermark=replica.watermark_said)


def _key(life: Life) -> str:
    return json.dumps(life)


def _restored(broker: BrokerIdentity, values: Mapping[str, Any]) -> Seen | None:
    """The look that was kept, if there was one. Raises ValueError and the like where it is not whole."""
    if not values:
        return None
    look = values[_LOOK]
    replicas = [_as_replica(body) for key, body in values.items() if key != _LOOK]
    if len(replicas) != look["replica_count"]:
        raise ValueError(f"it holds {len(replicas)} replicas of {look['replica_count']}")
    return Seen(
        broker=broker,
        at_ms=look["at_ms"],
        replicas=MappingProxyType({each.life: each for each in replicas}),
        offline=frozenset(look["offline"]),
        moving=frozenset(Life(*each) for each in look["moving"]),
        unread=MappingProxyType({path: Unread(*each) for path, each in look["unread"].items()}),
    )


def _dirs(seen: Seen | None) -> _Dirs:
    return (frozenset(), frozenset(), {}) if seen is None else (seen.offline, seen.moving, seen.unread)


def _look(seen: Seen) -> dict[str, object]:
    return {
        "at_ms": seen.at_ms,
        "offline": sorted(seen.offline),
        "moving": sorted(seen.moving, key=repr),
        "unread": dict(seen.unread),
        "replica_count": len(seen.replicas),
    }


_PLAIN = (
    "log_dir",
    "log_start",
    "checkpoint_entry",
    "high_watermark",
    "emptied",
    "said",
    "last_seen_ms",
    "is_dark",
    "held_looks",
    "watermark_said",
    "watermark_said_at_ms",
)


def _replica(replica: Replica) -> dict[str, object]:
    body: dict[str, object] = {name: getattr(replica, name) for name in _PLAIN}
    return body | {"life": replica.life, "pieces": replica.pieces, "epochs": replica.epochs}


def _as_replica(body: Mapping[str, Any]) -> Replica:
    """Its baseline is due: the observer begins."""
    return Replica(
        life=Life(*body["life"]),
        pieces=tuple(Piece(*each) for each in body["pieces"]),
        epochs=tuple((epoch, start) for epoch, start in body["epochs"]),
        baseline_at_ms=None,
        **{name: body[name] for name in _PLAIN},
    )
