"""The producer snapshot `<offset>.snapshot`: what a broker knew of each producer at that offset.

    file                                    entry
    at  0  version      int16, 1            at  0  producer_id               int64
    at  2  crc          uint32              at  8  producer_epoch            int16
    at  6  entry_count  int32               at 10  last_sequence             int32
    at 10  entries                          at 14  last_offset               int64
                                            at 22  offset_delta              int32
                                            at 26  timestamp_ms              int64
                                            at 34  coordinator_epoch         int32
                                            at 38  current_txn_first_offset  int64
                                            46 bytes

The CRC-32C covers byte 6 to the end. -1 stands for "none" in last_sequence, last_offset,
coordinator_epoch and current_txn_first_offset. Kafka has only ever had version 1 in use.

Refuses: entries that are not all there, and bytes behind them, even where the CRC agrees.

Invariant: a ProducerSnapshot holds what Kafka wrote, to the bit: nothing is returned before the CRC fits.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tiering.log import wire
from tiering.log.crc import crc32c
from tiering.log.errors import ChecksumMismatch, EndOfBuffer, Malformed, UnsupportedVersion
from tiering.log.wire import Buffer

PRODUCER_SNAPSHOT = "producer snapshot"
VERSION = 1
COVERED_AT = 6
ENTRIES_AT = 10
_ENTRY = struct.Struct(">qhiqiqiq")
ENTRY_BYTES = _ENTRY.size


class ProducerState(NamedTuple):
    """One idempotent or transactional producer, as of its last batch."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int


def read_producer_snapshot(buffer: Buffer) -> tuple[ProducerState, ...]:
    """The producers of a snapshot, in the order of the file."""
    version, position = wire.read_int16(buffer, 0)
    if version != VERSION:
        raise UnsupportedVersion(position=0, what=PRODUCER_SNAPSHOT, version=version, supported=str(VERSION))
    stored, position = wire.read_uint32(buffer, position)
    count, position = wire.read_int32(buffer, position)
    with memoryview(buffer) as view, view[COVERED_AT:] as covered:
        computed = crc32c(covered)
    if computed != stored:
        raise ChecksumMismatch(position=2, what=PRODUCER_SNAPSHOT, stored=stored, computed=computed)
    if count < 0:
        raise Malformed(position=COVERED_AT, what=PRODUCER_SNAPSHOT, why=f"counts {count} entries")
    wanted_bytes, left_bytes = count * ENTRY_BYTES, len(buffer) - ENTRIES_AT
    if wanted_bytes > left_bytes:
        raise EndOfBuffer(
            position=ENTRIES_AT,
            what=f"{PRODUCER_SNAPSHOT} of {count}",
            wanted_bytes=wanted_bytes,
            left_bytes=left_bytes,
        )
    if wanted_bytes < left_bytes:
        why = f"has {left_bytes - wanted_bytes} bytes behind its {count} entries"
        raise Malformed(position=ENTRIES_AT + wanted_bytes, what=PRODUCER_SNAPSHOT, why=why)
    return tuple(ProducerState(*fields) for fields in _ENTRY.iter_unpack(bytes(buffer[ENTRIES_AT:])))
