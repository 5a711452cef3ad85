"""One log's metadata topic, its table, a bucket, a clock and a sink: the world that a restore acts on.

Copies have bytes of their own in `MemoryStore`, and removals are what expiry leaves. Each effect of a restore
is a moment at which the process can be killed, before or after it, or at which somebody else may act.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backup.catalogue.copies import LogCatalogue
from backup.catalogue.gather import gather
from backup.plan import AskedBy, Plan, Range
from backup.plan.make import Wish, make_plan
from backup.tier.apply import Restoration, apply
from backup.tier.ports import Ports
from rules.events import Event
from rules.identity import LogId, ObjectRef
from rules.policy.topic import TopicPolicy
from tests.tiering.orphans.world import LAYOUT, TOPIC
from tests.tiering.segments.strategies import CLUSTER_ID, LOG, log_record, segment
from tests.tiering.store.memory import Bucket, MemoryStore
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.coverage import Coverage, GapPiece, coverage
from tiering.segments.findings import Finding
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import (
    INT64_MAX,
    LogRecord,
    SegmentId,
    SegmentObjects,
    SegmentRecord,
    SegmentState,
)
from tiering.segments.table import PartitionTable
from tiering.segments.view import LogView
from tiering.store.content import InMemory
from tiering.store.interface import CHECKSUM_ALGORITHM, checksum_text, crc64
from tiering.store.patient import PatientStore, patient
from tiering.store.retry import RetryPolicy
from tiering.uploader.errors import NotFollowed

BEGIN_MS = 1_800_000_000_000
KINDS = ("log", "aux", "json")
STARTED, FINISHED = SegmentState.COPY_STARTED, SegmentState.COPY_FINISHED
DELETING, DELETED = SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Meddled:
    """The bucket, as a restore has it: each copy is a moment."""

    world: World

    def copy_version(self, source: ObjectRef) -> str | None:
        self.world.pass_moment()
        found = self.world.objects.copy_version(source)
        self.world.pass_moment()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world.objects, name)


@dataclass
class World:
    """One log, claimed at epoch 5. `meddle` is called with the number of each effect, before and after it."""

    now_ms: int = BEGIN_MS
    epoch: int = 5
    policy: TopicPolicy | None = None
    events: list[Event] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    topic_records: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    kept: Bucket = field(default_factory=Bucket)
    meddle: Callable[[int], None] = lambda moment: None
    moment: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    table: PartitionTable = field(init=False)
    store: MemoryStore = field(init=False)
    objects: PatientStore = field(init=False)

    def __post_init__(self) -> None:
        self.table = PartitionTable(TOPIC, 0, complete_from=0)
        self.store = MemoryStore(self.kept, now_ms=lambda: self.now_ms)
        self.objects = patient(self.store, policy=RetryPolicy(attempts_max=2), sleep=lambda _: None)
        self.append(log_record(self.epoch, epochs=((0, 0),)))

    # What agents do.

    def append(self, record: SegmentRecord | LogRecord) -> list[Finding]:
        if isinstance(record, LogRecord):
            return self.append_raw(log_key(record.log), encode_log(record))
        return self.append_raw(segment_key(record.log, record.segment_id), encode_segment(record))

    def append_raw(self, key: bytes, value: bytes | None) -> list[Finding]:
        with self.lock:
            self.topic_records.append((key, value))
            return self.table.apply(len(self.topic_records) - 1, key, value)

    def copy(self, base: int, end: int, **fields: Any) -> SegmentRecord:
        """A copy as an uploader leaves it, each object with bytes of its own."""
        number = next(self.numbers)
        said: dict[str, Any] = {"epochs": ((0, base),), "leader_epoch": self.epoch, **fields}
        started = segment(number, base, end, state=STARTED, occurred_at_ms=self.now_ms, **said)
        content = f"log {number} [{base}, {end})".encode().ljust(started.size_bytes, b".")
        refs = {
            "log": self.put(f"{started.key_stem}.log", content[: started.size_bytes]),
            "aux": self.put(f"{started.key_stem}.aux", f"aux {number}".encode()),
        }
        finished = replace(
            started, state=FINISHED, objects=SegmentObjects(**refs), event_id=f"finished-{number}"
        )
        refs["json"] = self.put(f"{started.key_stem}.json", encode_segment(finished))
        finished = replace(finished, objects=SegmentObjects(**refs))
        assert not self.append(started)
        assert not self.append(finished)
        return finished

    def put(self, key: str, content: bytes) -> ObjectRef:
        checksum = checksum_text(crc64(content, 0))
        version_id = self.store.put_new(key, InMemory(content), checksum)
        return ObjectRef(key, len(content), CHECKSUM_ALGORITHM, checksum, version_id)

    def remove(self, record: SegmentRecord, *, until: int = 5) -> SegmentRecord:
        """As expiry does, as far as its step `until`: on record, three markers, off the record."""
        self.now_ms += 1
        deleting = replace(
            record,
            state=DELETING,
            event_id=f"deleting-{next(self.numbers)}",
            leader_epoch=max(self.epoch, record.leader_epoch),
        )
        self.append(deleting)
        for kind in ("json", "aux", "log")[: max(0, until - 1)]:
            self.store.mark_deleted(f"{record.key_stem}.{kind}")
        if until < 5:
            return deleting
        deleted = replace(deleting, state=DELETED, event_id=f"deleted-{next(self.numbers)}")
        assert not self.append(deleted)
        return deleted

    def change(self, **fields: Any) -> None:
        """Another record of the log under the standing claim."""
        view = self.view(LOG)
        assert view.record is not None
        changed = replace(
            view.record,
            based_on=view.record_offset,
            claim_offset=view.claims[-1].offset,
            earlier_claims=view.claims_to_repeat(),
            **{"event_id": f"change-{next(self.numbers)}", **fields},
        )
        assert not self.append(changed)

    def claim(self) -> None:
        """A new leader's agent claims the log."""
        self.epoch += 1
        view = self.view(LOG)
        assert view.record is not None
        claimed = replace(
            view.record,
            claim_epoch=self.epoch,
            claim_offset=None,
            earlier_claims=(*view.claims_to_repeat(), view.claims[-1]),
            based_on=view.record_offset,
            event_id=f"claim-{self.epoch}",
        )
        assert not self.append(claimed)

    def expire_below(self, offset: int) -> None:
        """The start moves, and what lies wholly below goes."""
        self.change(log_start=offset)
        for each in list(self.view(LOG).segments()):
            record = self.segment(LOG, each.segment_id)
            if each.state is FINISHED and each.end_offset <= offset and record is not None:
                self.remove(record)

    def forget(self, record: SegmentRecord) -> None:
        """A tombstone, once the window is over."""
        assert not self.append_raw(segment_key(record.log, record.segment_id), None)

    def lifecycle_takes(self, key: str) -> None:
        """Every noncurrent version of a key is gone; a marker that is alone stays."""
        self.kept.objects[key] = self.kept.objects[key][-1:]

    # The ports.

    def ports(self, **other: Any) -> Ports:
        said: dict[str, Any] = {
            "cluster_id": CLUSTER_ID,
            "table": self,
            "tier": self,
            "objects": Meddled(self),
            "layout": LAYOUT,
            "policy": lambda topic: self.policy,
            "sink": self,
            "principal": "operator",
            "now_ms": lambda: self.now_ms,
            "workers": 1,
        }
        return Ports(**{**said, **other})

    def read_on(self) -> None:
        pass

    def view(self, log: LogId) -> LogView:
        with self.lock:
            view = self.table.view(log)
        assert view is not None
        return view

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        with self.lock:
            return self.table.segment(log, segment_id)

    def publish(self, record: SegmentRecord | LogRecord) -> int:
        self.pass_moment()
        with self.lock:
            found = self.append(record)
            offset = len(self.topic_records) - 1
        self.pass_moment()
        if any(not finding.reason.followed for finding in found):
            raise NotFollowed(
                log=LOG, segment_id=record.event_id, state="record", why=str(found[0].reason.value)
            )
        return offset

    publish_log = publish

    def emit_many(self, events: Sequence[Event]) -> None:
        self.pass_moment()
        self.events += events
        self.pass_moment()

    def pass_moment(self) -> None:
        moment, self.moment = self.moment, self.moment + 1
        self.meddle(moment)

    # What a person does.

    def catalogue(self) -> LogCatalogue:
        return gather(LOG, self, self.objects, LAYOUT)

    def plan(self, start: int | None = None, end: int | None = None, **fields: Any) -> Plan:
        """Of everything, or of a range."""
        wanted = None if start is None else Range(start, INT64_MAX if end is None else end)
        by = AskedBy.ALL if wanted is None else AskedBy.OFFSETS
        wish = Wish(by=by, text="a test", range=wanted, **{"passes_gaps": True, **fields})
        return make_plan(self.catalogue(), wish, self.policy, now_ms=self.now_ms, bucket="memory")

    def apply(self, plan: Plan, **other: Any) -> Restoration:
        return apply(plan, self.ports(**other))

    # What is there.

    @property
    def record(self) -> LogRecord:
        record = self.view(LOG).record
        assert record is not None
        return record

    def coverage(self) -> Coverage:
        found = coverage(self.view(LOG))
        assert isinstance(found, Coverage)
        return found

    def readable(self) -> set[int]:
        """Each offset of which the tier gives the bytes on record: what a reader would be given."""
        found, told = set(), self.coverage()
        for piece in told.pieces(told.frontier.start, told.frontier.offset):
            if isinstance(piece, GapPiece):
                continue
            record = self.segment(LOG, piece.segment_id)
            assert record is not None
            assert record.objects.log is not None
            if self.content(record.objects.log) is not None:
                found |= set(range(piece.start, piece.end))
        return found

    def content(self, ref: ObjectRef) -> bytes | None:
        """The bytes of a version, if they are there and are those on record."""
        versions = self.kept.objects.get(ref.key, [])
        found = [
            each.content for each in versions if each.version_id == ref.version_id and not each.is_marker
        ]
        is_it = found and checksum_text(crc64(found[0], 0)) == ref.checksum
        return found[0] if is_it else None

    def picture(self) -> Any:
        """Everything that must be as before where nothing was changed, for comparison."""
        record = self.record
        live = {
            key: [each.version_id for each in versions if not each.is_marker]
            for key, versions in self.kept.objects.items()
        }
        tops = {key: versions[-1].is_marker for key, versions in self.kept.objects.items() if versions}
        states = {each.segment_id: (each.state, each.generation) for each in self.view(LOG).segments()}
        return record.log_start, record.keep_until_ms, record.gaps, record.generation, states, live, tops
