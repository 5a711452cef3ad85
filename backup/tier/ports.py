"""What a restore to the tier needs of the world, and what it says while it runs.

Owns the ports. Refuses a way to delete a version: there is none in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from backup.catalogue.gather import Table
from rules.events import Event
from rules.identity import ObjectRef
from rules.policy.topic import TopicPolicy
from tiering.segments.records import LogRecord, SegmentRecord
from tiering.store.interface import ListedVersion, PendingUpload, Stored
from tiering.store.keys import KeyLayout

WORKERS = 16


class Tier(Protocol):
    """The metadata topic, to write to. Safe to use from many threads."""

    def publish(self, record: SegmentRecord) -> int:
        """The record's offset, once our own table has followed it; NotFollowed where it does not."""

    def publish_log(self, record: LogRecord) -> int: ...


class Objects(Protocol):
    """The bucket. PatientStore is one."""

    @property
    def bucket(self) -> str: ...

    def list_versions(self, prefix: str) -> Iterator[ListedVersion]: ...

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]: ...

    def abort_parts(self, key: str, upload_id: str) -> None: ...

    def read_range(self, key: str, version_id: str, start: int, end: int) -> bytes: ...

    def head(self, key: str, version_id: str | None = None) -> Stored: ...

    def copy_version(self, source: ObjectRef) -> str | None: ...

    def mark_deleted(self, key: str) -> object: ...

    def keeps_versions(self) -> bool: ...


class Sink(Protocol):
    """Takes events. When `emit_many` has returned, they are as durable as the sink promises."""

    def emit_many(self, events: Sequence[Event]) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far it came: objects put back, of all that are to be; bytes alike."""

    objects: int
    objects_total: int
    size_bytes: int
    size_bytes_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world, as far as a restore touches it. `pace` waits for the byte rate.

    `policy` is what is declared for a topic now; None where nothing is.
    """

    cluster_id: str
    table: Table
    tier: Tier
    objects: Objects
    layout: KeyLayout
    policy: Callable[[str], TopicPolicy | None]
    sink: Sink
    principal: str
    now_ms: Callable[[], int]
    pace: Callable[[int], object] = lambda _: None
    on_progress: Callable[[Progress], None] = lambda _: None
    workers: int = WORKERS
