"""Metadata records for tests: one of each to start from, and strategies for any that may be written."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tiering.segments.records import (
    INT32_MAX,
    INT64_MAX,
    Claim,
    EpochStart,
    Gap,
    GapCause,
    HeldVersions,
    Hold,
    Json,
    LogId,
    LogRecord,
    ObjectRef,
    ReleasedHold,
    SegmentId,
    SegmentObjects,
    SegmentRecord,
    SegmentState,
    WireVersion,
)

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
LOG = LogId(CLUSTER_ID, "CgkTzsXgRlOwPTRJHnL2yg", 3)
OTHER_LOG = LogId(CLUSTER_ID, "3cVtEW_RTm2TSqxDBnRsEA", 0)


def segment_id(number: int) -> SegmentId:
    return SegmentId(str(uuid.UUID(int=(0xABCDEF << 96) + number, version=4)))


def objects_of(stem: str, size_bytes: int, version: str = "v1") -> SegmentObjects:
    def ref(kind: str, size: int) -> ObjectRef:
        return ObjectRef(f"{stem}.{kind}", size, "CRC64NVME", "HKKEIBrkMts=", f"{version}-{kind}")

    return SegmentObjects(log=ref("log", size_bytes), aux=ref("aux", 77), json=ref("json", 900))


def segment(
    number: int,
    base: int,
    end: int,
    *,
    epochs: tuple[tuple[int, int], ...] = (),
    leader_epoch: int | None = None,
    state: SegmentState = SegmentState.COPY_FINISHED,
    log: LogId = LOG,
    **fields: Any,
) -> SegmentRecord:
    """A whole and valid record; by default finished, of one epoch, 0."""
    pairs = tuple(EpochStart(*pair) for pair in epochs) or (EpochStart(leader_epoch or 0, base),)
    identity = segment_id(number)
    stem = f"seawall/{log.cluster_id}/{log.topic_id}/{log.partition}/{base:020d}-{identity}"
    record = SegmentRecord(
        log=log,
        topic="orders",
        segment_id=identity,
        base_offset=base,
        end_offset=end,
        data_end=end,
        leader_epochs=pairs,
        max_timestamp_ms=1_700_000_000_000 + end,
        record_count=end - base,
        batch_count=1,
        size_bytes=100 * (end - base),
        has_txn_index=False,
        key_stem=stem,
        objects=SegmentObjects(),
        broker_id=1,
        leader_epoch=pairs[-1].epoch if leader_epoch is None else leader_epoch,
        state=state,
        generation=0,
        event_id=f"event-{number}-{state.value}",
        occurred_at_ms=1_700_000_000_000,
    )
    if state is not SegmentState.COPY_STARTED:
        record = replace(record, objects=objects_of(stem, record.size_bytes))
    return replace(record, **fields)


def log_record(
    claim_epoch: int,
    *,
    epochs: tuple[tuple[int, int], ...] = ((0, 0),),
    log: LogId = LOG,
    **fields: Any,
) -> LogRecord:
    """A whole and valid record of a log; by default a first claim of a log tiered from its beginning."""
    record = LogRecord(
        log=log,
        topic="orders",
        broker_id=1,
        claim_epoch=claim_epoch,
        claim_offset=None,
        earlier_claims=(),
        leader_epochs=tuple(EpochStart(*pair) for pair in epochs),
        log_start=0,
        first_tiered_offset=0,
        gaps=(),
        generation=0,
        keep_until_ms=None,
        holds=(),
        topic_deleted_at_ms=None,
        based_on=None,
        event_id=f"claim-{claim_epoch}",
        occurred_at_ms=1_700_000_000_000,
    )
    return replace(record, **fields)


def gap(start: int, end: int, leader_epoch: int = 0) -> Gap:
    return Gap(
        start_offset=start,
        end_offset=end,
        cause=GapCause.RETENTION_OVERTOOK,
        leader_epoch=leader_epoch,
        event_id=f"gap-{start}",
        recorded_at_ms=1_700_000_000_000,
    )


TEXTS = st.text(min_size=1, max_size=20)
ALGORITHMS = TEXTS.filter(lambda name: ":" not in name)
INT32 = st.integers(0, INT32_MAX)
INT64 = st.integers(0, INT64_MAX)
JSON_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
# Names that no version of ours will ever use, so that what is drawn is really not recognised.
UNRECOGNISED = st.dictionaries(st.text(max_size=5).map(lambda name: f"x-{name}"), JSON_VALUES, max_size=3)
TOPIC_IDS = st.sampled_from([LOG.topic_id, OTHER_LOG.topic_id, "A" * 22])
LOG_IDS = st.builds(LogId, TEXTS, TOPIC_IDS, INT32)
WIRE_VERSIONS = st.integers(1, 5).map(lambda version: WireVersion(version, 1))


@st.composite
def rising(draw: st.DrawFn, first: int, last: int, max_size: int = 4) -> list[int]:
    """`first` and some more numbers up to and including `last`, rising."""
    more = draw(st.sets(st.integers(first, last), max_size=max_size))
    return sorted(more | {first})


@st.composite
def object_sets(draw: st.DrawFn, stem: str, size_bytes: int, *, finished: bool) -> SegmentObjects:
    def ref(kind: str, size: int) -> ObjectRef:
        return ObjectRef(f"{stem}.{kind}", size, draw(ALGORITHMS), draw(TEXTS), draw(st.none() | TEXTS))

    refs = {}
    for kind in ("log", "aux", "json"):
        if (finished and kind != "json") or draw(st.booleans()):
            refs[kind] = ref(kind, size_bytes if kind == "log" else draw(INT64))
    return SegmentObjects(**refs)


@st.composite
def segment_records(draw: st.DrawFn) -> SegmentRecord:
    """Any segment record that may be written."""
    base = draw(st.integers(0, INT64_MAX - 2))
    data_end = draw(st.integers(base + 1, min(base + 2**40, INT64_MAX)))
    record_count = draw(st.integers(1, data_end - base))
    starts = draw(rising(base, data_end - 1))
    epochs = sorted(draw(st.sets(INT32, min_size=len(starts), max_size=len(starts))))
    stem, size_bytes, state = draw(TEXTS) + "/s", draw(INT64), draw(st.sampled_from(SegmentState))
    return SegmentRecord(
        log=draw(LOG_IDS),
        topic=draw(TEXTS),
        segment_id=SegmentId(str(draw(st.uuids()))),
        base_offset=base,
        end_offset=draw(st.integers(data_end, INT64_MAX)),
        data_end=data_end,
        leader_epochs=tuple(EpochStart(*pair) for pair in zip(epochs, starts, strict=True)),
        max_timestamp_ms=draw(st.integers(-1, INT64_MAX)),
        record_count=record_count,
        batch_count=draw(st.integers(1, record_count)),
        size_bytes=size_bytes,
        has_txn_index=draw(st.booleans()),
        key_stem=stem,
        objects=draw(object_sets(stem, size_bytes, finished=state is SegmentState.COPY_FINISHED)),
        broker_id=draw(INT32),
        leader_epoch=draw(st.integers(epochs[-1], INT32_MAX)),
        state=state,
        generation=draw(INT32),
        event_id=draw(TEXTS),
        occurred_at_ms=draw(INT64),
        wire=draw(WIRE_VERSIONS),
        unrecognised=draw(UNRECOGNISED),
    )


@st.composite
def gap_lists(draw: st.DrawFn, claim_epoch: int) -> tuple[Gap, ...]:
    edges = sorted(draw(st.sets(INT64, max_size=6)))
    return tuple(
        Gap(
            start_offset=start,
            end_offset=end,
            cause=draw(st.sampled_from(GapCause)),
            leader_epoch=draw(st.integers(0, claim_epoch)),
            event_id=draw(TEXTS),
            recorded_at_ms=draw(INT64),
            unrecognised=draw(UNRECOGNISED),
        )
        for start, end in zip(edges[::2], edges[1::2], strict=False)
    )


HOLDS = st.builds(
    lambda start, length, **rest: Hold(
        start_offset=start, end_offset=None if length is None else start + length, **rest
    ),
    st.integers(0, 2**40),
    st.none() | st.integers(1, 2**40),
    hold_id=TEXTS,
    reason=st.text(max_size=20),
    placed_by=st.text(max_size=20),
    placed_at_ms=INT64,
    finding_id=st.none() | TEXTS,
    versions=st.none()
    | st.builds(
        HeldVersions,
        start_offset=INT64,
        end_offset=st.none() | INT64,
        held=INT64,
        missing=INT64,
        at_ms=INT64,
        trouble=st.none() | TEXTS,
        unrecognised=UNRECOGNISED,
    ),
    unrecognised=UNRECOGNISED,
)
RELEASED_HOLDS = st.builds(
    ReleasedHold,
    hold_id=TEXTS,
    released_by=st.text(max_size=20),
    reason=st.text(max_size=20),
    released_at_ms=INT64,
    unrecognised=UNRECOGNISED,
)


@st.composite
def log_records(draw: st.DrawFn) -> LogRecord:
    """Any record of a log that may be written."""
    claim_epoch = draw(INT32)
    starts = draw(rising(0, INT64_MAX))
    epochs = draw(st.sets(st.integers(0, claim_epoch), min_size=1, max_size=len(starts)).map(sorted))
    earlier = sorted(draw(st.sets(st.integers(0, claim_epoch - 1), max_size=3))) if claim_epoch else []
    place = draw(st.none() | st.integers(1000, 2**40))
    return LogRecord(
        log=draw(LOG_IDS),
        topic=draw(TEXTS),
        broker_id=draw(INT32),
        claim_epoch=claim_epoch,
        claim_offset=place,
        earlier_claims=tuple(Claim(epoch, 10 * number) for number, epoch in enumerate(earlier)),
        leader_epochs=tuple(EpochStart(*pair) for pair in zip(epochs, starts, strict=False)),
        log_start=draw(INT64),
        first_tiered_offset=draw(INT64),
        gaps=draw(gap_lists(claim_epoch)),
        generation=draw(INT32),
        keep_until_ms=draw(st.none() | INT64),
        holds=tuple(draw(st.lists(HOLDS, max_size=2))),
        topic_deleted_at_ms=draw(st.none() | INT64),
        based_on=draw(st.none() | INT64) if place is None else draw(st.integers(place, INT64_MAX)),
        event_id=draw(TEXTS),
        occurred_at_ms=draw(INT64),
        released_holds=tuple(draw(st.lists(RELEASED_HOLDS, max_size=2))),
        wire=draw(WIRE_VERSIONS),
        unrecognised=draw(UNRECOGNISED),
    )
