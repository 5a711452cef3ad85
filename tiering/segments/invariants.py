"""What must hold within one record, whoever wrote it: the first rule that it breaks, in words, or None.

    segment   base_offset < data_end <= end_offset; the counts fit in between; the epochs rise, begin at the
              base, lie below data_end, and none is newer than the writer's; each object's key is the stem and
              its kind; COPY_FINISHED names a .log and an .aux with their checksums, and the .log has the
              segment's size
    log       the lineage rises and is no newer than the claim; gaps are in order and do not overlap; what a
              record is based on is no older than its own claim; earlier claims rise
    both      the log is fully named; the version is not below the reader it asks for

Owns these rules. Refuses to compare records: that is `lifecycle`'s.

Invariant: what breaks a rule is never encoded and never decoded, so that nobody need ask twice.
"""

from __future__ import annotations

import re
from itertools import pairwise

from tiering.log.wire import parse_uuid
from tiering.segments.records import (
    INT64_MAX,
    Claim,
    EpochStart,
    LogId,
    LogRecord,
    SegmentRecord,
    SegmentState,
    WireVersion,
)

_SEGMENT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def segment_problem(record: SegmentRecord) -> str | None:
    """The first rule that a segment record breaks, or None."""
    base, data_end, end = record.base_offset, record.data_end, record.end_offset
    if problem := _identity_problem(record.log, record.topic, record.event_id, record.wire):
        return problem
    if not is_segment_id(record.segment_id):
        return f"segment_id {record.segment_id!r} is not a UUID as uuid.UUID prints it"
    if not base < data_end <= end:
        return f"base_offset {base}, data_end {data_end} and end_offset {end} do not follow each other"
    if not 1 <= record.batch_count <= record.record_count <= data_end - base:
        return (
            f"{record.record_count} records in {record.batch_count} batches do not fit [{base}, {data_end})"
        )
    if problem := epochs_problem(record.leader_epochs):
        return problem
    if record.leader_epochs[0].start_offset != base or record.leader_epochs[-1].start_offset >= data_end:
        return f"leader_epochs {_pairs(record.leader_epochs)} do not lie in [{base}, {data_end})"
    if record.leader_epochs[-1].epoch > record.leader_epoch:
        return (
            f"leader_epochs {_pairs(record.leader_epochs)} are newer than leader_epoch {record.leader_epoch}"
        )
    return _objects_problem(record)


def _objects_problem(record: SegmentRecord) -> str | None:
    objects = record.objects
    if not record.key_stem or record.key_stem.endswith("/"):
        return f"key_stem {record.key_stem!r} names no object"
    for kind, ref in objects.present():
        if ref.key != f"{record.key_stem}.{kind}":
            return f"objects.{kind} has the key {ref.key!r}, not {record.key_stem}.{kind}"
        if not ref.checksum_algorithm or not ref.checksum or ":" in ref.checksum_algorithm:
            return f"objects.{kind} has no checksum of a named algorithm"
    if record.state is SegmentState.COPY_FINISHED and (objects.log is None or objects.aux is None):
        return "COPY_FINISHED without both a .log and an .aux"
    if objects.log is not None and objects.log.size_bytes != record.size_bytes:
        return f"objects.log has {objects.log.size_bytes} bytes, the segment {record.size_bytes}"
    return None


def log_problem(record: LogRecord) -> str | None:
    """The first rule that a log record breaks, or None."""
    if problem := _identity_problem(record.log, record.topic, record.event_id, record.wire):
        return problem
    if problem := epochs_problem(record.leader_epochs):
        return problem
    if record.leader_epochs[-1].epoch > record.claim_epoch:
        return f"leader_epochs {_pairs(record.leader_epochs)} are newer than claim_epoch {record.claim_epoch}"
    for gap in record.gaps:
        if gap.start_offset >= gap.end_offset or not gap.event_id:
            return f"gap [{gap.start_offset}, {gap.end_offset}) is empty or has no event_id"
        if gap.leader_epoch > record.claim_epoch:
            return f"gap [{gap.start_offset}, {gap.end_offset}) is of a later epoch than the claim"
    for before, after in pairwise(record.gaps):
        if before.end_offset > after.start_offset:
            return f"gaps up to {before.end_offset} and from {after.start_offset} are not in order"
    for hold in record.holds:
        if not hold.hold_id or (hold.end_offset is not None and hold.end_offset <= hold.start_offset):
            return f"hold {hold.hold_id!r} is empty or has no id"
    return _claims_problem(record)


def _claims_problem(record: LogRecord) -> str | None:
    place = record.claim_offset
    if place is not None and (record.based_on is None or record.based_on < place):
        return f"based_on {record.based_on} lies before its own claim at {place}"
    latest = Claim(record.claim_epoch, INT64_MAX if place is None else place)
    for before, after in pairwise((*record.earlier_claims, latest)):
        if not (before.epoch < after.epoch and before.offset < after.offset):
            return f"the claim of epoch {before.epoch} at {before.offset} is not before the next"
    return None


def _identity_problem(log: LogId, topic: str, event_id: str, wire: WireVersion) -> str | None:
    if not log.cluster_id or not topic or not event_id:
        return "cluster_id, topic and event_id must not be empty"
    if parse_uuid(log.topic_id) is None:
        return f"topic_id {log.topic_id!r} is not an id as Kafka prints it"
    if not 1 <= wire.min_reader <= wire.version:
        return f"version {wire.version} asks for a reader of version {wire.min_reader}"
    return None


def epochs_problem(epochs: tuple[EpochStart, ...]) -> str | None:
    """Epochs and their starts must rise together, and there must be one."""
    if not epochs:
        return "leader_epochs is empty"
    for before, after in pairwise(epochs):
        if not (before.epoch < after.epoch and before.start_offset < after.start_offset):
            return f"leader_epochs {_pairs(epochs)} do not rise"
    return None


def is_segment_id(text: str) -> bool:
    return _SEGMENT_ID.fullmatch(text) is not None


def _pairs(epochs: tuple[EpochStart, ...]) -> str:
    shown = ", ".join(f"{each.epoch}@{each.start_offset}" for each in epochs[:8])
    return f"[{shown}{', …' if len(epochs) > 8 else ''}]"
