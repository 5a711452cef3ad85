"""The spool: an EventSink whose `emit` returns when the event is on disk.

    emit, emit_many        take events; each gets the next number
    beat                   takes a heartbeat, which says how far the numbers are
    pending, acknowledge   for the publisher: what Kafka has not acknowledged, in order; what it has
    counters, is_full      for metrics, and for whoever must not act while evidence cannot be kept

Bounded in bytes. Acknowledged events are kept (`keep_ms`), so that what Kafka lost can be told again, and
give way first. When what waits fills the spool, a certificate (MUST_KEEP) is refused with SpoolFull, as
nothing may be done on it; any other event is lost, counted, said aloud, and visible for ever as
a hole in `emitter_seq` and `log_seq`. Where the disk refuses: SpoolUnwritable for a certificate, else a hole.

Owns the numbers. Refuses to wait: an emitter is never held up by Kafka. For any number of threads.

Invariant: a number is given once; every number up to the last given is an event on disk, an event that Kafka
acknowledged, or one of `counters().lost`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from types import TracebackType
from typing import NamedTuple

from audit_engine.errors import SpoolFull, SpoolUnwritable
from audit_engine.spool.file import NOTHING_SAID, EmitterName, open_spool
from audit_engine.wire import Emitter, Envelope, decode, encode
from rules.events import Event, Heartbeat, LogEvent, TrimCertified
from rules.identity import LogId
from tiering.segments.keys import log_key

MIB = 1024 * 1024
LIMIT_BYTES = 256 * MIB
EVENT_BYTES_MAX = 8 * MIB  # the topic takes no larger record (audit_engine.topic)
OUTCOME_BYTES = 64 * 1024  # free beside a certificate, so that what came of it has a place, too
ROW_BYTES = 64  # what SQLite adds to a key and a value, about
KEEP_MS = 7 * 24 * 3_600_000
FORGET_AT_ONCE = 100

MUST_KEEP = frozenset({TrimCertified.kind})

_log = logging.getLogger(__name__)


class Spooled(NamedTuple):
    """An event as it goes to Kafka; `position` is its place in the spool."""

    position: int
    key: bytes
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolCounters:
    """Since this process began, but for what waits and is kept now."""

    emitted: int
    lost: int
    acknowledged: int
    pending: int
    pending_bytes: int
    kept_bytes: int  # acknowledged, still here
    limit_bytes: int
    oldest_pending_ms: int  # how long the oldest waits; 0 if none does
    trouble: str | None  # the last that the disk or the bound refused, until an event is taken again


class _Numbered(NamedTuple):
    seq: int
    kind: str
    key: bytes
    value: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.key) + len(self.value) + ROW_BYTES


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Spool:
    """One emitter's. Opening it begins a new incarnation. Raises SpoolError."""

    def __init__(
        self,
        path: Path,
        emitter: EmitterName,
        *,
        limit_bytes: int = LIMIT_BYTES,
        keep_ms: int = KEEP_MS,
        now_ms: Callable[[], int] = _wall_ms,
    ) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._keep_ms = keep_ms
        self._now_ms = now_ms
        opened = open_spool(path, emitter, now_ms())
        self._connection = opened.connection
        self.set_aside = opened.set_aside
        self.emitter = Emitter(emitter.broker_id, emitter.component, opened.incarnation)
        self._cluster_id = emitter.cluster_id
        self._follows = opened.follows
        self._is_first = True  # nothing of this incarnation is on disk yet
        self._changed = Condition()
        self._last_seq = NOTHING_SAID
        self._log_seqs: defaultdict[LogId, int] = defaultdict(lambda: NOTHING_SAID)
        self._observed_at_ms = 0
        self._emitted = self._lost = self._acknowledged = 0
        self._trouble: str | None = None
        self._pending = self._pending_bytes = self._kept_bytes = 0
        self._measure()

    def emit(self, event: Event, *, replica: str | None = None, role: str | None = None) -> None:
        """Put the event on disk. Only a certificate is refused: SpoolFull, SpoolUnwritable."""
        self.emit_many([event], replica=replica, role=role)

    def emit_many(
        self, events: Sequence[Event], *, replica: str | None = None, role: str | None = None
    ) -> None:
        """The same for several, synced once. If one of them is refused, all are."""
        with self._changed:
            certificates = [event.kind for event in events if event.kind in MUST_KEEP]
            logs = {event.log for event in events if isinstance(event, LogEvent)}
            before = self._last_seq, {log: self._log_seqs[log] for log in logs}
            numbered = [self._number(event, replica, role) for event in events]
            room = self._limit_bytes - self._pending_bytes - (OUTCOME_BYTES if certificates else 0)
            if certificates and not _fits(numbered, room):
                self._last_seq = before[0]
                self._log_seqs.update(before[1])
                raise SpoolFull(
                    path=str(self._path),
                    kind=certificates[0],
                    pending_bytes=self._pending_bytes,
                    limit_bytes=self._limit_bytes,
                )
            kept = _first_that_fit(numbered, room)
            if len(kept) < len(numbered):
                self._lose(len(numbered) - len(kept), f"{self._pending_bytes} bytes wait for Kafka")
            try:
                self._write(kept)
            except sqlite3.Error as refused:
                self._measure()
                self._lose(len(kept), str(refused))
                if certificates:
                    raise SpoolUnwritable(
                        path=str(self._path), kind=certificates[0], why=str(refused)
                    ) from refused
            self._changed.notify_all()

    def beat(self, *, event_id: str, occurred_at_ms: int, metadata_offset: int | None = None) -> None:
        """Say how far this incarnation has counted, as its next event: silence and loss are then visible."""
        with self._changed:
            seqs = sorted(each for each in self._log_seqs.items() if each[1] != NOTHING_SAID)
            digest = hashlib.sha256()
            for log, last_seq in seqs:
                digest.update(f"{log.topic_id}:{log.partition}:{last_seq}\n".encode())
            self.emit(
                Heartbeat(
                    event_id=event_id,
                    occurred_at_ms=occurred_at_ms,
                    cluster_id=self._cluster_id,
                    last_seq=self._last_seq,
                    log_count=len(seqs),
                    log_seqs_digest=digest.hexdigest(),
                    lost_count=self._lost,
                    metadata_offset=metadata_offset,
                )
            )

    def pending(
        self, after: int = 0, *, limit: int = 1_000, limit_bytes: int = EVENT_BYTES_MAX
    ) -> list[Spooled]:
        """What Kafka has not acknowledged, of positions beyond `after`, in the order it was taken.

        At most `limit`, and no more once `limit_bytes` are reached.
        """
        found: list[Spooled] = []
        with self._changed:
            rows = self._connection.execute(
                "SELECT position, key, value FROM events WHERE acknowledged_at_ms IS NULL AND position > ? "
                "ORDER BY position LIMIT ?",
                (after, limit),
            )
            for row in rows:
                found.append(Spooled(*row))
                limit_bytes -= len(found[-1].value)
                if limit_bytes <= 0:
                    break
            rows.close()
        return found

    def kept(self, kinds: Collection[str]) -> list[LogEvent]:
        """The events of these kinds, about logs, that are still on this disk, of all runs, in their order."""
        with self._changed:
            rows = self._connection.execute("SELECT value FROM events ORDER BY position")
            marks = [f'"kind":"{kind}"'.encode() for kind in kinds]
            values = [value for (value,) in rows if any(mark in value for mark in marks)]
        found = (decode(value).event for value in values)
        return [event for event in found if isinstance(event, LogEvent) and event.kind in kinds]

    def wait(self, after: int, timeout_s: float) -> bool:
        """Whether an event beyond `after` waits to be published, in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._newest() > after, timeout_s)

    def wake(self) -> None:
        """Let whoever waits look again."""
        with self._changed:
            self._changed.notify_all()

    def acknowledge(self, positions: Sequence[int]) -> None:
        """Kafka has these. They stay for `keep_ms`, or until the room is needed. Raises sqlite3.Error."""
        with self._changed:
            now_ms = self._now_ms()
            try:
                with _Transaction(self._connection) as connection:
                    for position in positions:
                        self._acknowledge(connection, position, now_ms)
                    self._forget(lambda acknowledged_at_ms: acknowledged_at_ms < now_ms - self._keep_ms)
            except sqlite3.Error:
                self._measure()
                raise

    def _acknowledge(self, connection: sqlite3.Connection, position: int, now_ms: int) -> None:
        row = connection.execute(
            f"SELECT {_SIZE} FROM events WHERE position = ? AND acknowledged_at_ms IS NULL", (position,)
        ).fetchone()
        if row is None:
            return  # delivered twice
        connection.execute("UPDATE events SET acknowledged_at_ms = ? WHERE position = ?", (now_ms, position))
        self._acknowledged += 1
        self._pending -= 1
        self._pending_bytes -= row[0]
        self._kept_bytes += row[0]

    @property
    def is_full(self) -> bool:
        """Whether a small certificate would be refused: do not trim, do not delete."""
        with self._changed:
            return self._pending_bytes + OUTCOME_BYTES >= self._limit_bytes

    def counters(self) -> SpoolCounters:
        with self._changed:
            [oldest] = self._connection.execute(
                "SELECT MAX(taken_at_ms) FROM (SELECT taken_at_ms FROM events "
                "WHERE acknowledged_at_ms IS NULL ORDER BY position LIMIT 1)"
            ).fetchone()
            return SpoolCounters(
                emitted=self._emitted,
                lost=self._lost,
                acknowledged=self._acknowledged,
                pending=self._pending,
                pending_bytes=self._pending_bytes,
                kept_bytes=self._kept_bytes,
                limit_bytes=self._limit_bytes,
                oldest_pending_ms=0 if oldest is None else max(0, self._now_ms() - oldest),
                trouble=self._trouble,
            )

    def close(self) -> None:
        with self._changed:
            self._connection.close()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _number(self, event: Event, replica: str | None, role: str | None) -> _Numbered:
        self._last_seq += 1
        log_seq = None
        if isinstance(event, LogEvent):
            log_seq = self._log_seqs[event.log] = self._log_seqs[event.log] + 1
        self._observed_at_ms = max(self._observed_at_ms, self._now_ms())
        envelope = Envelope(
            event=event,
            emitter=self.emitter,
            emitter_seq=self._last_seq,
            log_seq=log_seq,
            observed_at_ms=self._observed_at_ms,
            is_first=self._is_first,
            follows=self._follows if self._is_first else None,
            replica=replica,
            role=role,
        )
        return _Numbered(self._last_seq, event.kind, _key(event, self.emitter), encode(envelope))

    def _write(self, kept: Sequence[_Numbered]) -> None:
        size = sum(each.size_bytes for each in kept)
        with _Transaction(self._connection) as connection:
            spare = self._limit_bytes - self._pending_bytes - size
            self._forget(lambda _: self._kept_bytes > spare)
            connection.executemany(
                "INSERT INTO events (key, value, taken_at_ms) VALUES (?, ?, ?)",
                [(each.key, each.value, self._now_ms()) for each in kept],
            )
            # Also when nothing is kept: the next run tells how far this one had counted.
            connection.execute("UPDATE emitter SET last_seq = ?", (self._last_seq,))
        self._pending += len(kept)
        self._pending_bytes += size
        self._emitted += len(kept)
        if kept:
            self._is_first = False
            self._trouble = None

    def _lose(self, count: int, why: str) -> None:
        if self._trouble is None:  # once, not with every event
            _log.error("the spool %s takes no events, they are lost: %s", self._path, why)
        self._trouble = why
        self._lost += count

    def _forget(self, may_go: Callable[[int], bool]) -> None:
        """Remove acknowledged events from the oldest on, while they may go. Within a transaction."""
        while rows := self._connection.execute(
            f"SELECT position, acknowledged_at_ms, {_SIZE} FROM events WHERE acknowledged_at_ms IS NOT NULL "
            "ORDER BY position LIMIT ?",
            (FORGET_AT_ONCE,),
        ).fetchall():
            for position, acknowledged_at_ms, size in rows:
                if not may_go(acknowledged_at_ms):
                    return
                self._connection.execute("DELETE FROM events WHERE position = ?", (position,))
                self._kept_bytes -= size

    def _newest(self) -> int:
        [newest] = self._connection.execute(
            "SELECT MAX(position) FROM events WHERE acknowledged_at_ms IS NULL"
        ).fetchone()
        return newest or 0

    def _measure(self) -> None:
        """Count again what is there: at the beginning, and after what was rolled back."""
        with contextlib.suppress(sqlite3.Error):  # then the old numbers are as good as any
            rows = self._connection.execute(
                f"SELECT acknowledged_at_ms IS NULL, COUNT(*), SUM({_SIZE}) FROM events GROUP BY 1"
            )
            found = {bool(is_pending): (count, size) for is_pending, count, size in rows}
            self._pending, self._pending_bytes = found.get(True, (0, 0))
            _, self._kept_bytes = found.get(False, (0, 0))


def _key(event: Event, emitter: Emitter) -> bytes:
    """The log's, so that what is said of one is in one partition; else the topic's, else the emitter's."""
    if isinstance(event, LogEvent):
        return log_key(event.log)
    topic_id: str | None = getattr(event, "topic_id", None)
    return (topic_id or f"emitter:{emitter.broker_id}:{emitter.component}").encode()


_SIZE = f"length(key) + length(value) + {ROW_BYTES}"


class _Transaction:
    """All or nothing of it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _fits(events: Sequence[_Numbered], room: int) -> bool:
    return len(_first_that_fit(events, room)) == len(events)


def _first_that_fit(events: Sequence[_Numbered], room: int) -> list[_Numbered]:
    """Those that have room, in order; one that has none leaves what comes behind it its chance."""
    kept = []
    for event in events:
        if event.size_bytes <= room and len(event.value) <= EVENT_BYTES_MAX:
            kept.append(event)
            room -= event.size_bytes
    return kept
