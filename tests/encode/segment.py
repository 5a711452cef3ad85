"""Writes whole segment files out of batches, for tests that need a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.encode.record_batch import PlainRecord, encode_batch

T0_MS = 1_700_000_000_000


def plain_records(start: int, count: int, *, value: bytes = b"v", step_ms: int = 1) -> list[PlainRecord]:
    """`count` records from offset `start` on, a millisecond apart."""
    return [
        PlainRecord(offset=o, timestamp_ms=T0_MS + o * step_ms, key=b"k%d" % o, value=value)
        for o in range(start, start + count)
    ]


def batches(
    start: int, *, count: int, records_each: int = 3, codec: str = "none", leader_epoch: int = 0
) -> list[bytes]:
    """`count` batches from offset `start` on, without a gap."""
    return [
        encode_batch(plain_records(base, records_each), codec=codec, leader_epoch=leader_epoch)
        for base in range(start, start + count * records_each, records_each)
    ]


def write_segment(folder: Path, base_offset: int, content: Iterable[bytes]) -> Path:
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(content))
    return path
