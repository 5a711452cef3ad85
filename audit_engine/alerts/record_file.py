"""The file of `record`: its tables, and how what is told so far stands in them.

Owns the layout. Refuses a file of another one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from audit_engine.alerts.threads import Kept, Standing, Thread

LAYOUT = 1
FILE_NAME = "alerts.sqlite"
BUSY_S = 30.0
WAITS = "waits"

_CREATE = (
    "CREATE TABLE runs (run INTEGER PRIMARY KEY, attempt TEXT NOT NULL)",
    "CREATE TABLE findings (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE incidents (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE threads (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE messages (position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " thread TEXT NOT NULL, peak TEXT NOT NULL, taken_at_ms INTEGER NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE endpoints (name TEXT PRIMARY KEY, planned INTEGER NOT NULL, disabled TEXT,"
    " not_before_ms INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE deliveries (endpoint TEXT NOT NULL, position INTEGER NOT NULL, thread TEXT NOT NULL,"
    " state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, not_before_ms INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY (endpoint, position)) WITHOUT ROWID",
    "CREATE INDEX waiting ON deliveries (endpoint, thread, position) WHERE state = 'waits'",
    "CREATE TABLE attempts (number INTEGER PRIMARY KEY AUTOINCREMENT, endpoint TEXT NOT NULL,"
    " id TEXT NOT NULL, began_at_ms INTEGER NOT NULL, outcome TEXT, why TEXT)",
)


class OtherLayout(Exception):
    """The file is of another version."""


def opened(path: Path) -> sqlite3.Connection:
    """Made where it is not there. Raises sqlite3.Error, OtherLayout."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    [layout] = connection.execute("PRAGMA user_version").fetchone()
    # Later than the layout, and known by its absence: the newest message when the first endpoint was planned.
    connection.execute(
        "CREATE TABLE IF NOT EXISTS first_plan (one INTEGER PRIMARY KEY, position INTEGER NOT NULL)"
    )
    if layout == 0:
        for statement in _CREATE:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.execute("COMMIT")
    if layout not in (0, LAYOUT):
        connection.close()
        raise OtherLayout(f"its layout is {layout}, this Seawall knows {LAYOUT}")
    return connection


def standing_of(connection: sqlite3.Connection) -> Standing:
    """What is told so far."""

    def rows(table: str) -> Iterator[tuple[str, Any]]:
        for name, body in connection.execute(f"SELECT name, body FROM {table}"):
            yield name, json.loads(body)

    return Standing(
        findings={name: _kept(body) for name, body in rows("findings")},
        incidents=dict(rows("incidents")),
        threads={name: Thread(**body) for name, body in rows("threads")},
        attempts=dict(connection.execute("SELECT run, attempt FROM runs")),
    )


def put_standing(connection: sqlite3.Connection, standing: Standing) -> None:
    for table, rows in _rows(standing):
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", rows)


def _rows(standing: Standing) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    yield "findings", [(name, json.dumps(asdict(each))) for name, each in standing.findings.items()]
    yield "incidents", [(name, json.dumps(each)) for name, each in standing.incidents.items()]
    yield "threads", [(name, json.dumps(asdict(each))) for name, each in standing.threads.items()]


def _kept(body: dict[str, Any]) -> Kept:
    held_back = body["held_back"]
    return Kept(
        **{
            **body,
            "threads": tuple(body["threads"]),
            "told_as": tuple((thread, severity) for thread, severity in body["told_as"]),
            "held_back": None if held_back is None else (held_back[0], held_back[1]),
        }
    )
