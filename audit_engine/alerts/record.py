"""What was taken in, what is to be told to whom, and each attempt: one SQLite file beside the job.

    runs, findings, incidents, threads    what is told so far (`threads.Standing`)
    messages                              in the order in which they were made
    endpoints                             how far its messages are planned, whether it is disabled or paused
    deliveries                            one an endpoint and message: waits, delivered, refused, given up
    attempts                              one a request, begun before it is sent

A message is due at an endpoint when nothing before it of the same thread waits there. An endpoint that is new
is told of each thread that is open once, by its newest message, and of everything from then on. The first
endpoints of a file that is new are told of what ended within ENDS_AGAIN_MS, too: the file may have been lost,
and with it the ends that nobody was told of. Slack, which knows no end, is not.

Owns the file. Refuses to mend one. Every step is one transaction, durable when it returns: a process that is
killed between sending and noting sends again, the same message with the same id.

Invariant: a message waits at each endpoint that it is for until an outcome that is final is on record.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from audit_engine.alerts.endpoints import Endpoint, Format
from audit_engine.alerts.errors import AlertRecordUnusable, DeliveryUnderWay
from audit_engine.alerts.message import Message, State, message_of
from audit_engine.alerts.news import RunNews
from audit_engine.alerts.record_file import (
    FILE_NAME,
    WAITS,
    OtherLayout,
    opened,
    put_standing,
    standing_of,
)
from audit_engine.alerts.schedule import PAUSE_MAX_MS, Outcome, Verdict
from audit_engine.alerts.threads import Standing, take
from rules.machine.findings import SEVERITIES

LOCK_NAME = "alerts.lock"
# The first of each thread that waits at an endpoint: nothing else of it may be sent before.
_HEADS = (
    f"SELECT MIN(position) AS position FROM deliveries WHERE endpoint = ? AND state = '{WAITS}'"
    " GROUP BY thread"
)
ENDS_AGAIN_MS = 7 * 24 * 3_600_000  # longer than any message is tried
KEEP_MS = 90 * 24 * 3_600_000  # messages that nobody waits for, and their attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """`disabled` says why, if it is."""

    disabled: str | None
    not_before_ms: int
    failures: int  # pushes that failed, one after another


class Due(NamedTuple):
    """A message whose turn it is; `attempts` that were begun before."""

    position: int
    attempts: int
    message: Message


class Record:
    """For one thread. Raises AlertRecordUnusable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = opened(folder / FILE_NAME)
        except (OSError, sqlite3.Error, OtherLayout) as refused:
            raise AlertRecordUnusable(path=str(folder / FILE_NAME), why=str(refused)) from refused

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def delivering(self) -> Iterator[None]:
        """One process at a time sends; the kernel lets go of it however that ends. DeliveryUnderWay."""
        descriptor = os.open(self._folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DeliveryUnderWay(path=str(self._folder)) from None
            yield
        finally:
            os.close(descriptor)

    def taken(self) -> dict[int, str]:
        """The runs that were taken in, and which attempt at each."""
        return dict(self._connection.execute("SELECT run, attempt FROM runs"))

    def take(self, news: RunNews, now_ms: int) -> list[Message]:
        """The run, all of it or nothing."""
        with self._transaction() as connection:
            standing = standing_of(connection)
            messages = [_named_anew(connection, each) for each in take(standing, news)]
            connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", (news.run, news.attempt))
            put_standing(connection, standing)
            connection.executemany(
                "INSERT INTO messages (id, thread, peak, taken_at_ms, body) VALUES (?, ?, ?, ?, ?)",
                [(each.id, each.thread, each.peak, now_ms, each.as_json()) for each in messages],
            )
            self._forget(connection, now_ms)
        return messages

    def standing(self) -> Standing:
        with self._transaction() as connection:
            return standing_of(connection)

    def messages(self) -> list[Message]:
        """All that are kept, in the order in which they were made."""
        return [each for _, each in _messages(self._connection, "1 ORDER BY position", ())]

    def plan(self, endpoint: Endpoint) -> None:
        """What was taken in since waits for this endpoint, too."""
        grave = SEVERITIES[SEVERITIES.index(endpoint.severity) :]
        marks = ", ".join("?" * len(grave))
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT planned FROM endpoints WHERE name = ?", (endpoint.name,)
            ).fetchone()
            [last] = connection.execute("SELECT COALESCE(MAX(position), 0) FROM messages").fetchone()
            if row is None:
                connection.execute("INSERT OR IGNORE INTO first_plan VALUES (1, ?)", (last,))
                [first] = connection.execute("SELECT position FROM first_plan").fetchone()
                connection.execute(
                    "INSERT INTO endpoints (name, planned) VALUES (?, ?)", (endpoint.name, last)
                )
                chosen = "position IN (SELECT MAX(position) FROM messages GROUP BY thread)"
                newest = _messages(connection, chosen, ())
                ends_from_ms = max((each.as_of_ms for _, each in newest), default=0) - ENDS_AGAIN_MS
                hears_ends = last == first and endpoint.format is not Format.SLACK
                found = [
                    (position, each)
                    for position, each in newest
                    if each.peak in grave
                    and (each.state is not State.ENDED or (hears_ends and each.as_of_ms >= ends_from_ms))
                ]
                rows = [(endpoint.name, position, message.thread) for position, message in found]
            else:
                chosen = f"SELECT position, thread FROM messages WHERE position > ? AND peak IN ({marks})"
                told = connection.execute(chosen, (row[0], *grave))
                rows = [(endpoint.name, position, thread) for position, thread in told]
                connection.execute("UPDATE endpoints SET planned = ? WHERE name = ?", (last, endpoint.name))
            connection.executemany(
                f"INSERT OR IGNORE INTO deliveries (endpoint, position, thread, state)"
                f" VALUES (?, ?, ?, '{WAITS}')",
                rows,
            )

    def state(self, name: str, now_ms: int) -> EndpointState:
        """As it stands; unknown ones are new."""
        row = self._connection.execute(
            "SELECT disabled, not_before_ms, failures FROM endpoints WHERE name = ?", (name,)
        ).fetchone()
        disabled, not_before_ms, failures = row or (None, 0, 0)
        return EndpointState(disabled=disabled, not_before_ms=_sane(not_before_ms, now_ms), failures=failures)

    def due(self, name: str, now_ms: int, limit: int) -> list[Due]:
        """The first of each thread that waits, if its time has come."""
        rows = self._connection.execute(
            "SELECT d.position, d.attempts, m.body FROM deliveries d JOIN messages m USING (position)"
            f" JOIN ({_HEADS}) head USING (position)"
            " WHERE d.endpoint = ? AND (d.not_before_ms <= ? OR d.not_before_ms > ?)"
            " ORDER BY d.position LIMIT ?",
            (name, name, now_ms, now_ms + PAUSE_MAX_MS, limit),
        ).fetchall()
        return [Due(position, attempts, message_of(body)) for position, attempts, body in rows]

    def next_ms(self, name: str, now_ms: int) -> int | None:
        """When the next that waits here is due; None where nothing does, or the endpoint is disabled."""
        state = self.state(name, now_ms)
        if state.disabled is not None:
            return None
        [at_ms] = self._connection.execute(
            f"SELECT MIN(not_before_ms) FROM deliveries JOIN ({_HEADS}) head USING (position)"
            " WHERE endpoint = ?",
            (name, name),
        ).fetchone()
        return None if at_ms is None else max(_sane(at_ms, now_ms), state.not_before_ms)

    def waiting(self, name: str) -> list[tuple[int, str]]:
        """Everything that waits here: position and thread."""
        return self._connection.execute(
            f"SELECT position, thread FROM deliveries WHERE endpoint = ? AND state = '{WAITS}'", (name,)
        ).fetchall()

    def threads_since(self, at_ms: int) -> set[str]:
        """Of which messages were taken in since."""
        rows = self._connection.execute(
            "SELECT DISTINCT thread FROM messages WHERE taken_at_ms >= ?", (at_ms,)
        )
        return {thread for (thread,) in rows}

    def begin(self, name: str, positions: Sequence[int], message_id: str, now_ms: int) -> int:
        """An attempt, before it is sent; its number."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE deliveries SET attempts = attempts + 1 WHERE endpoint = ? AND position = ?",
                [(name, each) for each in positions],
            )
            made = connection.execute(
                "INSERT INTO attempts (endpoint, id, began_at_ms) VALUES (?, ?, ?)",
                (name, message_id, now_ms),
            )
            return int(made.lastrowid or 0)

    def end(self, name: str, positions: Sequence[int], number: int, verdict: Verdict) -> None:
        """What came of it."""
        final = {Outcome.DELIVERED, Outcome.REFUSED, Outcome.GIVEN_UP}
        state = verdict.outcome.value if verdict.outcome in final else WAITS
        with self._transaction() as connection:
            connection.execute(
                "UPDATE attempts SET outcome = ?, why = ? WHERE number = ?",
                (verdict.outcome.value, verdict.why, number),
            )
            connection.executemany(
                "UPDATE deliveries SET state = ?, not_before_ms = ? WHERE endpoint = ? AND position = ?",
                [(state, verdict.at_ms or 0, name, each) for each in positions],
            )
            if verdict.outcome is Outcome.GONE:
                connection.execute("UPDATE endpoints SET disabled = ? WHERE name = ?", (verdict.why, name))

    def pause(self, name: str, until_ms: int, failures: int) -> None:
        """Nothing is sent there before."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE endpoints SET not_before_ms = ?, failures = ? WHERE name = ?",
                (until_ms, failures, name),
            )

    def enable(self, name: str) -> None:
        """It answered again: what waits is due at once."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE endpoints SET disabled = NULL, not_before_ms = 0, failures = 0 WHERE name = ?",
                (name,),
            )
            connection.execute("UPDATE deliveries SET not_before_ms = 0 WHERE endpoint = ?", (name,))

    def again(self, name: str, message_ids: Iterable[str]) -> int:
        """Each of these, and what came after it in its thread, waits anew. How many."""
        count = 0
        with self._transaction() as connection:
            for message_id in message_ids:
                row = connection.execute(
                    "SELECT position, thread FROM messages WHERE id = ?", (message_id,)
                ).fetchone()
                if row is None:
                    continue
                connection.execute(
                    f"INSERT OR IGNORE INTO deliveries (endpoint, position, thread, state)"
                    f" VALUES (?, ?, ?, '{WAITS}')",
                    (name, *row),
                )
                changed = connection.execute(
                    f"UPDATE deliveries SET state = '{WAITS}', attempts = 0, not_before_ms = 0"
                    " WHERE endpoint = ? AND thread = ? AND position >= ?",
                    (name, row[1], row[0]),
                )
                count += changed.rowcount
        return count

    def failed(self, name: str) -> list[str]:
        """Messages that this endpoint refused, or that were given up."""
        rows = self._connection.execute(
            "SELECT id FROM deliveries JOIN messages USING (position)"
            " WHERE endpoint = ? AND state IN (?, ?) ORDER BY position",
            (name, Outcome.REFUSED.value, Outcome.GIVEN_UP.value),
        )
        return [message_id for (message_id,) in rows]

    def knows(self, message_id: str) -> bool:
        row = self._connection.execute("SELECT 1 FROM messages WHERE id = ?", (message_id,)).fetchone()
        return row is not None

    def deliveries(self, *, is_open: bool, limit: int) -> list[dict[str, Any]]:
        """The newest first; `is_open`: only what waits, or was not taken."""
        chosen = f"WHERE d.state != '{Outcome.DELIVERED.value}'" if is_open else ""
        rows = self._connection.execute(
            "SELECT d.endpoint, m.id, d.state, d.attempts, d.not_before_ms, m.taken_at_ms, m.body,"
            " (SELECT why FROM attempts a WHERE a.endpoint = d.endpoint AND a.id = m.id"
            "  ORDER BY number DESC LIMIT 1)"
            f" FROM deliveries d JOIN messages m USING (position) {chosen}"
            " ORDER BY d.position DESC, d.endpoint LIMIT ?",
            (limit,),
        )
        names = ("endpoint", "id", "state", "attempts", "not_before_ms", "taken_at_ms", "message", "why")
        told = (dict(zip(names, row, strict=True)) for row in rows)
        return [{**each, "message": message_of(each["message"])} for each in told]

    def attempts(self, name: str | None = None) -> list[dict[str, Any]]:
        """Each request, in order. `outcome` is None for one of which nobody lived to say."""
        rows = self._connection.execute(
            "SELECT number, endpoint, id, began_at_ms, outcome, why FROM attempts"
            " WHERE ? IS NULL OR endpoint = ? ORDER BY number",
            (name, name),
        )
        names = ("number", "endpoint", "id", "began_at_ms", "outcome", "why")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _forget(self, connection: sqlite3.Connection, now_ms: int) -> None:
        """What nobody waits for, of threads that went on since or ended."""
        old = now_ms - KEEP_MS
        connection.execute(
            "DELETE FROM messages WHERE taken_at_ms < ? AND NOT EXISTS (SELECT 1 FROM deliveries d"
            f" WHERE d.position = messages.position AND d.state = '{WAITS}')"
            " AND position NOT IN (SELECT MAX(position) FROM messages GROUP BY thread)",
            (old,),
        )
        connection.execute("DELETE FROM deliveries WHERE position NOT IN (SELECT position FROM messages)")
        connection.execute("DELETE FROM attempts WHERE began_at_ms < ?", (old,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as refused:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise AlertRecordUnusable(path=str(self._folder / FILE_NAME), why=str(refused)) from refused
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _messages(
    connection: sqlite3.Connection, chosen: str, values: tuple[Any, ...]
) -> list[tuple[int, Message]]:
    rows = connection.execute(f"SELECT position, body FROM messages WHERE {chosen}", values)
    return [(position, message_of(body)) for position, body in rows]


def _sane(at_ms: int, now_ms: int) -> int:
    """A time that a clock wrote which was far ahead, and is not any more, has come."""
    return at_ms if at_ms <= now_ms + PAUSE_MAX_MS else now_ms


def _named_anew(connection: sqlite3.Connection, message: Message) -> Message:
    """A run judged again, and again, may say what it said first and unsaid: that is another message."""
    count = 0
    name = message.id
    while connection.execute("SELECT 1 FROM messages WHERE id = ?", (name,)).fetchone() is not None:
        count += 1
        name = f"{message.id}_{count}"
    return replace(message, id=name)
