"""The spool's SQLite file: opened by one process at a time, checked, and set aside if it cannot be read.

    emitter    one row: whose it is, the incarnation that writes now, its last number, and the same of the run
               before that said anything
    events     position (the order in which they were taken), key and value as they go to Kafka, when they
               were taken, and when Kafka acknowledged them (null: not yet)

WAL with synchronous=FULL: a commit that returned has been synced. locking_mode=EXCLUSIVE: a second process is
refused, and no shared memory is needed.

Owns the file. Refuses to mend one: a damaged file is moved beside itself, whole, and said aloud.

Invariant: each opening raises the incarnation before anything is emitted under it. It is at least the wall
clock in milliseconds, so that it rises also where the file that knew the last one is gone.
"""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from audit_engine.errors import SpoolInUse, SpoolOfAnother, SpoolTooNew, SpoolUnusable
from audit_engine.wire import Follows

LAYOUT = 1
SIDE_FILES = ("", "-wal", "-shm")
NOTHING_SAID = -1

_log = logging.getLogger(__name__)

_CREATE = """
CREATE TABLE emitter (
    cluster_id TEXT NOT NULL, broker_id INTEGER NOT NULL, component TEXT NOT NULL,
    incarnation INTEGER NOT NULL, last_seq INTEGER NOT NULL,
    before_incarnation INTEGER, before_last_seq INTEGER
);
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL, value BLOB NOT NULL,
    taken_at_ms INTEGER NOT NULL, acknowledged_at_ms INTEGER
);
CREATE INDEX pending ON events (position) WHERE acknowledged_at_ms IS NULL;
CREATE INDEX kept ON events (position) WHERE acknowledged_at_ms IS NOT NULL;
"""


class EmitterName(NamedTuple):
    """Who emits, in all its runs."""

    cluster_id: str
    broker_id: int
    component: str

    def __str__(self) -> str:
        return f"{self.component} of broker {self.broker_id} in cluster {self.cluster_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A file that could not be read as a spool, and where it lies now. What it held was not published."""

    path: Path
    why: str


class Opened(NamedTuple):
    connection: sqlite3.Connection
    incarnation: int
    follows: Follows | None
    set_aside: SetAside | None


def open_spool(path: Path, name: EmitterName, now_ms: int) -> Opened:
    """The spool of this emitter, for a new incarnation.

    Raises SpoolInUse, SpoolOfAnother, SpoolTooNew, SpoolUnusable.
    """
    set_aside = None
    try:
        connection = _connect(path)
    except _Damaged as damaged:
        set_aside = _set_aside(path, str(damaged), now_ms)
        connection = _connect(path)
    try:
        incarnation, follows = _begin(connection, path, name, now_ms)
    except sqlite3.Error as refused:
        connection.close()
        raise SpoolUnusable(path=str(path), why=str(refused)) from refused
    except BaseException:
        connection.close()
        raise
    return Opened(connection, incarnation, follows, set_aside)


class _Damaged(Exception):
    """The file is there and is not a spool."""


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    except sqlite3.Error as refused:
        raise SpoolUnusable(path=str(path), why=str(refused)) from refused
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN EXCLUSIVE")
        [layout] = connection.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if layout == 0 and not tables:
            for statement in _CREATE.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")
        problems = [found for (found,) in connection.execute("PRAGMA quick_check(1)") if found != "ok"]
    except sqlite3.OperationalError as refused:
        if "locked" in str(refused):
            raise SpoolInUse(path=str(path)) from refused
        raise SpoolUnusable(path=str(path), why=str(refused)) from refused
    except sqlite3.DatabaseError as damaged:  # not a database, or one whose pages contradict each other
        raise _Damaged(str(damaged)) from damaged
    if layout > LAYOUT:
        raise SpoolTooNew(path=str(path), found=layout, known=LAYOUT)
    if problems or (layout == 0 and tables):
        raise _Damaged(problems[0] if problems else "it is another program's database")


def _begin(
    connection: sqlite3.Connection, path: Path, name: EmitterName, now_ms: int
) -> tuple[int, Follows | None]:
    connection.execute("BEGIN IMMEDIATE")
    row = connection.execute("SELECT * FROM emitter").fetchone()
    if row is None:
        incarnation, follows = now_ms, None
        connection.execute(
            "INSERT INTO emitter VALUES (?, ?, ?, ?, ?, NULL, NULL)", (*name, incarnation, NOTHING_SAID)
        )
    else:
        found, (last, last_seq, before, before_seq) = EmitterName(*row[:3]), row[3:]
        if found != name:
            raise SpoolOfAnother(path=str(path), found=str(found), wanted=str(name))
        if last_seq != NOTHING_SAID:
            before, before_seq = last, last_seq
        incarnation = max(last + 1, now_ms)
        follows = None if before is None else Follows(before, before_seq)
        connection.execute(
            "UPDATE emitter SET incarnation = ?, last_seq = ?, before_incarnation = ?, before_last_seq = ?",
            (incarnation, NOTHING_SAID, before, before_seq),
        )
    connection.execute("COMMIT")
    return incarnation, follows


def _set_aside(path: Path, why: str, now_ms: int) -> SetAside:
    aside = path.with_name(f"{path.name}.unreadable-{now_ms}")
    try:
        for suffix in SIDE_FILES:
            side = path.with_name(path.name + suffix)
            if side.exists():
                side.rename(aside.with_name(aside.name + suffix))
    except OSError as refused:
        raise SpoolUnusable(path=str(path), why=f"it is damaged ({why}), and stays: {refused}") from refused
    _log.error(
        "the spool %s cannot be read (%s): set aside as %s, a new one begun. Events in it that were not yet "
        "published are missing; the audit sees that this emitter does not remember its last run.",
        path,
        why,
        aside,
    )
    return SetAside(path=aside, why=why)
