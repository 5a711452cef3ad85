"""One log's metadata topic, a bucket, and everybody who leaves something lying in it.

The table is the real one over encoded records, the bucket is `MemoryStore`. Uploaders, removers and
restorers are generators that stop after each of their effects: one that is never resumed is a crash, one that
is resumed much later is a zombie. The cleaner is the real one; others may act, or it may die, at each of its
effects.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from rules.events import LogEvent
from rules.identity import LogId, ObjectRef
from tests.tiering.segments.strategies import CLUSTER_ID, LOG, log_record, segment
from tests.tiering.store.memory import MemoryStore
from tiering.orphans.clean import Outcome, Ports, clean
from tiering.orphans.judge import GRACE_MS, Judged, Known, judge_log, known_of
from tiering.orphans.listing import Foreign, listing
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import (
    Hold,
    LogRecord,
    SegmentId,
    SegmentObjects,
    SegmentRecord,
    SegmentState,
)
from tiering.segments.rows import Standing
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable
from tiering.segments.view import LogView
from tiering.store.content import InMemory
from tiering.store.errors import AlreadyExists
from tiering.store.interface import CHECKSUM_ALGORITHM, checksum_text, crc64
from tiering.store.keys import KeyLayout
from tiering.store.patient import PatientStore, patient
from tiering.uploader.errors import NotFollowed

BEGIN_MS = 1_800_000_000_000
TOPIC = MetadataTopic(
    cluster_id=CLUSTER_ID, topic_id=base64.urlsafe_b64encode(b"m" * 16).decode()[:22], partition_count=1
)
LAYOUT = KeyLayout("seawall")
STARTED, FINISHED = SegmentState.COPY_STARTED, SegmentState.COPY_FINISHED
DELETING, DELETED = SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED
KINDS = ("json", "aux", "log")


class Killed(BaseException):
    """The cleaner's process is gone."""


@dataclass
class World:
    """One log. `meddle` is called with the number of each of the cleaner's effects, before it happens."""

    now_ms: int = BEGIN_MS
    lag: int = 0  # by how many records the cleaner's table is behind
    epoch: int = 0
    records: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    compacted: set[int] = field(default_factory=set)  # offsets whose records are gone
    events: list[LogEvent] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    meddle: Callable[[int], None] = lambda effect: None
    effects: int = 0
    store: MemoryStore = field(init=False)
    bucket: PatientStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryStore(now_ms=lambda: self.now_ms)
        self.bucket = patient(self.store)

    # The topic

    def append(self, record: SegmentRecord | LogRecord) -> bool:
        """Put a record into the topic; whether it is followed."""
        if isinstance(record, LogRecord):
            self.records.append((log_key(record.log), encode_log(record)))
            return True
        self.records.append((segment_key(record.log, record.segment_id), encode_segment(record)))
        found = self.row(record.segment_id)
        return found == (Standing.FOLLOWED, record.state, len(self.records) - 1)

    def table(self, lag: int = 0) -> PartitionTable:
        table = PartitionTable(TOPIC, 0, complete_from=len(self.records))
        for offset, (key, value) in enumerate(self.records[: max(0, len(self.records) - lag)]):
            if offset not in self.compacted:
                table.apply(offset, key, value)
        return table

    def row(self, segment_id: SegmentId) -> tuple[Standing, SegmentState, int] | None:
        for each in self.view().segments():
            if each.segment_id == segment_id:
                return each.standing, each.state, each.metadata_offset
        return None

    def view(self) -> LogView:
        view = self.table().view(LOG)
        assert view is not None, "a log is claimed first"
        return view

    def claim(self) -> None:
        """A new leader's agent claims the log."""
        self.epoch += 1
        before = self.table().view(LOG)
        if before is None or before.record is None:
            self.append(log_record(self.epoch))
            return
        self.append(
            replace(
                before.record,
                claim_epoch=self.epoch,
                claim_offset=None,
                earlier_claims=(*before.claims_to_repeat(), before.claims[-1]),
                based_on=before.record_offset,
                event_id=f"claim-{self.epoch}",
            )
        )

    def hold(self, *ranges: tuple[int, int | None]) -> None:
        """These holds, and no others, from now on."""
        view = self.view()
        assert view.record is not None
        holds = tuple(
            Hold(
                hold_id=f"hold-{start}",
                start_offset=start,
                end_offset=end,
                reason="a finding",
                placed_by="a test",
                placed_at_ms=self.now_ms,
            )
            for start, end in ranges
        )
        changed = replace(
            view.record,
            holds=holds,
            claim_offset=view.claims[-1].offset,
            earlier_claims=view.claims_to_repeat(),
            based_on=view.record_offset,
            event_id=f"holds-{next(self.numbers)}",
        )
        self.append(changed)

    # Those who leave something lying about

    def upload(self, base: int, *, epoch: int | None = None) -> Iterator[None]:
        """As uploader.copy does, but for T1's checks: an uploader may be deposed right after it has asked."""
        record = segment(
            next(self.numbers),
            base,
            base + 3,
            epochs=((0, base),),
            leader_epoch=self.epoch if epoch is None else epoch,
            state=STARTED,
            occurred_at_ms=self.now_ms,
        )
        if not self.append(record):
            return
        yield
        key, content = f"{record.key_stem}.log", InMemory(b"x" * record.size_bytes)
        checksum = checksum_text(crc64(b"x" * record.size_bytes, 0))
        upload_id = self.store.start_parts(key)
        yield
        if upload_id not in self.store.kept.uploads:
            return  # somebody aborted it
        part = self.store.put_part(key, upload_id, 1, content, checksum)
        size = content.size_bytes
        self.store.finish_parts(key, upload_id, (part,), size_bytes=size, checksum=checksum)
        log = self.ref(key)
        yield
        aux = self.put(f"{record.key_stem}.aux", b"aux")
        yield
        json = self.put(f"{record.key_stem}.json", b"json")
        yield
        self.append(replace(record, state=FINISHED, objects=SegmentObjects(log=log, aux=aux, json=json)))

    def remove(self, segment_id: SegmentId) -> Iterator[None]:
        """As expiry does, and an agent that abandons an attempt."""
        record = self.segment(LOG, segment_id)
        assert record is not None
        deleting = replace(record, state=DELETING, leader_epoch=self.epoch, occurred_at_ms=self.now_ms)
        if not self.append(deleting):
            return
        yield
        for kind in KINDS:
            self.store.mark_deleted(f"{record.key_stem}.{kind}")
            yield
        self.append(replace(deleting, state=DELETED, occurred_at_ms=self.now_ms))

    def restore(self, segment_id: SegmentId) -> Iterator[None]:
        """Recorded versions back onto their keys, then the record."""
        record = self.segment(LOG, segment_id)
        assert record is not None
        refs = {}
        for kind, ref in record.objects.present():
            try:
                self.store.copy_version(ref)
            except AlreadyExists:
                return
            refs[kind] = self.ref(ref.key)
            yield
        again = replace(
            record,
            state=FINISHED,
            generation=record.generation + 1,
            objects=SegmentObjects(**refs),
            leader_epoch=self.epoch,
        )
        self.append(again)

    def put(self, key: str, content: bytes) -> ObjectRef:
        self.store.put_new(key, InMemory(content), checksum_text(crc64(content, 0)))
        return self.ref(key)

    def ref(self, key: str) -> ObjectRef:
        """What was stored under a key last."""
        found = self.store.head(key)
        assert found.checksum is not None
        return ObjectRef(key, found.size_bytes, CHECKSUM_ALGORITHM, found.checksum, found.version_id)

    # The cleaner

    def look_around(self, grace_ms: int = GRACE_MS) -> tuple[list[Judged], tuple[Foreign, ...]]:
        """List the bucket, and only then look at the topic."""
        found = listing(
            LAYOUT, list(self.bucket.list_keys("seawall/")), list(self.bucket.list_uploads("seawall/"))
        )
        known = known_of(LOG, self.table(), end_offset=len(self.records))
        return list(judge_log(known, found.attempts, now_ms=self.now_ms, grace_ms=grace_ms)), found.foreign

    def clean_up(self, plan: list[Judged], grace_ms: int = GRACE_MS) -> list[Outcome]:
        """Act on what was seen, perhaps long ago."""
        self.effects = 0
        ports = Ports(
            table=self,
            tier=self,
            objects=self,
            sink=self,
            store_now_ms=lambda: self.now_ms,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"cleaner-{next(self.numbers)}",
            grace_ms=grace_ms,
        )
        try:
            return list(clean(plan, ports))
        except Killed:
            return []
        finally:
            self.meddle = lambda effect: None

    def look(self, log: LogId) -> Known:
        self._effect()
        return known_of(log, self.table(self.lag), end_offset=len(self.records))

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        return self.table(self.lag).segment(log, segment_id)

    def publish(self, record: SegmentRecord) -> int:
        self._effect()
        if not self.append(record):
            raise NotFollowed(
                log=LOG, segment_id=record.segment_id, state=record.state.value, why="something else"
            )
        return len(self.records) - 1

    def mark_deleted(self, key: str) -> None:
        self._effect()
        self.store.mark_deleted(key)

    def abort_parts(self, key: str, upload_id: str) -> None:
        self._effect()
        self.store.abort_parts(key, upload_id)

    def keeps_versions(self) -> bool:
        return self.store.keeps_versions()

    def emit(self, event: LogEvent) -> None:
        self.events.append(event)

    def _effect(self) -> None:
        self.effects += 1
        self.meddle(self.effects)

    # What is there

    def live(self) -> set[str]:
        return {key for key, found in self.store.kept.objects.items() if found and not found[-1].is_marker}

    def committed(self) -> dict[SegmentId, SegmentRecord]:
        """Every copy that counts."""
        table = self.table()
        view = table.view(LOG)
        found = (
            table.segment(LOG, each.segment_id)
            for each in (view.segments() if view is not None else ())
            if (each.standing, each.state) == (Standing.FOLLOWED, FINISHED)
        )
        return {record.segment_id: record for record in found if record is not None}

    def referenced(self) -> set[str]:
        return {ref.key for record in self.committed().values() for _, ref in record.objects.present()}

    def states(self) -> set[tuple[Standing, SegmentState]]:
        return {(each.standing, each.state) for each in self.view().segments()}

    def in_state(self, *states: SegmentState) -> list[SegmentId]:
        followed = [each for each in self.view().segments() if each.standing is Standing.FOLLOWED]
        return [each.segment_id for each in followed if each.state in states]
