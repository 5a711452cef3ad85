"""A batch of the source as it is sent to the target.

Its compressed records are passed through, not opened, where all of them go on with the times that they have.
What changes stands in the header: offsets, leader's epoch, producer, sequence; and the CRC, which is over
those. Made anew are batches of which a part was asked for, those with holes that a cleaner left, and those
whose times the source's broker set (the payload has others, and a producer may not send that flag).

A request takes one batch of a partition, so that small ones cost as much as large ones. Where records are not
compressed, `Packer` puts the records of several behind each other: of a record only its time and its number
are written again.

Owns these choices. Refuses control batches: markers belong to the source's transactions.

Invariant: the records of what is sent are those that were asked for: time, key, value, headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from backup.topic.encode import batch_of, payload_of, renumbered, varint_bytes
from backup.topic.offset_map import Run
from tiering.log.batch import CODEC_MASK, HEADER_BYTES, TRANSACTIONAL
from tiering.log.codec import Codec
from tiering.log.wire import Buffer
from tiering.reader.interface import StoredBatch

SEQUENCES = 2**31  # they wrap behind 2**31 - 1
PACKED_BYTES = 512 * 1024  # half of what brokers take by default


@dataclass(slots=True, kw_only=True)
class Sender:
    """As whom a batch is sent, and with which sequence next."""

    producer_id: int
    producer_epoch: int
    sequence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A batch to send. `runs` are against a target that begins at 0."""

    content: bytearray
    records: int
    runs: tuple[Run, ...]
    next_offset: int  # of the source
    is_passed_through: bool


def outgoing(batch: StoredBatch, sender: Sender) -> Outgoing | None:
    """What is sent for a batch by itself; None where nothing of it was asked for."""
    header = batch.header
    assert not header.is_control, "a marker is not replayed"
    if _is_as_it_is(batch):
        return _packed([batch], sender)
    records = tuple(batch.records())
    if not records:
        return None
    return _sent(
        sender,
        codec=header.codec_number,
        runs=tuple(_runs([each.offset for each in records])),
        base_ms=records[0].timestamp_ms,
        max_ms=max(each.timestamp_ms for each in records),
        payload=[payload_of(records, Codec(header.codec_number))],
        next_offset=batch.end,
        passed=False,
    )


@dataclass(slots=True, kw_only=True)
class Packer:
    """Batches on their way into larger ones, as far as they may: not compressed, and whole."""

    sender: Sender
    limit_bytes: int = PACKED_BYTES
    bytes: int = 0  # of what is held, at most
    _held: list[StoredBatch] = field(default_factory=list)
    _records: int = 0

    def add(self, batch: StoredBatch) -> list[Outgoing]:
        """What is to be sent now, in its order."""
        size_bytes = batch.header.size_bytes
        if batch.header.codec_number != Codec.NONE or not _is_as_it_is(batch):
            alone = self.flush()
            made = outgoing(batch, self.sender)
            return [*alone, made] if made is not None else alone
        added_bytes = self._added_bytes(batch)
        ready = []
        if self._held and self.bytes + added_bytes > self.limit_bytes:
            ready, added_bytes = self.flush(), size_bytes
        self._held.append(batch)
        self.bytes += added_bytes
        self._records += batch.header.record_count
        return ready

    def flush(self) -> list[Outgoing]:
        """What is left."""
        held, self._held, self.bytes, self._records = self._held, [], 0, 0
        return [_packed(held, self.sender)] if held else []

    def _added_bytes(self, batch: StoredBatch) -> int:
        """What it adds at most: without its header, but with a larger number and time in each record."""
        header = batch.header
        if not self._held:
            return header.size_bytes
        later_ms = header.base_timestamp_ms - self._held[0].header.base_timestamp_ms
        number_bytes = varint_bytes(self._records + header.record_count) - 1
        time_bytes = varint_bytes(later_ms) if later_ms else 0
        length_bytes = 1 if number_bytes or time_bytes else 0
        each_bytes = number_bytes + time_bytes + length_bytes
        return header.size_bytes - HEADER_BYTES + header.record_count * each_bytes


def _is_as_it_is(batch: StoredBatch) -> bool:
    """Whether all of its records go on, numbered without a hole, with the times that stand in them."""
    header = batch.header
    is_whole = (batch.start, batch.end) == (header.base_offset, header.next_offset)
    return is_whole and header.record_count == header.last_offset_delta + 1 and not header.is_log_append_time


def _packed(batches: list[StoredBatch], sender: Sender) -> Outgoing:
    """Batches as they are, the records of the later ones numbered on."""
    first = batches[0].header
    parts: list[Buffer] = []
    runs: list[Run] = []
    count = 0
    for batch in batches:
        header, payload = batch.header, batch.content[HEADER_BYTES:]
        later_ms = header.base_timestamp_ms - first.base_timestamp_ms
        is_first = count == 0
        parts += [payload] if is_first else renumbered(payload, header.record_count, count, later_ms)
        runs.append(Run(header.base_offset, count, header.record_count))
        count += header.record_count
    return _sent(
        sender,
        codec=first.codec_number,
        runs=tuple(runs),
        base_ms=first.base_timestamp_ms,
        max_ms=max(batch.header.max_timestamp_ms for batch in batches),
        payload=parts,
        next_offset=batches[-1].end,
        passed=True,
    )


def _sent(
    sender: Sender,
    *,
    codec: int,
    runs: tuple[Run, ...],
    base_ms: int,
    max_ms: int,
    payload: Sequence[Buffer],
    next_offset: int,
    passed: bool,
) -> Outgoing:
    count = sum(run.offsets for run in runs)
    content = batch_of(
        attributes=codec & CODEC_MASK | TRANSACTIONAL,
        records=count,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max_ms,
        producer_id=sender.producer_id,
        producer_epoch=sender.producer_epoch,
        base_sequence=sender.sequence,
        payload=payload,
    )
    sender.sequence = (sender.sequence + count) % SEQUENCES
    return Outgoing(
        content=content, records=count, runs=runs, next_offset=next_offset, is_passed_through=passed
    )


def _runs(offsets: list[int]) -> list[Run]:
    found: list[Run] = []
    for number, offset in enumerate(offsets):
        if found and found[-1].source_end == offset:
            found[-1] = found[-1]._replace(offsets=found[-1].offsets + 1)
        else:
            found.append(Run(offset, number, 1))
    return found
