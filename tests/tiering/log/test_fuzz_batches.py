"""Broken batches and segments: our typed errors or a defect, never a crash, a loop or an unbounded buffer."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.encode.record_batch import CODECS, PlainRecord, encode_batch, encode_control_batch
from tests.encode.segment import T0_MS, plain_records
from tests.tiering.log.fuzz import check_memory, check_reader
from tiering.log.batch import COVERED_AT, CRC_AT, Record, crc_of, read_header, read_records
from tiering.log.segment import Compaction, Depth, iter_batches, scan

pytestmark = pytest.mark.slow

HEADERED = PlainRecord(offset=3, timestamp_ms=T0_MS, key=None, value=None, headers=[("h", b"v"), ("n", None)])
BATCHES = [
    encode_batch([*plain_records(0, 3, value=b"some value, some value"), HEADERED], codec=codec)
    for codec in sorted(CODECS)
]
SEGMENTS = [
    b"".join(
        [
            encode_batch(plain_records(100, 4, value=b"x" * 40), codec=codec, leader_epoch=2),
            encode_batch(plain_records(104, 2), codec=codec, leader_epoch=2, producer_id=7, attributes=0x10),
            encode_control_batch(106, commit=False, producer_id=7, timestamp_ms=T0_MS, leader_epoch=3),
        ]
    )
    for codec in sorted(CODECS)
]


def with_true_crc(blob: bytes) -> bytes:
    """The same damage under a CRC that vouches for it, so that the CRC is not what finds it."""
    if len(blob) <= COVERED_AT:
        return blob
    return blob[:CRC_AT] + crc_of(blob, 0, len(blob)).to_bytes(4, "big") + blob[COVERED_AT:]


def read_batch(blob: bytes) -> Iterator[Record]:
    return read_records(blob, read_header(blob))


def scan_bytes(blob: bytes, depth: Depth, compaction: Compaction) -> None:
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, blob)
        found = scan(descriptor, base_offset=100, depth=depth, compaction=compaction)
    finally:
        os.close(descriptor)
    assert found.defect is not None or found.valid_bytes == len(blob)
    assert 0 <= found.valid_bytes <= len(blob)


def iterate_bytes(blob: bytes) -> Iterator[int]:
    descriptor = os.memfd_create("fuzz")
    try:
        os.write(descriptor, blob)
        for batch in iter_batches(descriptor):
            yield sum(1 for _ in batch.records())
    finally:
        os.close(descriptor)


def test_broken_batches_raise_only_typed_errors() -> None:
    """Four thousand broken batches are read, or refused by a LogFormatError."""
    outcome = check_reader(read_batch, BATCHES, count=4000)

    assert outcome.refused > 1000
    assert outcome.read > 100


@pytest.mark.parametrize("depth", list(Depth))
@pytest.mark.parametrize("compaction", list(Compaction))
def test_broken_segments_give_a_defect_or_are_read_in_full(depth: Depth, compaction: Compaction) -> None:
    """A scan of broken bytes never raises; without a defect it has read every byte."""
    check_reader(lambda blob: scan_bytes(blob, depth, compaction), SEGMENTS, count=1000)


def test_lies_under_a_true_crc_are_defects_not_crashes() -> None:
    """With the CRC mended over the damage the records themselves are what is parsed and judged."""
    check_reader(
        lambda blob: scan_bytes(blob, Depth.RECORDS, Compaction.NEVER),
        BATCHES,
        count=3000,
        mend=with_true_crc,
    )


def test_iteration_over_broken_segments_raises_only_typed_errors() -> None:
    """Walking batches and their records ends in a typed error where it ends early."""
    outcome = check_reader(iterate_bytes, SEGMENTS, count=2000)

    assert outcome.refused > 500


def test_broken_batches_are_read_in_bounded_memory() -> None:
    """Nothing is allocated by what a batch claims: 300 bytes a byte given, and one read of 64 KiB.

    The factor is what lz4, the most generous codec, may truly expand to (255), and the records made of it.
    """
    check_memory(read_batch, BATCHES, count=400, bytes_per_byte=300, spare_bytes=256 * 1024)
