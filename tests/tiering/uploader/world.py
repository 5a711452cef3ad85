"""A small world for an uploader: a metadata topic, a bucket and a leader, each of which can fail on cue.

Tiny in-memory implementations of the uploader's ports, not mocks: the bucket keeps versions and refuses to
overwrite, the topic follows only what the lifecycle allows. `Plan` ends the process before or after any of
their effects, as a kill -9 would.
"""

from __future__ import annotations

import base64
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rules.events import LogEvent
from rules.identity import LogId, ObjectRef
from tiering.log.checkpoints import EpochStart
from tiering.log.segment import SegmentScan, scan
from tiering.segments.codec import encode_segment
from tiering.segments.lifecycle import Refused, first_record, next_record
from tiering.segments.records import SegmentRecord, SegmentState
from tiering.store.interface import Stored
from tiering.store.keys import KeyLayout
from tiering.store.upload import UploadedSegment
from tiering.uploader.copy import LogAttempts, Ports
from tiering.uploader.errors import NotFollowed, NotLeading
from tiering.uploader.holder import HeldSegment

CHECKSUM = base64.b64encode(bytes(8)).decode()
LOG = LogId("c1", "CgkTzsXgRlOwPTRJHnL2yg", 0)
ATTEMPTS = LogAttempts(
    log=LOG,
    topic="orders",
    broker_id=1,
    leader_epoch=5,
    generation=0,
    lineage=(EpochStart(3, 0), EpochStart(5, 6)),
)


class Killed(BaseException):
    """The process ended here: nobody may catch it and go on."""


def kill() -> None:
    raise Killed


@dataclass(slots=True)
class Plan:
    """Strikes at effect number `at`: before it, or, where `applied`, after it happened.

    A strike kills the process, if it is not told to do something else: to raise what a store or the topic
    would, or to let the world go on meanwhile.
    """

    at: int | None = None
    applied: bool = False
    count: int = 0
    strike: Callable[[], None] = kill

    def effect(self) -> Iterator[None]:
        """Two steps around an effect: `yield` is where it happens."""
        self.count += 1
        strikes = self.count == self.at
        if strikes and not self.applied:
            self.strike()
        yield
        if strikes and self.applied:
            self.strike()

    @contextmanager
    def struck(self, at: int, *, applied: bool, strike: Callable[[], None] = kill) -> Iterator[None]:
        """One strike within, at the effect `at` from now."""

        def once() -> None:
            self.at = None
            strike()

        self.count, self.at, self.applied, self.strike = 0, at, applied, once
        try:
            yield
        finally:
            self.at, self.strike = None, kill


@dataclass(slots=True)
class FakeTier:
    """The metadata topic: everything published, and the last record of each segment that was followed."""

    plan: Plan
    published: list[SegmentRecord] = field(default_factory=list)
    followed: dict[str, SegmentRecord] = field(default_factory=dict)
    fenced_from: int | None = None  # a newer leader's claim stands before this offset

    def publish(self, record: SegmentRecord) -> int:
        encode_segment(record)  # what cannot be encoded is never published
        for _ in self.plan.effect():
            offset = len(self.published)
            self.published.append(record)
            copies = record.state in (SegmentState.COPY_STARTED, SegmentState.COPY_FINISHED)
            if copies and self.fenced_from is not None and offset >= self.fenced_from:
                raise NotFollowed(
                    log=record.log, segment_id=record.segment_id, state=record.state.value, why="fenced"
                )
            before = self.followed.get(record.segment_id)
            verdict = first_record(record) if before is None else next_record(before, record)
            assert not isinstance(verdict, Refused), verdict
            self.followed[record.segment_id] = record
        return offset

    def in_state(self, *states: SegmentState) -> list[SegmentRecord]:
        return [record for record in self.followed.values() if record.state in states]


@dataclass(slots=True)
class FakeObjects:
    """The bucket. `live` is what a listing shows; `versions` is what was ever stored."""

    plan: Plan
    live: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, bytes] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)  # keys that were ever given a delete marker
    fail_on: str | None = None  # the kind of object whose upload raises
    corrupt: bool = False  # the local file changes between the first and the second read

    def upload_segment(
        self, key: str, descriptor: int, *, base_offset: int, limit_offset: int | None
    ) -> UploadedSegment:
        found = scan(descriptor, base_offset=base_offset, limit_offset=limit_offset)
        content = os.pread(descriptor, found.size_bytes, 0)
        if self.corrupt:
            found.record_count += 1
        return UploadedSegment(ref=self._put(key, content), scan=found)

    def upload_bytes(self, key: str, content: bytes) -> ObjectRef:
        return self._put(key, content)

    def mark_deleted(self, key: str) -> None:
        for _ in self.plan.effect():
            self.live.pop(key, None)
            self.marked.add(key)

    def head(self, key: str, version_id: str | None = None) -> Stored:
        """What is stored of a version; nothing of ours asks for one that it did not store."""
        assert version_id == f"v-{key}", version_id
        return Stored(size_bytes=len(self.versions[key]), checksum=CHECKSUM, version_id=version_id)

    def _put(self, key: str, content: bytes) -> ObjectRef:
        if self.fail_on is not None and key.endswith(self.fail_on):
            raise ConnectionError("the store went away")
        for _ in self.plan.effect():
            assert key not in self.versions, f"{key} is written twice"
            self.live[key] = self.versions[key] = content
        return ObjectRef(key, len(content), "CRC64NVME", CHECKSUM, f"v-{key}")


@dataclass(slots=True)
class FakeLead:
    """The leader's word: one bound an answer, in order, the last one for ever; None: not led from here."""

    bounds: list[int | None]

    def may_leave_below(self) -> int:
        bound = self.bounds.pop(0) if len(self.bounds) > 1 else self.bounds[0]
        if bound is None:
            raise NotLeading(log=LOG, leader_epoch=5, why="epoch 6 is led by broker 2")
        return bound


@dataclass(slots=True)
class FakeSink:
    events: list[LogEvent] = field(default_factory=list)

    def emit(self, event: LogEvent) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def has(self, event: LogEvent) -> bool:
        """Whether an event of this id was taken."""
        return any(event.event_id == each.event_id for each in self.events)


@dataclass(slots=True)
class World:
    """All of it, with one plan over every effect."""

    plan: Plan = field(default_factory=Plan)
    bounds: list[int | None] = field(default_factory=lambda: [2**40])
    tier: FakeTier = field(init=False)
    objects: FakeObjects = field(init=False)
    lead: FakeLead = field(init=False)
    sink: FakeSink = field(default_factory=FakeSink)
    ports: Ports = field(init=False)

    def __post_init__(self) -> None:
        ids, clock = itertools.count(1), itertools.count(1_700_000_000_000)
        self.tier, self.objects = FakeTier(self.plan), FakeObjects(self.plan)
        self.lead = FakeLead(self.bounds)
        self.ports = Ports(
            tier=self.tier,
            lead=self.lead,
            objects=self.objects,
            keys=KeyLayout("tier"),
            aux=_aux,
            sink=self.sink,
            now_ms=lambda: next(clock),
            new_id=lambda: f"00000000-0000-0000-0000-{next(ids):012d}",
        )


def _aux(segment: HeldSegment, found: SegmentScan) -> bytes:
    return f"aux of {segment.base_offset} with {found.record_count} records".encode()
