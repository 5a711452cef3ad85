"""What was looked at when, on disk: a SQLite file in the scrub's own folder.

    looked    name (a segment's stem, or a log's prefix), depth, at_ms: the last look that came to its end

It orders the next run, and nothing else: no outcome is in it, so that nothing is ever called verified on its
word. SQLite, and not a file written anew: a run notes a few names at a time, of perhaps a million, and each
note is there after a kill -9. After a power cut the last may be gone, and are looked at again.

Owns the file. Refuses to mend one: what cannot be read is moved aside, and everything counts as never looked
at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tiering.errors import StatedError

FILE_NAME = "scrub.sqlite"
LAYOUT = 1
WAIT_S = 10.0
SIDE_FILES = ("", "-wal", "-shm")

_CREATE = (
    "CREATE TABLE looked (name TEXT NOT NULL, depth TEXT NOT NULL, at_ms INTEGER NOT NULL, "
    "PRIMARY KEY (name, depth)) WITHOUT ROWID"
)


@dataclass(kw_only=True, eq=False)
class ScrubMemoryUnusable(StatedError):
    """the memory of what was scrubbed, {path}, cannot be used: {why}

    Its folder must exist and be writable, and one scrub at a time may use it.
    """

    exit_code: ClassVar[int] = 37

    path: str
    why: str


class Memory:
    """One folder's. `set_aside` is where a file lies that could not be read."""

    def __init__(self, folder: Path, *, now_ms: int) -> None:
        self._path = folder / FILE_NAME
        self.set_aside: Path | None = None
        try:
            try:
                self._connection = self._opened()
            except sqlite3.OperationalError:
                raise  # locked, or a disk that refuses: not the file's fault
            except sqlite3.DatabaseError:
                self._move_aside(now_ms)
                self._connection = self._opened()
        except (sqlite3.Error, OSError) as refused:
            raise ScrubMemoryUnusable(path=str(self._path), why=str(refused)) from refused

    def looked_at(self, depth: str) -> dict[str, int]:
        """When each name was last looked at so."""
        rows = self._connection.execute("SELECT name, at_ms FROM looked WHERE depth = ?", (depth,))
        return dict(rows.fetchall())

    def note(self, names: Iterable[str], depth: str, at_ms: int) -> None:
        """These were looked at. Survives the process from here on."""
        rows = [(name, depth, at_ms) for name in names]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO looked VALUES (?, ?, ?)", rows)

    def forget(self, names: Iterable[str], depth: str) -> None:
        """These are no more."""
        rows = [(name, depth) for name in names]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM looked WHERE name = ? AND depth = ?", rows)

    def close(self) -> None:
        self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=WAIT_S
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            [layout] = connection.execute("PRAGMA user_version").fetchone()
            tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            if layout == 0 and not tables:
                connection.execute(_CREATE)
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            elif layout != LAYOUT:
                raise sqlite3.DatabaseError(f"its layout is {layout}, and this Seawall knows {LAYOUT}")
            connection.execute("COMMIT")
            [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError(found)
        except BaseException:
            connection.close()
            raise
        return connection

    def _move_aside(self, now_ms: int) -> None:
        aside = self._path.with_name(f"{FILE_NAME}.unreadable-{now_ms}")
        for suffix in SIDE_FILES:
            side = self._path.with_name(self._path.name + suffix)
            if side.exists():
                side.rename(aside.with_name(aside.name + suffix))
        self.set_aside = aside
