"""What the observer remembers, on disk: a SQLite file in the agent's folder.

    look       one row: the time of the last look that was kept, the broker, the dirs out of sight
    replicas   one row a life: what is remembered of it
    pending    events of the last look that was kept, until the sink has them

Each row has a CRC-32C over its text. A look is kept in one transaction with its events, before the first of
them is emitted; after a kill they are emitted again, as they were, with their ids. So nothing that a look
found is lost with the process, and none of it is another event the second time.

Owns the file. Refuses to mend one: what cannot be read is moved aside, whole, and the caller is told why.

Invariant: what `load` gives back is what one `keep` was given, or nothing at all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from audit_engine.errors import EventError, MemoryUnusable
from audit_engine.observers.disk.seen import Life, Piece, Replica, Seen, Unread
from audit_engine.wire import Emitter, Envelope, decode, encode
from rules.events import Event
from tiering.cluster.interface import BrokerIdentity
from tiering.log.crc import crc32c

FILE_NAME = "disk-observer.sqlite"
LAYOUT = 1
LOOK_KEPT_EVERY_MS = 60_000  # a quiet look costs no write; after a restart its intervals are that much wider
_NOBODY = Emitter(0, "disk", 0)  # the spool says who; only the event itself is kept here

_Dirs: TypeAlias = tuple[frozenset[str], frozenset[Life], Mapping[str, Unread]]

_CREATE = (
    "CREATE TABLE look (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE replicas (life TEXT PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE pending (position INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL)",
)


class Loaded(NamedTuple):
    """`seen` is None at the first start, and where it could not be read: `damage` then says why."""

    seen: Seen | None
    pending: tuple[Event, ...]
    damage: str | None


class _Damaged(Exception):
    """The file is there, and what it holds cannot be relied on."""


class Memory:
    """One observer's. Raises MemoryUnusable when its folder does not take it."""

    def __init__(self, folder: Path, *, kept_every_ms: int = LOOK_KEPT_EVERY_MS) -> None:
        self._path = folder / FILE_NAME
        self._kept_every_ms = kept_every_ms
        self._connection: sqlite3.Connection | None = None
        self._kept: Mapping[Life, Replica] = {}
        self._kept_at_ms: int | None = None
        self._kept_dirs: _Dirs = _dirs(None)
        self._has_pending = False

    def load(self, broker: BrokerIdentity, now_ms: int) -> Loaded:
        try:
            seen, pending = self._load(broker)
            damage = None
        except (_Damaged, sqlite3.DatabaseError) as damaged:
            self._set_aside(now_ms)
            seen, pending, damage = None, (), str(damaged)
            self._load(broker)
        self._kept = {} if seen is None else seen.replicas
        self._kept_at_ms = None if seen is None else seen.at_ms
        self._kept_dirs = _dirs(seen)
        self._has_pending = bool(pending)
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
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM replicas WHERE life = ?", [(_key(life),) for life in gone])
            connection.executemany(
                "INSERT OR REPLACE INTO replicas VALUES (?, ?, ?)",
                [(_key(each.life), *_row(_replica(each))) for each in changed],
            )
            connection.execute("INSERT OR REPLACE INTO look VALUES (1, ?, ?)", _row(_look(seen)))
            connection.execute("DELETE FROM pending")
            connection.executemany(
                "INSERT INTO pending (body, crc) VALUES (?, ?)", [_row(_event(each)) for each in events]
            )
            connection.execute("COMMIT")
        # What grew and was not written now is different from what is kept, and is written when it is due.
        written = {each.life: each for each in changed}
        self._kept = {
            life: written.get(life, self._kept.get(life, each)) for life, each in seen.replicas.items()
        }
        self._kept_at_ms, self._has_pending = seen.at_ms if is_due else self._kept_at_ms, bool(events)
        self._kept_dirs = dirs

    def emitted(self) -> None:
        """What was pending is out. Not known after a crash just now: it is emitted once more, the same."""
        if self._has_pending:
            with self._opened() as connection:
                connection.execute("DELETE FROM pending")
            self._has_pending = False

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        return self._connection

    def _load(self, broker: BrokerIdentity) -> tuple[Seen | None, tuple[Event, ...]]:
        try:
            connection = self._opened()
        except sqlite3.OperationalError as refused:
            raise MemoryUnusable(path=str(self._path), why=str(refused)) from refused
        [layout] = connection.execute("PRAGMA user_version").fetchone()
        if layout == 0:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _CREATE:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")
        elif layout != LAYOUT:
            raise _Damaged(f"its layout is {layout}, this one knows {LAYOUT}")
        looks = _bodies(connection.execute("SELECT body, crc FROM look"))
        if not looks:
            return None, ()
        [look] = looks
        try:
            found = BrokerIdentity(cluster_id=look["cluster_id"], broker_id=look["broker_id"])
            if found != broker:
                raise _Damaged(f"it is of broker {found.broker_id} of cluster {found.cluster_id}")
            replicas = [
                _as_replica(each) for each in _bodies(connection.execute("SELECT body, crc FROM replicas"))
            ]
            if len(replicas) != look["replica_count"]:
                raise _Damaged(f"it holds {len(replicas)} replicas of {look['replica_count']}")
            pending = tuple(
                _as_event(each)
                for each in _bodies(connection.execute("SELECT body, crc FROM pending ORDER BY position"))
            )
        except (KeyError, TypeError, ValueError, EventError) as odd:
            raise _Damaged(repr(odd)) from odd
        seen = Seen(
            broker=found,
            at_ms=look["at_ms"],
            replicas=MappingProxyType({each.life: each for each in replicas}),
            offline=frozenset(look["offline"]),
            moving=frozenset(Life(*each) for each in look["moving"]),
            unread=MappingProxyType({path: Unread(*each) for path, each in look.get("unread", {}).items()}),
        )
        return seen, pending

    def _set_aside(self, now_ms: int) -> None:
        self.close()
        for suffix in ("", "-wal", "-shm"):
            side = self._path.with_name(self._path.name + suffix)
            if side.exists():
                side.rename(side.with_name(f"{self._path.name}.unreadable-{now_ms}{suffix}"))


def _structure(replica: Replica | None) -> object:
    """What must be known after a restart. How far the active segment has grown meanwhile is not of it."""
    if replica is None:
        return None
    pieces = tuple(p if p.end_offset is not None else p._replace(size_bytes=0) for p in replica.pieces)
    return replace(replica, pieces=pieces, high_watermark=replica.watermark_said)


def _key(life: Life) -> str:
    return json.dumps(life)


def _row(body: object) -> tuple[str, int]:
    text = json.dumps(body, separators=(",", ":"))
    return text, crc32c(text.encode())


def _bodies(rows: Iterable[tuple[str, int]]) -> list[Any]:
    found = []
    for text, crc in rows:
        if crc32c(text.encode()) != crc:
            raise _Damaged("a row's checksum does not fit")
        found.append(json.loads(text))
    return found


def _dirs(seen: Seen | None) -> _Dirs:
    return (frozenset(), frozenset(), {}) if seen is None else (seen.offline, seen.moving, seen.unread)


def _look(seen: Seen) -> dict[str, object]:
    return {
        "cluster_id": seen.broker.cluster_id,
        "broker_id": seen.broker.broker_id,
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


def _event(event: Event) -> str:
    envelope = Envelope(
        event=event, emitter=_NOBODY, emitter_seq=0, log_seq=None, observed_at_ms=event.occurred_at_ms
    )
    return encode(envelope).decode()


def _as_event(text: str) -> Event:
    event = decode(text.encode(), "an event that waits").event
    if not isinstance(event, Event):
        raise ValueError(f"{event.kind} is not known here")
    return event
