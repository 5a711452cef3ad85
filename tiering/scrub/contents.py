"""Whether the bytes of a segment's objects are what its record says: the judgement, once they are here.

    .log    every batch under its CRC, the chain of offsets, and the record's counts, ends, epochs and times
    .aux    every section under its CRC, of the record's range; each index within the segment, and in order
    .json   the record itself; after a restore, that of the first generation of the same bytes

Owns these comparisons. Refuses to stop at the first: all that is wrong is said. Sizes and checksums of the
objects as a whole are `look`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rules.identity import ObjectRef
from tiering.log.defects import DefectKind
from tiering.log.errors import LogFormatError
from tiering.log.index import offset_index_defects, time_index_defects
from tiering.log.producer_snapshot import read_producer_snapshot
from tiering.log.segment import SegmentScan
from tiering.log.transaction_index import transaction_index_defects
from tiering.outcome import Problem
from tiering.scrub.damage import Damage, problem
from tiering.segments.codec import decode_segment
from tiering.segments.errors import SegmentMetadataError
from tiering.segments.records import EpochStart, SegmentObjects, SegmentRecord
from tiering.store.aux_file import AuxContents, read_aux


def log_problems(record: SegmentRecord, found: SegmentScan) -> Iterator[Problem]:
    """What a scan of the `.log` says against the record."""
    if found.defect is not None:
        yield found.defect.as_problem()
        return  # the counts are of the batches before it
    stated = {
        "data_end": (record.data_end, found.data_end),
        "record_count": (record.record_count, found.record_count),
        "batch_count": (record.batch_count, found.batch_count),
        "max_timestamp_ms": (record.max_timestamp_ms, found.max_timestamp_ms),
        "leader_epochs": (record.leader_epochs, tuple(EpochStart(*each) for each in found.epochs)),
        "has_txn_index": (record.has_txn_index, found.transactional_batch_count > 0),
    }
    for what, (said, is_so) in stated.items():
        if said != is_so:
            detail = f"{what} is {_plain(said)} by the record, {_plain(is_so)} in the bytes"
            yield problem(Damage.DIFFERS, detail)
    if found.data_end < record.end_offset:
        detail = f"records end at {found.data_end}, and the copy counts up to {record.end_offset}"
        yield Problem(kind=DefectKind.HOLE.value, detail=detail, offset=found.data_end)


def aux_problems(record: SegmentRecord, content: bytes) -> Iterator[Problem]:
    """What is wrong inside an `.aux`."""
    try:
        found = read_aux(content)
    except LogFormatError as broken:
        yield problem(Damage.AUX, str(broken), position=broken.position)
        return
    if (found.base_offset, found.end_offset) != (record.base_offset, record.end_offset):
        yield problem(Damage.AUX, f"it is of offsets [{found.base_offset}, {found.end_offset})")
        return
    for what, defect in side_file_defects(record, found):
        yield problem(Damage.AUX, f"{what}: {defect}", position=defect.position)


def json_problems(record: SegmentRecord, content: bytes) -> Iterator[Problem]:
    """What the `.json` says otherwise than the record does."""
    try:
        found = decode_segment(content, f"{record.key_stem}.json")
    except SegmentMetadataError as broken:
        yield problem(Damage.JSON, str(broken).splitlines()[0])
        return
    wanted, told = _as_copied(record), _as_copied(found)
    if found.generation != record.generation:  # a restore rewrites the record, and never the .json
        wanted, told = _of_any_generation(wanted), _of_any_generation(told)
    names = [name for name in SegmentRecord.__slots__ if getattr(told, name) != getattr(wanted, name)]
    if names:
        yield problem(Damage.JSON, f"it is not the record that the topic holds, in {', '.join(names)}")


def side_file_defects(record: SegmentRecord, aux: AuxContents) -> Iterator[tuple[str, LogFormatError]]:
    """What is wrong with the files in an `.aux` that can be read, each with its name."""
    base, end = record.base_offset, record.data_end
    if aux.offset_index is not None:
        for each in offset_index_defects(
            aux.offset_index, base_offset=base, end_offset=end, log_size_bytes=record.size_bytes
        ):
            yield "offset index", each
    if aux.time_index is not None:
        for each in time_index_defects(aux.time_index, base_offset=base, end_offset=end):
            yield "time index", each
    if aux.transaction_index is not None:
        for each in transaction_index_defects(aux.transaction_index, base_offset=base, end_offset=end):
            yield "transaction index", each
    if aux.producer_snapshot is not None:
        try:
            read_producer_snapshot(aux.producer_snapshot)
        except LogFormatError as broken:
            yield "producer snapshot", broken


def _as_copied(record: SegmentRecord) -> SegmentRecord:
    """Without the reference to the `.json` itself, and without versions: a restore makes new ones."""

    def unversioned(ref: ObjectRef | None) -> ObjectRef | None:
        return None if ref is None else ref._replace(version_id=None)

    objects = SegmentObjects(log=unversioned(record.objects.log), aux=unversioned(record.objects.aux))
    return replace(record, objects=objects)


def _of_any_generation(record: SegmentRecord) -> SegmentRecord:
    """Without what a restore's writer says of itself."""
    return replace(record, generation=0, broker_id=0, leader_epoch=0, event_id="", occurred_at_ms=0)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [tuple(each) for each in value]
    return value
