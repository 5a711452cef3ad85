"""A log that is tiered into a bucket, by hand: what is stored and what is said of it can each be made wrong.

The table is the real one over encoded records; the bucket is whatever speaks the port, a real server's too.
"""

from __future__ import annotations

import itertools
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rules.events import Event, Inventory, Scrubbed
from rules.identity import LogId, ObjectRef
from tests.encode.record_batch import PlainRecord
from tests.tiering.reader.tier import LogOfBatches, _indexes
from tests.tiering.segments.strategies import LOG, log_record, segment
from tests.tiering.segments.topic import Topic
from tests.tiering.store.hands import Hands
from tests.tiering.store.memory import Bucket
from tiering.log.checkpoints import EpochStart
from tiering.log.segment import SegmentScan, scan
from tiering.scrub.damage import Checked
from tiering.scrub.look import Objects
from tiering.scrub.memory import Memory
from tiering.scrub.ports import Ask, Copy, Ports, Progress, copies_of, known_ids
from tiering.scrub.report import Report
from tiering.scrub.run import Shared, alone, scrub
from tiering.segments.codec import encode_segment
from tiering.segments.records import SegmentId, SegmentObjects, SegmentRecord, SegmentState
from tiering.store.aux_file import AuxContents, encode_aux
from tiering.store.content import InMemory
from tiering.store.interface import CHECKSUM_ALGORITHM
from tiering.store.keys import KeyLayout
from tiering.store.patient import PatientStore

NOW_MS = 1_800_000_000_000
Says = Callable[[SegmentRecord], SegmentRecord]


def honest(record: SegmentRecord) -> SegmentRecord:
    return record


@dataclass
class Kit:
    """One log. `store` is what the kit fills the bucket with, `objects` what is looked at through."""

    store: PatientStore
    folder: Path
    bucket: Bucket | None = None  # where it is in memory
    objects: Objects | None = None
    topic: Topic = field(default_factory=Topic)
    hands: Hands = field(default_factory=Hands)
    events: list[Event] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    reads_on: int = 0
    paced: list[int] = field(default_factory=list)
    pace: Callable[[int], object] = lambda _: None
    before_read_on: Callable[[], None] = lambda: None
    on_checked: Callable[[Checked], None] = lambda _: None
    prefix: str = field(default_factory=lambda: f"scrub-{uuid.uuid4()}")
    now_ms: int = NOW_MS
    is_claimed: bool = False  # by whoever made the topic
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _log: LogOfBatches = field(default_factory=LogOfBatches)

    def __post_init__(self) -> None:
        self.layout = KeyLayout(self.prefix)
        self.pace = self.paced.append
        if not self.is_claimed:
            self.topic.claim(log_record(0))

    # Filling

    def copy(
        self,
        *,
        batches: int = 4,
        value: bytes = b"v" * 100,
        stored: Callable[[bytes], bytes] = bytes,
        aux: Callable[[bytes], bytes] = bytes,
        json: Callable[[bytes], bytes] = bytes,
        says: Says = honest,
    ) -> SegmentRecord:
        """A finished copy of the log's next batches. `stored` is what the bucket gets for its `.log`, of what
        the record goes on to speak of; what `aux` and `json` give, the record knows.
        """
        first = len(self._log.batches)
        for _ in range(batches):
            at = self._log.end
            self._log.append(
                [PlainRecord(offset=0, timestamp_ms=NOW_MS + at + n, value=value) for n in (0, 1)]
            )
        made = self._log.batches[first:]
        content = b"".join(each.content for each in made)
        record = says(self._record(made[0].start, made[-1].end, content))
        self.topic.append(replace(record, state=SegmentState.COPY_STARTED, objects=SegmentObjects()))
        offset_index, time_index = _indexes(made, 2)
        side = encode_aux(
            AuxContents(
                base_offset=made[0].start,
                end_offset=made[-1].end,
                offset_index=offset_index,
                time_index=time_index,
                transaction_index=None,
                producer_snapshot=None,
                leader_epochs=(EpochStart(0, 0),),
                aborted=(),
            )
        )
        objects = SegmentObjects(
            log=self.put(f"{record.key_stem}.log", stored(content), said=content),
            aux=self.put(f"{record.key_stem}.aux", aux(side)),
        )
        record = replace(record, objects=objects)
        record = replace(
            record,
            objects=replace(
                record.objects, json=self.put(f"{record.key_stem}.json", json(encode_segment(record)))
            ),
        )
        assert self.topic.append(record) == []
        return record

    def put(self, key: str, content: bytes, *, said: bytes | None = None) -> ObjectRef:
        """An object; and a reference to it that speaks of `said`, where that is something else."""
        body, spoken = InMemory(content), InMemory(content if said is None else said)
        self.store.put_new(key, body, body.checksum)
        version = self.store.head(key).version_id
        return ObjectRef(key, spoken.size_bytes, CHECKSUM_ALGORITHM, spoken.checksum, version)

    def expire(self, record: SegmentRecord) -> None:
        """As expiry does: metadata first, objects second."""
        self.topic.append(replace(record, state=SegmentState.DELETE_STARTED))
        for kind in ("json", "aux", "log"):
            self.store.mark_deleted(f"{record.key_stem}.{kind}")

    def _record(self, base: int, end: int, content: bytes) -> SegmentRecord:
        found = scanned(content, base)
        record = segment(
            next(self._numbers),
            base,
            end,
            data_end=found.data_end,
            max_timestamp_ms=found.max_timestamp_ms,
            record_count=found.record_count,
            batch_count=found.batch_count,
            size_bytes=len(content),
        )
        stem = f"{self.layout.log_prefix(LOG)}{base:020d}-{record.segment_id}"
        return replace(record, key_stem=stem)

    # Scrubbing

    def scrub(
        self, ask: Ask | None = None, *, memory: Memory | None = None, shared: Shared = alone
    ) -> Report:
        """One run, with the memory of the folder."""
        kept = memory or Memory(self.folder, now_ms=self.now_ms)
        self.now_ms += 1000
        ports = Ports(
            table=self,
            objects=self.objects or self.store,
            memory=kept,
            sink=self,
            layout=self.layout,
            pace=lambda size_bytes: self.pace(size_bytes),
            clock=self.hands.clock,
            now_ms=lambda: self.now_ms,
            new_id=lambda: str(uuid.uuid4()),
        )
        self.events.clear()
        self.checked.clear()

        def tell(checked: Checked) -> None:
            self.checked.append(checked)
            self.on_checked(checked)

        try:
            return scrub(
                ports, ask or Ask(), on_checked=tell, on_progress=self.progress.append, shared=shared
            )
        finally:
            if memory is None:
                kept.close()

    def read_on(self) -> None:
        self.reads_on += 1
        self.before_read_on()

    def logs(self) -> Sequence[LogId]:
        return [LOG]

    def label(self, log: LogId) -> str:
        return "orders"

    def finished(self, log: LogId) -> Sequence[Copy]:
        return copies_of(self.topic.view)

    def known(self, log: LogId) -> frozenset[SegmentId]:
        return known_ids(self.topic.view.keys)

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        return self.topic.table.segment(log, segment_id)

    def leader_epoch(self, log: LogId) -> int:
        return self.topic.view.claims[-1].epoch

    def last_offset(self, log: LogId) -> int:
        return self.topic.table.position - 1

    def emit_many(self, events: Sequence[Event]) -> None:
        self.events += events

    # What came of it

    @property
    def scrubbed(self) -> list[Scrubbed]:
        return [each for each in self.events if isinstance(each, Scrubbed)]

    @property
    def inventory(self) -> Inventory:
        [found] = [each for each in self.events if isinstance(each, Inventory)]
        return found

    def problems(self) -> dict[str, str | None]:
        """What each object that is not right ended with, by the end of its key."""
        return {
            each.object_key.rpartition(".")[2]: each.problem
            for each in self.scrubbed
            if each.scrub_outcome.value != "verified"
        }


def scanned(content: bytes, base: int) -> SegmentScan:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return scan(file.fileno(), base_offset=base)


def flip(content: bytes, at: int) -> bytes:
    """One bit of one byte turned over."""
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
