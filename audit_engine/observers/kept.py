"""What an observer keeps between two runs of it: values by key, in a SQLite file in the agent's folder.

    owner      one row: whose it is
    kept       a key, and its value as JSON
    pending    events that were found and kept, and are not known to be out

Each row has a CRC-32C over its text. Owns the file, nothing of what stands in it. Refuses to mend one: what
cannot be read, or is another's, is moved aside, whole, and the caller is told why.

Invariant: `load` gives back what the `keep`s before it were given, whole, or nothing at all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from audit_engine.errors import EventError, MemoryUnusable
from audit_engine.wire import Emitter, Envelope, decode, encode
from rules.events import Event
from tiering.log.crc import crc32c

LAYOUT = 1
_NOBODY = Emitter(0, "kept", 0)  # the spool says who; only the event itself is kept here

_CREATE = (
    "CREATE TABLE owner (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE kept (key TEXT PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE pending (position INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL)",
)


class Loaded(NamedTuple):
    """`damage`: there was a memory, and it cannot be relied on; the values are none then."""

    values: Mapping[str, Any]
    pending: tuple[Event, ...]
    damage: str | None


class _Damaged(Exception):
    """The file is there, and what it holds cannot be relied on."""


class Kept:
    """One observer's memory. Raises MemoryUnusable when its folder does not take it."""

    def __init__(self, path: Path, *, owner: str) -> None:
        self._path = path
        self._owner = owner
        self._connection: sqlite3.Connection | None = None
        self._has_pending = False

    def load(self, now_ms: int) -> Loaded:
        """Once, before anything is kept. `now_ms` names what is moved aside."""
        try:
            loaded = self._load()
        except (_Damaged, sqlite3.DatabaseError) as damaged:
            self.set_aside(now_ms)
            loaded = Loaded({}, (), str(damaged))
        self._has_pending = bool(loaded.pending)
        return loaded

    def set_aside(self, now_ms: int) -> None:
        """What stands in it is not to be relied on: it is moved away, whole, and another one begins."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            side = self._path.with_name(self._path.name + suffix)
            if side.exists():
                side.rename(side.with_name(f"{self._path.name}.unreadable-{now_ms}{suffix}"))
        self._load()
        self._has_pending = False

    def keep(
        self, changed: Mapping[str, object], *, gone: Iterable[str] = (), events: Sequence[Event] = ()
    ) -> None:
        """Durable when it returns, all of it or nothing. `events` take the place of those that waited."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM kept WHERE key = ?", [(key,) for key in gone])
            connection.executemany(
                "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)",
                [(key, *_row(value, key)) for key, value in changed.items()],
            )
            if self._has_pending or events:
                connection.execute("DELETE FROM pending")
            connection.executemany(
                "INSERT INTO pending (body, crc) VALUES (?, ?)", [_row(_event(each)) for each in events]
            )
            connection.execute("COMMIT")
        self._has_pending = bool(events)

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

    def _load(self) -> Loaded:
        try:
            connection = self._opened()
        except sqlite3.OperationalError as refused:
            raise MemoryUnusable(path=str(self._path), why=str(refused)) from refused
        [layout] = connection.execute("PRAGMA user_version").fetchone()
        if layout == 0:
            self._create(connection)
        elif layout != LAYOUT:
            raise _Damaged(f"its layout is {layout}, this one knows {LAYOUT}")
        [sound] = connection.execute("PRAGMA quick_check(1)").fetchone()
        if sound != "ok":
            raise _Damaged(sound)
        owners = [_read(*row) for row in connection.execute("SELECT body, crc FROM owner")]
        if owners != [self._owner]:
            raise _Damaged(f"it is of {owners}, not of {self._owner}")
        values = {
            key: _read(body, crc, key)
            for key, body, crc in connection.execute("SELECT key, body, crc FROM kept")
        }
        rows = connection.execute("SELECT body, crc FROM pending ORDER BY position")
        try:
            pending = tuple(_as_event(_read(*row)) for row in rows)
        except EventError as odd:
            raise _Damaged(str(odd)) from odd
        return Loaded(values, pending, None)

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for statement in _CREATE:
            connection.execute(statement)
        connection.execute("INSERT INTO owner VALUES (1, ?, ?)", _row(self._owner))
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")


def _row(body: object, key: str = "") -> tuple[str, int]:
    text = json.dumps(body, separators=(",", ":"))
    return text, crc32c((key + text).encode())


def _read(text: str, crc: int, key: str = "") -> Any:
    try:
        if crc32c((key + text).encode()) == crc:
            return json.loads(text)
    except (TypeError, ValueError, AttributeError) as odd:
        raise _Damaged(repr(odd)) from odd
    raise _Damaged("a row's checksum does not fit")


def _event(event: Event) -> str:
    envelope = Envelope(
        event=event, emitter=_NOBODY, emitter_seq=0, log_seq=None, observed_at_ms=event.occurred_at_ms
    )
    return encode(envelope).decode()


def _as_event(text: Any) -> Event:
    event = decode(str(text).encode(), "an event that waits").event
    if not isinstance(event, Event):
        raise _Damaged(f"{event.kind} is not known here")
    return event
