"""A batch of the source as it is sent to the target.

Its compressed records are passed through, not opened, where all of them go on with the times that they have.
What changes stands in the header: offsets, leader's epoch, producer, sequence; and the CRC, which is over
those. Made anew are batches of which a part was asked for, those with holes that a cleaner left, and those
whose times the source's broker set (the payload has others, and a producer may not send that flag).

Owns that choice. Refuses control batches: markers belong to the source's transactions.

Invariant: the records of what is sent are those of the batch that were asked for: time, key, value, headers.
"""

from __future__ import annotations

from dataclasses import dataclass

from backup.topic.encode import batch_of, payload_of
from backup.topic.offset_map import Run
from tiering.log.batch import CODEC_MASK, HEADER_BYTES, TRANSACTIONAL
from tiering.log.codec import Codec
from tiering.reader.interface import StoredBatch

SEQUENCES = 2**31  # they wrap behind 2**31 - 1


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
    """What is sent for a batch; None where nothing of it was asked for."""
    header = batch.header
    assert not header.is_control, "a marker is not replayed"
    is_whole = (batch.start, batch.end) == (header.base_offset, header.next_offset)
    if is_whole and header.record_count == header.last_offset_delta + 1 and not header.is_log_append_time:
        count = header.record_count
        runs: tuple[Run, ...] = (Run(header.base_offset, 0, count),)
        base_ms, max_ms = header.base_timestamp_ms, header.max_timestamp_ms
        payload: bytes | memoryview = batch.content[HEADER_BYTES:]
        passed = True
    else:
        records = tuple(batch.records())
        if not records:
            return None
        count = len(records)
        runs = tuple(_runs([each.offset for each in records]))
        base_ms = records[0].timestamp_ms
        max_ms = max(each.timestamp_ms for each in records)
        payload = payload_of(records, Codec(header.codec_number))
        passed = False
    content = batch_of(
        attributes=header.attributes & CODEC_MASK | TRANSACTIONAL,
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
        content=content, records=count, runs=runs, next_offset=batch.end, is_passed_through=passed
    )


def _runs(offsets: list[int]) -> list[Run]:
    found: list[Run] = []
    for number, offset in enumerate(offsets):
        if found and found[-1].source_end == offset:
            found[-1] = found[-1]._replace(offsets=found[-1].offsets + 1)
        else:
            found.append(Run(offset, number, 1))
    return found
