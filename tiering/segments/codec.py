"""Metadata records as JSON, versioned: the fields in docs/FORMATS.md, names sorted, no blanks, ASCII.

    kind        "segment" or "log"
    version     in which the record was written
    min_reader  the least version of a reader that understands it
    state       (segments) where the copy stands in its life

    ~seal       last of all: `seal`

These keep their meaning in every version. A reader of version 1 reads any record whose `min_reader` is
1, and what it does not know in it stays in the record and is written out again; a record that asks for more
is RecordTooNew.

Refuses: whatever breaks the types here or a rule of `invariants`, on reading and on writing, and on reading a
broken seal.

Invariant: decode(encode(r)) == r, and equal records have equal bytes, so that their digests are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from tiering.segments.errors import RecordInvalid, RecordMalformed, RecordTooNew, SegmentMetadataError
from tiering.segments.hold_members import hold_members, read_hold, read_released, released_members
from tiering.segments.invariants import log_problem, segment_problem
from tiering.segments.json_fields import Fields, canonical, merged, parse_object
from tiering.segments.keys import RecordKey, log_key, segment_key
from tiering.segments.records import (
    CURRENT,
    INT32_MAX,
    INT64_MAX,
    NO_TIMESTAMP_MS,
    Claim,
    EpochStart,
    Gap,
    GapCause,
    Json,
    LogId,
    LogRecord,
    ObjectRef,
    SegmentId,
    SegmentObjects,
    SegmentRecord,
    SegmentState,
    WireVersion,
)
from tiering.segments.seal import NAME, broken, row_of, sealed

SEGMENT_KIND = "segment"
LOG_KIND = "log"
OBJECT_KINDS = ("aux", "json", "log")
_GAP_CAUSES = frozenset(each.value for each in GapCause)

R = TypeVar("R", SegmentRecord, LogRecord)


def encode_segment(record: SegmentRecord) -> bytes:
    """The value of a segment's record."""
    what = f"the record of segment {record.segment_id}"
    if problem := segment_problem(record):
        raise RecordInvalid(what=what, why=problem)
    record = replace(record, unrecognised=_still_in_place(record))
    objects = {
        kind: {
            "checksum": f"{ref.checksum_algorithm}:{ref.checksum}",
            "size_bytes": ref.size_bytes,
            "version_id": ref.version_id,
        }
        for kind, ref in record.objects.present()
    }
    known = {
        **_identity(SEGMENT_KIND, record),
        "base_offset": record.base_offset,
        "batch_count": record.batch_count,
        "broker_id": record.broker_id,
        "data_end": record.data_end,
        "end_offset": record.end_offset,
        "generation": record.generation,
        "has_txn_index": record.has_txn_index,
        "key_stem": record.key_stem,
        "leader_epoch": record.leader_epoch,
        "leader_epochs": [list(each) for each in record.leader_epochs],
        "max_timestamp_ms": record.max_timestamp_ms,
        "objects": objects,
        "record_count": record.record_count,
        "segment_id": record.segment_id,
        "size_bytes": record.size_bytes,
        "state": record.state.value,
    }
    key = segment_key(record.log, record.segment_id)
    return _checked(record, merged(known, record.unrecognised), decode_segment, key, row_of(record))


def encode_log(record: LogRecord) -> bytes:
    """The value of a log's record."""
    what = f"the record of log {record.log.topic_id}:{record.log.partition}"
    if problem := log_problem(record):
        raise RecordInvalid(what=what, why=problem)
    known = {
        **_identity(LOG_KIND, record),
        "based_on": record.based_on,
        "broker_id": record.broker_id,
        "claim_epoch": record.claim_epoch,
        "claim_offset": record.claim_offset,
        "earlier_claims": [list(each) for each in record.earlier_claims],
        "first_tiered_offset": record.first_tiered_offset,
        "gaps": [_gap_members(each) for each in record.gaps],
        "generation": record.generation,
        "holds": [hold_members(each) for each in record.holds],
        "keep_until_ms": record.keep_until_ms,
        "leader_epochs": [list(each) for each in record.leader_epochs],
        "log_start": record.log_start,
        "topic_deleted_at_ms": record.topic_deleted_at_ms,
        **released_members(record.released_holds),
    }
    return _checked(record, merged(known, record.unrecognised), decode_log, log_key(record.log), b"")


def _checked(
    record: R, members: dict[str, Json], read: Callable[[bytes, str], R], key: bytes, row: bytes
) -> bytes:
    """The members as bytes under their seal, once they were read back and found to be the same record."""
    what = f"the record of {key.decode('ascii')}"
    try:
        value = sealed(canonical(members), key, record.log.cluster_id, row)
        again = read(value, what)
    except (SegmentMetadataError, ValueError, TypeError, RecursionError) as refused:
        raise RecordInvalid(what=what, why=f"it could not be read back: {refused}") from refused
    if again != record:
        raise RecordInvalid(what=what, why="it would be read back as another record")
    return value


def _still_in_place(record: SegmentRecord) -> Mapping[str, Json]:
    """What was not understood, without what stood in an object that the record no longer has."""
    strange = record.unrecognised.get("objects")
    if not isinstance(strange, dict):
        return record.unrecognised
    present = {kind for kind, _ in record.objects.present()}
    kept = {name: each for name, each in strange.items() if name in present or name not in OBJECT_KINDS}
    rest = {name: each for name, each in record.unrecognised.items() if name != "objects"}
    return rest | {"objects": kept} if kept else rest


def decode(key: RecordKey, value: bytes) -> SegmentRecord | LogRecord:
    """The record that `value` is, which must be of the log and segment that its key names."""
    what = f"the record of {key.topic_id}:{key.partition}"
    if key.segment_id is None:
        record: SegmentRecord | LogRecord = decode_log(value, what)
    else:
        what = f"{what}:{key.segment_id}"
        record = decode_segment(value, what)
        if record.segment_id != key.segment_id:
            raise RecordMalformed(what=what, why=f"names segment {record.segment_id}")
    if (record.log.topic_id, record.log.partition) != (key.topic_id, key.partition):
        raise RecordMalformed(what=what, why=f"names log {record.log.topic_id}:{record.log.partition}")
    return record


def decode_segment(value: bytes, what: str = "a segment's record") -> SegmentRecord:
    """A segment's record: a value of the topic, or a `.json` object."""
    fields, wire = _open(value, SEGMENT_KIND, what)
    key_stem = fields.text("key_stem")
    objects, unknown_objects = _objects(fields.inner("objects"), key_stem)
    record = SegmentRecord(
        log=_log_id(fields),
        topic=fields.text("topic"),
        segment_id=SegmentId(fields.text("segment_id")),
        base_offset=fields.integer("base_offset"),
        end_offset=fields.integer("end_offset"),
        data_end=fields.integer("data_end"),
        leader_epochs=_epochs(fields),
        max_timestamp_ms=fields.integer("max_timestamp_ms", minimum=NO_TIMESTAMP_MS),
        record_count=fields.integer("record_count"),
        batch_count=fields.integer("batch_count"),
        size_bytes=fields.integer("size_bytes"),
        has_txn_index=fields.truth("has_txn_index"),
        key_stem=key_stem,
        objects=objects,
        broker_id=fields.integer("broker_id", maximum=INT32_MAX),
        leader_epoch=fields.integer("leader_epoch", maximum=INT32_MAX),
        state=_state(fields),
        generation=fields.integer("generation", maximum=INT32_MAX),
        event_id=fields.text("event_id"),
        occurred_at_ms=fields.integer("occurred_at_ms"),
        wire=wire,
        unrecognised=fields.left() | ({"objects": unknown_objects} if unknown_objects else {}),
    )
    if problem := segment_problem(record):
        raise fields.wrong(problem)
    if broken(value, segment_key(record.log, record.segment_id), record.log.cluster_id, row_of(record)):
        raise fields.wrong("its seal is broken")
    return record


def decode_log(value: bytes, what: str = "a log's record") -> LogRecord:
    """A log's record."""
    fields, wire = _open(value, LOG_KIND, what)
    record = LogRecord(
        log=_log_id(fields),
        topic=fields.text("topic"),
        broker_id=fields.integer("broker_id", maximum=INT32_MAX),
        claim_epoch=fields.integer("claim_epoch", maximum=INT32_MAX),
        claim_offset=fields.optional_integer("claim_offset"),
        earlier_claims=tuple(Claim(*pair) for pair in fields.pairs("earlier_claims", (INT32_MAX, INT64_MAX))),
        leader_epochs=_epochs(fields),
        log_start=fields.integer("log_start"),
        first_tiered_offset=fields.integer("first_tiered_offset"),
        gaps=tuple(_gap(Fields(f"{what}, gap", each)) for each in fields.items("gaps")),
        generation=fields.integer("generation", maximum=INT32_MAX),
        keep_until_ms=fields.optional_integer("keep_until_ms"),
        holds=tuple(read_hold(Fields(f"{what}, hold", each)) for each in fields.items("holds")),
        topic_deleted_at_ms=fields.optional_integer("topic_deleted_at_ms"),
        based_on=fields.optional_integer("based_on"),
        event_id=fields.text("event_id"),
        occurred_at_ms=fields.integer("occurred_at_ms"),
        released_holds=read_released(fields),
        wire=wire,
        unrecognised=fields.left(),
    )
    if problem := log_problem(record):
        raise fields.wrong(problem)
    if broken(value, log_key(record.log), record.log.cluster_id):
        raise fields.wrong("its seal is broken")
    return record


def _open(value: bytes, kind: str, what: str) -> tuple[Fields, WireVersion]:
    """The fields of a record that this reader may read."""
    fields = Fields(what, parse_object(value, what))
    fields.text(NAME)
    found = fields.text("kind")
    if found != kind:
        raise fields.wrong(f"is of the kind {found[:40]!r}, not {kind!r}")
    wire = WireVersion(fields.integer("version", minimum=1), fields.integer("min_reader", minimum=1))
    if wire.min_reader > wire.version:
        raise fields.wrong(f"version {wire.version} asks for a reader of version {wire.min_reader}")
    if wire.min_reader > CURRENT.version:
        raise RecordTooNew(
            what=what, version=wire.version, min_reader=wire.min_reader, supported=CURRENT.version
        )
    return fields, wire


def _identity(kind: str, record: SegmentRecord | LogRecord) -> dict[str, Json]:
    return {
        "kind": kind,
        "version": record.wire.version,
        "min_reader": record.wire.min_reader,
        "cluster_id": record.log.cluster_id,
        "topic_id": record.log.topic_id,
        "partition": record.log.partition,
        "topic": record.topic,
        "event_id": record.event_id,
        "occurred_at_ms": record.occurred_at_ms,
    }


def _log_id(fields: Fields) -> LogId:
    return LogId(
        cluster_id=fields.text("cluster_id"),
        topic_id=fields.text("topic_id"),
        partition=fields.integer("partition", maximum=INT32_MAX),
    )


def _epochs(fields: Fields) -> tuple[EpochStart, ...]:
    return tuple(EpochStart(*pair) for pair in fields.pairs("leader_epochs", (INT32_MAX, INT64_MAX)))


def _state(fields: Fields) -> SegmentState:
    state = fields.text("state")
    if state not in SegmentState.__members__:
        raise fields.wrong(f"state is {state[:40]!r}, which is none")
    return SegmentState(state)


def _objects(fields: Fields, key_stem: str) -> tuple[SegmentObjects, dict[str, Json]]:
    """The objects that are known, and what stands in them that is not."""
    refs: dict[str, ObjectRef] = {}
    unknown: dict[str, Json] = {}
    for kind in OBJECT_KINDS:
        inner = fields.optional_inner(kind)
        if inner is None:
            continue
        algorithm, _, checksum = inner.text("checksum").partition(":")
        refs[kind] = ObjectRef(
            key=f"{key_stem}.{kind}",
            size_bytes=inner.integer("size_bytes"),
            checksum_algorithm=algorithm,
            checksum=checksum,
            version_id=inner.optional_text("version_id"),
        )
        if inner.left():
            unknown[kind] = inner.left()
    return SegmentObjects(**refs), unknown | fields.left()


def _gap_members(gap: Gap) -> dict[str, Json]:
    known = {
        "cause": gap.cause.value,
        "end_offset": gap.end_offset,
        "event_id": gap.event_id,
        "leader_epoch": gap.leader_epoch,
        "recorded_at_ms": gap.recorded_at_ms,
        "start_offset": gap.start_offset,
    }
    if gap.cause is GapCause.UNKNOWN and "cause" in gap.unrecognised:
        known.pop("cause")
    return merged(known, gap.unrecognised)


def _gap(fields: Fields) -> Gap:
    cause = fields.text("cause")
    # A cause that a newer writer knows is still a gap; its name is kept for those who know it.
    understood = cause in _GAP_CAUSES
    return Gap(
        start_offset=fields.integer("start_offset"),
        end_offset=fields.integer("end_offset"),
        cause=GapCause(cause) if understood else GapCause.UNKNOWN,
        leader_epoch=fields.integer("leader_epoch", maximum=INT32_MAX),
        event_id=fields.text("event_id"),
        recorded_at_ms=fields.integer("recorded_at_ms"),
        unrecognised=fields.left() | ({} if understood else {"cause": cause}),
    )
