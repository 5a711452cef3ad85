"""Whether a batch's header tells the truth about its records.

The CRC says that the bytes are what somebody wrote; it does not say that what they wrote is true. A header
whose count, last offset or time is a lie makes a broker index, expire or skip the wrong thing.
"""

from __future__ import annotations

from tiering.log.batch import NO_TIMESTAMP, BatchHeader, read_header, read_records
from tiering.log.defects import Defect, DefectKind
from tiering.log.errors import LogFormatError, RecordCountMismatch


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
