"""Tells the topic of metadata again from the bucket alone, and compares it with the topic that is there.

Each copy left a `.json` beside its bytes, written last: its COPY_FINISHED record, all but the reference to
the `.json` itself. Put that in, and it is what the topic holds, to the byte.

    unconfirmed      its copy was begun in the topic and never finished: an attempt that failed, or goes on
    not_in_topic     the topic knows nothing of the segment
    not_followed     the topic holds the copy, and no table follows it: an orphan
    deleting         the topic says that it is being deleted, or was, and the .json lives
    other_generation the topic knows a restore since; a .json is of the first generation for ever
    other_content    the two say something else of the same copy
    json_deleted     finished in the topic, and the .json lies under a delete marker
    json_missing     finished in the topic, and there never was a .json
    json_unreadable  no record, or one of another segment than its key names
    object_missing   a .log or .aux that the record names is not there as that version, in that size

What the bucket cannot tell: a log's own record. Its lineage and its end can be seen in its segments; its
claims, gaps, holds, an advanced start and what is to be kept cannot. Gaps have to be recorded anew and holds
placed anew, once the leaders' agents have claimed their logs again. Copies that began and did not end, and
deletions, leave no `.json`, and a topic made anew need not know them.

Owns the comparison. Refuses to ask a store: `bucket_listing` brings what is there.

Invariant: a segment that is told again without a difference has the same bytes in the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from rules.identity import LogId, ObjectRef
from tiering.segments.codec import decode_segment, encode_segment
from tiering.segments.errors import SegmentMetadataError
from tiering.segments.keys import segment_key
from tiering.segments.records import SegmentId, SegmentRecord, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.table import ReferenceTable
from tiering.segments.view import SegmentSummary
from tiering.store.interface import CHECKSUM_ALGORITHM, checksum_text, crc64
from tiering.store.keys import ObjectKind, SegmentKey

FIELDS_NAMED_MAX = 8


class Kind(str, Enum):
    """Stable, for programs. See the module."""

    UNCONFIRMED = "unconfirmed"
    NOT_IN_TOPIC = "not_in_topic"
    NOT_FOLLOWED = "not_followed"
    DELETING = "deleting"
    OTHER_GENERATION = "other_generation"
    OTHER_CONTENT = "other_content"
    JSON_DELETED = "json_deleted"
    JSON_MISSING = "json_missing"
    JSON_UNREADABLE = "json_unreadable"
    OBJECT_MISSING = "object_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that the bucket and the topic do not say alike."""

    kind: Kind
    log: LogId
    segment_id: SegmentId
    base_offset: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """The live version of an object."""

    version_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """What the bucket has of one segment. `json` is the live `.json`'s content; None if there is none."""

    key: SegmentKey
    stem: str
    live: dict[ObjectKind, LiveObject]
    has_deleted_json: bool
    json: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """A record as the topic should hold it. `absent`: objects it names that are not there so."""

    record: SegmentRecord
    key: bytes
    value: bytes
    absent: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What a comparison came to. `equal` segments have the same bytes in both."""

    equal: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return not self.differences


def retell(stored: StoredSegment) -> Retold | Difference | None:
    """The record of one segment from its `.json`; None where there is no live one."""
    if stored.json is None:
        return None
    name = stored.key
    try:
        record = decode_segment(stored.json, f"{stored.stem}.json")
    except SegmentMetadataError as refused:
        return _difference(Kind.JSON_UNREADABLE, name, str(refused))
    named = (record.log, record.segment_id, record.base_offset, record.key_stem)
    if named != (name.log, name.segment_id, name.base_offset, stored.stem):
        return _difference(Kind.JSON_UNREADABLE, name, f"it is the record of {record.key_stem}")
    itself = ObjectRef(
        f"{stored.stem}.json",
        len(stored.json),
        CHECKSUM_ALGORITHM,
        checksum_text(crc64(stored.json, 0)),
        stored.live[ObjectKind.JSON].version_id,
    )
    record = replace(record, objects=replace(record.objects, json=itself))
    absent = (
        f".{kind} version {ref.version_id} of {ref.size_bytes} bytes"
        for kind, ref in record.objects.present()
        if stored.live.get(ObjectKind(kind))
        != LiveObject(version_id=ref.version_id or "null", size_bytes=ref.size_bytes)
    )
    key = segment_key(record.log, record.segment_id)
    return Retold(record=record, key=key, value=encode_segment(record), absent=tuple(absent))


def retell_all(stored: Iterable[StoredSegment]) -> Iterator[Retold | Difference]:
    """What a topic made anew is to hold, in the order of the listing, and what cannot be told.

    Appended to an empty topic, log by log, it gives each agent's table all finished copies again.
    """
    for each in stored:
        found = retell(each)
        if found is not None:
            yield found


def compare(stored: Iterable[StoredSegment], table: ReferenceTable, logs: Iterable[LogId]) -> Comparison:
    """Hold the bucket against the topic, for these logs; `stored` is a listing of all of them, and no other.

    List after the replay that made the table: what is copied in between is then in the bucket and not in the
    table (not_in_topic, unconfirmed: look again), and never the other way round.
    """
    comparison = Comparison()
    wanted = set(logs)
    seen: dict[LogId, set[str]] = {log: set() for log in wanted}
    deleted: dict[LogId, set[str]] = {log: set() for log in wanted}
    summaries: dict[LogId, dict[SegmentId, SegmentSummary]] = {}
    for each in stored:
        log = each.key.log
        if log not in summaries:
            view = table.view(log)
            summaries = {log: {} if view is None else {one.segment_id: one for one in view.segments()}}
        if each.json is not None:
            seen.setdefault(log, set()).add(each.key.segment_id)
        elif each.has_deleted_json:
            deleted.setdefault(log, set()).add(each.key.segment_id)
        found = retell(each)
        if isinstance(found, Difference):
            comparison.differences.append(found)
        elif found is not None:
            summary = summaries[log].get(found.record.segment_id)
            against = list(_against_topic(each.key, found, summary, table))
            comparison.differences += against
            comparison.equal += not against
    for log in sorted(seen):
        comparison.differences += _without_json(log, table, seen[log], deleted.get(log, set()))
    return comparison


def _against_topic(
    name: SegmentKey, found: Retold, summary: SegmentSummary | None, table: ReferenceTable
) -> Iterator[Difference]:
    if found.absent:
        yield _difference(Kind.OBJECT_MISSING, name, ", ".join(found.absent))
    if summary is None:
        yield _difference(Kind.NOT_IN_TOPIC, name, "the topic holds nothing of it")
    elif summary.standing is not Standing.FOLLOWED:
        yield _difference(Kind.NOT_FOLLOWED, name, f"it is {summary.standing.name.lower()}")
    elif summary.state is SegmentState.COPY_STARTED:
        yield _difference(Kind.UNCONFIRMED, name, f"begun at offset {summary.metadata_offset}, not finished")
    elif summary.state is not SegmentState.COPY_FINISHED:
        yield _difference(Kind.DELETING, name, f"the topic has it in {summary.state.value}")
    elif summary.generation != found.record.generation:
        detail = f"generation {summary.generation}, and the .json is of {found.record.generation}"
        yield _difference(Kind.OTHER_GENERATION, name, detail)
    else:
        of_log = table.of(name.log)
        assert of_log is not None, "it has the summary"
        if of_log.segment_value(name.log, found.record.segment_id) != found.value:
            live = of_log.segment(name.log, found.record.segment_id)
            yield _difference(Kind.OTHER_CONTENT, name, _changed(found.record, live))


def _changed(told: SegmentRecord, live: SegmentRecord | None) -> str:
    """The fields in which two records differ."""
    if live is None:
        return "the topic's record cannot be read"
    names = [name for name in SegmentRecord.__slots__ if getattr(told, name) != getattr(live, name)]
    shown = [f"{name} {getattr(told, name)!s} and {getattr(live, name)!s}" for name in names]
    return "; ".join(each[:200] for each in shown[:FIELDS_NAMED_MAX]) or "the same fields in other bytes"


def _without_json(
    log: LogId, table: ReferenceTable, seen: set[str], deleted: set[str]
) -> Iterator[Difference]:
    """Copies that the topic has as finished and the bucket has no `.json` of."""
    view = table.view(log)
    for each in view.segments() if view is not None else ():
        counts = each.standing is Standing.FOLLOWED and each.state is SegmentState.COPY_FINISHED
        if counts and each.segment_id not in seen:
            is_deleted = each.segment_id in deleted
            yield Difference(
                kind=Kind.JSON_DELETED if is_deleted else Kind.JSON_MISSING,
                log=log,
                segment_id=each.segment_id,
                base_offset=each.base_offset,
                detail="under a delete marker" if is_deleted else "no version of it is there",
            )


def _difference(kind: Kind, name: SegmentKey, detail: str) -> Difference:
    return Difference(
        kind=kind,
        log=name.log,
        segment_id=SegmentId(name.segment_id),
        base_offset=name.base_offset,
        detail=detail,
    )
