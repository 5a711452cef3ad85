"""Whether a batch's header tells the truth about its records.

The CRC says that the bytes are what somebody wrote; it does not say that what they wrote is true. A header
whose count, last offset or time is a lie makes a broker index, expire or skip the wrong thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tiering.log.batch import NO_TIMESTAMP, BatchHeader, read_header, read_records
from tiering.log.defects import Defect, DefectKind
from tiering.log.errors import LogFormatError, RecordCountMismatch
from tiering.log.record_columns import RecordColumns, are_worth_it, read_record_columns

if TYPE_CHECKING:
    from tiering.log.columns import Bools, HeaderBlock, Ints


def suspects(
    buffer: memoryview, bounds: list[int], block: HeaderBlock, *, offsets_exact: bool
) -> Iterable[int]:
    """Which batches of a window `check_records` must look at: all others it would find nothing wrong with."""
    if not are_worth_it(len(block)):
        return range(len(block))
    return _suspects(buffer, bounds, block, offsets_exact=offsets_exact)


def _suspects(
    buffer: memoryview, bounds: list[int], block: HeaderBlock, *, offsets_exact: bool
) -> Iterator[int]:
    first = 0
    for columns in read_record_columns(buffer, bounds):
        rows = slice(first, first + len(columns))
        good = columns.is_sound & _offsets_hold(
            columns, block.base_offset[rows], block.last_offset[rows], offsets_exact=offsets_exact
        )
        good &= _times_hold(columns, block.max_timestamp_ms[rows])
        yield from (first + np.flatnonzero(~good)).tolist()
        first += len(columns)


def _offsets_hold(
    columns: RecordColumns, base_offset: Ints, last_offset: Ints, *, offsets_exact: bool
) -> Bools:
    counts = np.diff(columns.starts)
    which = np.repeat(np.arange(len(columns)), counts)
    before = np.concatenate(([0], columns.offset[:-1]))[: len(columns.offset)]
    filled = counts > 0
    before[columns.starts[:-1][filled]] = base_offset[filled] - 1
    step = columns.offset - before
    wrong = step != 1 if offsets_exact else step < 1
    reached = base_offset - 1
    reached[filled] = columns.offset[columns.starts[1:][filled] - 1]
    holds: Bools = reached == last_offset if offsets_exact else reached <= last_offset
    holds[which[wrong]] = False
    return holds


def _times_hold(columns: RecordColumns, max_timestamp_ms: Ints) -> Bools:
    """Of a batch without records nothing is asked."""
    filled = np.diff(columns.starts) > 0
    holds: Bools = ~filled
    if filled.any():
        latest = np.maximum.reduceat(columns.timestamp_ms, columns.starts[:-1][filled])
        holds[filled] = np.maximum(latest, NO_TIMESTAMP) == max_timestamp_ms[filled]
    return holds


def check_records(batch: memoryview, position: int, *, offsets_exact: bool) -> Defect | None:
    """Parse every record of `batch`, which stands at `position` of its file, and compare with the header.

    `offsets_exact`: the log was never compacted, so that offsets run from the first to the last.
    """
    header = read_header(batch)
    last_offset = header.base_offset - 1
    max_timestamp_ms = NO_TIMESTAMP
    gap_at: int | None = None
    try:
        for record in read_records(batch, header):
            if record.offset <= last_offset:
                return _defect(
                    DefectKind.OFFSET_BACK, header, position, f"record {record.offset} follows {last_offset}"
                )
            if gap_at is None and record.offset != last_offset + 1:
                gap_at = last_offset + 1
            last_offset = record.offset
            if record.timestamp_ms > max_timestamp_ms:
                max_timestamp_ms = record.timestamp_ms
    except RecordCountMismatch as exc:
        return _defect(DefectKind.RECORD_COUNT, header, position, str(exc))
    except LogFormatError as exc:
        return _defect(DefectKind.BAD_RECORD, header, position, str(exc))
    if last_offset > header.last_offset or (offsets_exact and last_offset != header.last_offset):
        return _defect(
            DefectKind.LAST_OFFSET_DELTA,
            header,
            position,
            f"the header says the last offset is {header.last_offset}, the last record has {last_offset}",
        )
    if offsets_exact and gap_at is not None:
        return _defect(DefectKind.HOLE, header, position, f"offset {gap_at} is missing inside the batch")
    if header.record_count and max_timestamp_ms != header.max_timestamp_ms:
        return _defect(
            DefectKind.MAX_TIMESTAMP,
            header,
            position,
            f"the header says {header.max_timestamp_ms} ms, the latest record has {max_timestamp_ms} ms",
        )
    return None


def _defect(kind: DefectKind, header: BatchHeader, position: int, detail: str) -> Defect:
    return Defect(kind=kind, position=position, offset=header.base_offset, detail=detail)
