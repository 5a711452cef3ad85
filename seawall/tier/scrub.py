"""What a scrub needs of the cluster and of this host: the table, a folder for its memory, a spool for events.

    <state dir>/scrub.sqlite     what was looked at when (tiering.scrub.memory)
    <state dir>/events.sqlite    its events, until the topic has them; also the lock of the folder
    <state dir>/emitter          the name it emits under, made at the first run

A scrub runs beside no broker, perhaps several at once on several hosts: each folder is an emitter of its own,
`scrub-<8 hexadecimal digits>` of broker -1, so that no two number its events as one.

Owns this joining. Refuses to write to the topic of metadata.
"""

from __future__ import annotations

import os
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from audit_engine.spool import EmitterName, Spool
from audit_engine.topic.kafka import Publisher, ensure_audit_topic
from rules.events import EmitterClosed, Event
from rules.identity import LogId
from seawall.connections import kafka_config, segment_store
from seawall.settings import Settings
from seawall.tier.following import Followed
from tiering.scrub.ports import Copy, copies_of, known_ids
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.segments.view import LogView
from tiering.store.patient import PatientStore
from tiering.store.retry import RetryPolicy

SPOOL_NAME = "events.sqlite"
EMITTER_NAME = "emitter"
NO_BROKER = 2**31 - 1  # an emitter has a broker's number, and -1 is none; this one no cluster gives
PUBLISH_S = 30.0  # so long a run waits at its end for Kafka to take its events

_EMITTER = re.compile(r"[a-z]+-[0-9a-f]{8}")


def state_folder(
    given: Path | None, cluster_id: str, environ: Mapping[str, str], sort: str = "scrub"
) -> Path:
    """The verb's own folder, one for each cluster; made if need be."""
    home = Path(environ.get("HOME", "/"))
    base = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    folder = given or base / "seawall" / f"{cluster_id}-{sort}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubTable:
    """The topic of metadata as a scrub asks for it: of some topics, or of all."""

    followed: Followed
    topics: frozenset[str] = frozenset()  # none named: all

    def read_on(self) -> object:
        return self.followed.read_on()

    def logs(self) -> list[LogId]:
        every = self.followed.logs()
        return [log for log in every if not self.topics or self.label(log) in self.topics]

    def label(self, log: LogId) -> str | None:
        return self.followed.label(log)

    def finished(self, log: LogId) -> list[Copy]:
        return copies_of(self._view(log))

    def known(self, log: LogId) -> frozenset[SegmentId]:
        view = self._view(log)
        return frozenset() if view is None else known_ids([*view.keys, *view.unreadable()])

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        return self.followed.segment(log, segment_id)

    def leader_epoch(self, log: LogId) -> int:
        view = self._view(log)
        return view.claims[-1].epoch if view is not None and view.claims else -1

    def last_offset(self, log: LogId) -> int:
        with self.followed.metadata.table() as tables:
            table = tables.of(log)
            assert table is not None, "this table has every partition of the topic"
            return table.position - 1

    def _view(self, log: LogId) -> LogView | None:
        return self.followed.view(log)


class NoEvents:
    """For a look that leaves no evidence."""

    def emit_many(self, events: Sequence[Event]) -> None:
        pass


class Evidence:
    """The events of one run, on disk before anything else, and on their way to Kafka."""

    def __init__(self, spool: Spool, publisher: Publisher, cluster_id: str) -> None:
        self._spool, self._publisher, self._cluster_id = spool, publisher, cluster_id
        self.set_aside = spool.set_aside

    def emit_many(self, events: Sequence[Event]) -> None:
        self._spool.emit_many(events)

    def close(self, beat: Callable[[Spool], None]) -> int:
        """Say how far it counted, and that it ends, and wait for Kafka; how many events that has not yet."""
        beat(self._spool)
        counted = self._spool.counters()
        closed = EmitterClosed(
            event_id=str(uuid.uuid4()),
            occurred_at_ms=now_ms(),
            cluster_id=self._cluster_id,
            event_count=counted.emitted + counted.lost,
        )
        self._spool.emit(closed)
        self._publisher.stop(PUBLISH_S)
        return self._spool.counters().pending

    @property
    def lost(self) -> int:
        """Events that found no room on this disk."""
        return self._spool.counters().lost


@contextmanager
def evidence(settings: Settings, folder: Path, cluster_id: str, sort: str = "scrub") -> Iterator[Evidence]:
    """The folder's spool, and what publishes it. Raises SpoolInUse where another runs in the folder."""
    config = kafka_config(settings, client_id=f"seawall-{sort}")
    name = EmitterName(cluster_id, NO_BROKER, emitter(folder, sort))
    with Spool(folder / SPOOL_NAME, name) as spool:
        ensure_audit_topic(config)
        with Publisher(spool, config) as publisher:
            yield Evidence(spool, publisher, cluster_id)


def scrubbed_store(settings: Settings) -> PatientStore:
    """The bucket as a scrub asks it: less patience than an upload needs, a segment's turn comes again."""
    return segment_store(settings, policy=RetryPolicy(attempts_max=5, attempt_s=30.0, overall_s=60.0))


def emitter(folder: Path, sort: str = "scrub") -> str:
    """The name that this folder's runs emit under, made by the first."""
    path = folder / EMITTER_NAME
    found = path.read_text(encoding="ascii", errors="replace").strip() if path.exists() else ""
    if _EMITTER.fullmatch(found):
        return found
    name = f"{sort}-{secrets.token_hex(4)}"
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("w", encoding="ascii") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    return name


def now_ms() -> int:
    return time.time_ns() // 1_000_000
