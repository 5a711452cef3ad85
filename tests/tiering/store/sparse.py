"""Segments of any size that take no room: batches of zeros, which a file system does not have to keep."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from tests.encode.record_batch import encode_batch
from tiering.log.batch import HEADER_BYTES

BATCH_BYTES = 1024 * 1024
BATCH_BYTES_MIN = HEADER_BYTES + 7


def write_sparse_segment(path: Path, size_bytes: int) -> Path:
    """A sound segment of exactly `size_bytes`: batches of 1 MiB and a last one of what is left."""
    sizes = [BATCH_BYTES] * (size_bytes // BATCH_BYTES)
    if left_bytes := size_bytes - sum(sizes):
        sizes.append(left_bytes)
        if left_bytes < BATCH_BYTES_MIN:
            sizes[-2:] = [BATCH_BYTES - 4096, left_bytes + 4096]
    heads = {size: _zeros(size) for size in set(sizes)}
    with path.open("wb") as file:
        for offset, size in enumerate(sizes):
            # The base offset lies outside the batch's CRC: only those 8 bytes differ from batch to batch.
            file.write(struct.pack(">q", offset) + heads[size][8:])
            file.seek(size - HEADER_BYTES, os.SEEK_CUR)
        file.truncate(size_bytes)
    return path


def _zeros(size_bytes: int) -> bytes:
    """The header of a batch of one record, whose payload is zeros."""
    payload = bytes(size_bytes - HEADER_BYTES)
    whole = encode_batch(
        [], base_offset=0, record_count=1, payload=payload, base_timestamp_ms=0, max_timestamp_ms=0
    )
    assert len(whole) == size_bytes
    return whole[:HEADER_BYTES]
