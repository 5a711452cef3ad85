"""A log in a tier in memory: real segment bytes, real `.aux` files, a real table; and what must come back.

A log is a list of batches. Copies cut it wherever they like, at batch boundaries as brokers do, and overlap.
Where the index points and which transactions overlap a copy is worked out here from the batches alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tests.encode.record_batch import PlainRecord, encode_batch, encode_control_batch
from tests.tiering.segments.strategies import LOG, log_record, segment, segment_id
from tests.tiering.segments.topic import TOPIC, Topic
from tests.tiering.store.contract import checksum_of
from tests.tiering.store.hands import Hands
from tests.tiering.store.memory import MemoryStore
from tiering.log.checkpoints import EpochStart
from tiering.log.transaction_index import AbortedTransaction
from tiering.reader.interface import TieredLog, tiered_log
from tiering.segments.records import Gap, ObjectRef, SegmentId, SegmentObjects
from tiering.segments.table import ReferenceTable
from tiering.store.aux_file import AuxContents, encode_aux
from tiering.store.content import InMemory
from tiering.store.patient import PatientStore
from tiering.store.retry import Retrier, RetryPolicy
from tiering.store.throttle import unlimited

T0_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of the log, and who is to see it."""

    content: bytes
    records: tuple[PlainRecord, ...]  # none in a control batch
    start: int
    end: int
    max_timestamp_ms: int
    epoch: int = 0
    producer_id: int = -1
    is_control: bool = False
    is_aborted: bool = False


@dataclass(slots=True)
class LogOfBatches:
    """A log that is appended to; `aborted` are its transactions that came to nothing."""

    batches: list[Batch] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    epoch: int = 0
    _open: dict[int, list[int]] = field(default_factory=dict)  # producer: its batches' places

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else 0

    def append(self, records: Sequence[PlainRecord], *, codec: str = "none", producer_id: int = -1) -> None:
        """One batch at the log's end, whatever offsets the records have; of a transaction with a producer."""
        moved = tuple(replace(each, offset=self.end + n) for n, each in enumerate(records))
        content = encode_batch(
            moved,
            codec=codec,
            leader_epoch=self.epoch,
            producer_id=producer_id,
            attributes=0x10 if producer_id >= 0 else 0,
        )
        if producer_id >= 0:
            self._open.setdefault(producer_id, []).append(len(self.batches))
        latest = max(each.timestamp_ms for each in moved)
        self._add(content, moved, len(moved), latest, producer_id=producer_id)

    def finish(self, producer_id: int, *, commit: bool) -> None:
        """The marker that ends a producer's transaction."""
        places = self._open.pop(producer_id, [])
        if not commit and places:
            first = self.batches[places[0]].start
            self.aborted.append(AbortedTransaction(producer_id, first, self.end, self.end + 1))
            for place in places:
                self.batches[place] = replace(self.batches[place], is_aborted=True)
        at = T0_MS + self.end
        content = encode_control_batch(
            self.end, commit=commit, producer_id=producer_id, timestamp_ms=at, leader_epoch=self.epoch
        )
        self._add(content, (), 1, at, producer_id=producer_id, is_control=True)

    def finish_all(self) -> None:
        for producer_id in list(self._open):
            self.finish(producer_id, commit=False)

    def visible(self, start: int, end: int, *, committed: bool) -> list[PlainRecord]:
        """What a consumer is to be shown of `[start, end)`."""
        return [
            record
            for batch in self.batches
            if not (committed and batch.is_aborted)
            for record in batch.records
            if start <= record.offset < end
        ]

    def epochs(self) -> tuple[tuple[int, int], ...]:
        return _epochs(self.batches)

    def _add(
        self,
        content: bytes,
        records: tuple[PlainRecord, ...],
        count: int,
        latest: int,
        *,
        producer_id: int,
        is_control: bool = False,
    ) -> None:
        self.batches.append(
            Batch(
                content=content,
                records=records,
                start=self.end,
                end=self.end + count,
                max_timestamp_ms=latest,
                epoch=self.epoch,
                producer_id=producer_id,
                is_control=is_control,
            )
        )


def _epochs(batches: Iterable[Batch]) -> tuple[tuple[int, int], ...]:
    first: dict[int, int] = {}
    for batch in batches:
        first.setdefault(batch.epoch, batch.start)
    return tuple(first.items())


@dataclass(slots=True)
class Tier:
    """The bucket and the topic."""

    store: MemoryStore = field(default_factory=MemoryStore)
    topic: Topic = field(default_factory=Topic)
    gaps: list[Gap] = field(default_factory=list)
    log_start: int = 0
    hands: Hands = field(default_factory=Hands)
    _next: int = 1

    @property
    def objects(self) -> PatientStore:
        policy = RetryPolicy(attempts_max=3)
        hands = self.hands
        return PatientStore(
            self.store, Retrier(policy, clock=hands.clock, sleep=hands.sleep, random=lambda: 0.5), unlimited()
        )

    def claim(self, log: LogOfBatches) -> None:
        epochs = log.epochs() or ((0, 0),)
        record = log_record(
            log.epoch, epochs=epochs, log_start=self.log_start, gaps=tuple(self.gaps), first_tiered_offset=0
        )
        self.topic.claim(record)

    def copy(
        self, log: LogOfBatches, first: int, last: int, *, index_every: int = 2, with_index: bool = True
    ) -> SegmentId:
        """Copy the batches `[first, last)` as one segment."""
        batches = log.batches[first:last]
        base, end = batches[0].start, batches[-1].end
        content = b"".join(batch.content for batch in batches)
        aborted = tuple(each for each in log.aborted if each.first_offset < end and each.last_offset >= base)
        offset_index, time_index = _indexes(batches, index_every)
        aux = encode_aux(
            AuxContents(
                base_offset=base,
                end_offset=end,
                offset_index=offset_index if with_index else None,
                time_index=time_index if with_index else None,
                transaction_index=None,
                producer_snapshot=None,
                leader_epochs=tuple(EpochStart(*each) for each in _epochs(batches)),
                aborted=tuple(sorted(aborted, key=lambda each: each.last_offset)),
            )
        )
        number, self._next = self._next, self._next + 1
        record = segment(number, base, end, epochs=_epochs(batches), leader_epoch=log.epoch)
        record = replace(
            record,
            size_bytes=len(content),
            batch_count=len(batches),
            max_timestamp_ms=max(batch.max_timestamp_ms for batch in batches),
            has_txn_index=any(batch.producer_id >= 0 for batch in batches),
            objects=SegmentObjects(
                log=self.put(f"{record.key_stem}.log", content),
                aux=self.put(f"{record.key_stem}.aux", aux),
                json=self.put(f"{record.key_stem}.json", b"{}"),
            ),
        )
        self.topic.copy(record)
        return segment_id(number)

    def put(self, key: str, content: bytes) -> ObjectRef:
        checksum = checksum_of(content)
        version = self.store.put_new(key, InMemory(content), checksum)
        return ObjectRef(key, len(content), "CRC64NVME", checksum, version)

    def ref(self, identity: SegmentId, kind: str = "log") -> ObjectRef:
        record = self.topic.table.segment(LOG, identity)
        assert record is not None
        return dict(record.objects.present())[kind]

    def content(self, ref: ObjectRef) -> bytes:
        return self.store.kept.objects[ref.key][0].content

    def tamper(self, ref: ObjectRef, content: bytes) -> None:
        """What no store should do: another content under the same version."""
        self.store.kept.objects[ref.key][0].content = content

    @property
    def table(self) -> ReferenceTable:
        assert TOPIC.partition_count == 1
        return ReferenceTable([self.topic.table])

    @property
    def log(self) -> TieredLog:
        found = tiered_log(self.table, LOG)
        assert isinstance(found, TieredLog), found
        return found


def _indexes(batches: Sequence[Batch], every: int) -> tuple[bytes, bytes]:
    """As a broker makes them: an entry names a batch by its last offset, and where it starts."""
    base, position, latest = batches[0].start, 0, -1
    offsets, times = b"", b""
    for number, batch in enumerate(batches):
        if batch.max_timestamp_ms > latest:
            latest, latest_at = batch.max_timestamp_ms, batch.end - 1 - base
        if number and number % every == 0:
            offsets += struct.pack(">ii", batch.end - 1 - base, position)
            entry = struct.pack(">qi", latest, latest_at)
            times += entry if times[-12:] != entry else b""
        position += len(batch.content)
    return offsets, times
