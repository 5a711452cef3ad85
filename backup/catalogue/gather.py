"""Makes the catalogue of a log: the table of the topic of metadata, and one listing of the log's versions.

The bucket is listed first and the topic read after it, so that whatever is listed was begun in what is read.
A copy that the topic has forgotten is told by its `.json`, if any version of that is left: the latest one.

Owns these requests: whether the bucket keeps versions, a page for every thousand of them, and one read for
each forgotten copy. Refuses to decide what is done with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

from backup.catalogue.copies import Copy, LogCatalogue, StoredObject, Told
from rules.identity import LogId, ObjectRef
from tiering.outcome import Inconclusive
from tiering.retention.facts import facts_of, is_contended, is_unclaimed, is_unreadable
from tiering.segments.bucket_listing import JSON_BYTES_MAX
from tiering.segments.codec import decode_segment
from tiering.segments.errors import SegmentMetadataError
from tiering.segments.frontier import clipped_gaps, frontier
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.segments.rows import Standing
from tiering.segments.view import LogView
from tiering.store.errors import Missing
from tiering.store.interface import CHECKSUM_ALGORITHM, ListedVersion, checksum_text, crc64
from tiering.store.keys import KeyLayout, ObjectKind
from workers.consumer.tasks import in_order

READERS = 16
_STANDINGS = {Standing.FOLLOWED: Told.FOLLOWED, Standing.FENCED: Told.FENCED}
_DOUBTS = (is_unclaimed, is_unreadable, is_contended)

Stems = dict[str, dict[str, StoredObject]]  # by segment id, then by kind


class Table(Protocol):
    """The topic of metadata, read to its end."""

    def read_on(self) -> object: ...

    def view(self, log: LogId) -> LogView | None: ...

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None: ...


class Bucket(Protocol):
    """PatientStore is one."""

    def list_versions(self, prefix: str) -> Iterator[ListedVersion]: ...

    def read_range(self, key: str, version_id: str, start: int, end: int) -> bytes: ...

    def keeps_versions(self) -> bool: ...


def gather(log: LogId, table: Table, bucket: Bucket, layout: KeyLayout) -> LogCatalogue:
    """One log, asked now."""
    keeps_versions = bucket.keeps_versions()
    stems = stored_by_segment(bucket.list_versions(layout.log_prefix(log)), layout, log)
    table.read_on()
    view = table.view(log)
    copies = [*_told_by_topic(log, table, view, stems)]
    known = {each.record.segment_id for each in copies} | _row_ids(view)
    copies += _told_by_bucket(
        log, bucket, {name: found for name, found in stems.items() if name not in known}
    )
    copies.sort(key=lambda each: (each.record.base_offset, each.record.segment_id))
    record = None if view is None else view.record
    found = Inconclusive("no record") if view is None else frontier(view)
    facts = facts_of(log, view, applied_to=0, end_offset=0)
    start = 0 if isinstance(found, Inconclusive) else found.start
    return LogCatalogue(
        log=log,
        topic=record.topic if record is not None else next((each.record.topic for each in copies), ""),
        record=record,
        lineage=() if record is None else record.leader_epochs,
        start=start,
        frontier=start if isinstance(found, Inconclusive) else found.offset,
        recorded_gaps=() if record is None else tuple(clipped_gaps(record, record.leader_epochs)),
        copies=tuple(copies),
        keeps_versions=keeps_versions,
        doubts=tuple(doubt for each in _DOUBTS if (doubt := each(facts)) is not None),
    )


def stored_by_segment(listed: Iterable[ListedVersion], layout: KeyLayout, log: LogId) -> Stems:
    """A listing of one log, by segment and kind. Keys that are not Seawall's are passed over."""
    found: dict[str, dict[str, list[ListedVersion]]] = defaultdict(lambda: defaultdict(list))
    named: dict[str, str | None] = {}  # a key is listed as often as it has versions, and read once
    for version in listed:
        if version.key not in named:
            parsed = layout.parse(version.key)
            named[version.key] = None if parsed is None or parsed[0].log != log else parsed[0].segment_id
        segment_id = named[version.key]
        if segment_id is not None:
            found[segment_id][version.key.rpartition(".")[2]].append(version)
    return {
        segment_id: {kind: StoredObject(tuple(_latest_first(each))) for kind, each in kinds.items()}
        for segment_id, kinds in found.items()
    }


def _latest_first(versions: list[ListedVersion]) -> list[ListedVersion]:
    """A listing has the latest first; pages of some stores repeat entries."""
    return list({each.version_id: each for each in versions}.values())


def _row_ids(view: LogView | None) -> set[SegmentId]:
    return set() if view is None else {each.segment_id for each in view.segments()}


def _told_by_topic(log: LogId, table: Table, view: LogView | None, stems: Stems) -> Iterator[Copy]:
    for each in view.segments() if view is not None else ():
        told = _STANDINGS.get(each.standing)
        record = table.segment(log, each.segment_id) if told is not None else None
        if told is not None and record is not None:
            yield Copy(record=record, told=told, stored=stems.get(each.segment_id, {}))


def _told_by_bucket(log: LogId, bucket: Bucket, stems: Stems) -> Iterator[Copy]:
    records = in_order(stems.values(), partial(_of_json, log, bucket), threads=READERS)
    for kinds, record in zip(stems.values(), records, strict=True):
        if record is not None:
            yield Copy(record=record, told=Told.BUCKET, stored=kinds)


def _of_json(log: LogId, bucket: Bucket, kinds: dict[str, StoredObject]) -> SegmentRecord | None:
    """The record in the latest version of a `.json`, with the reference to itself; None if it is none."""
    stored = kinds.get(ObjectKind.JSON.value)
    version = next((each for each in stored.versions if not each.is_delete_marker), None) if stored else None
    if version is None or not 0 < version.size_bytes <= JSON_BYTES_MAX:
        return None
    try:
        content = bucket.read_range(version.key, version.version_id, 0, version.size_bytes)
        record = decode_segment(content, version.key)
    except (Missing, SegmentMetadataError):
        return None
    if record.log != log or f"{record.key_stem}.json" != version.key:
        return None
    checksum = checksum_text(crc64(content, 0))
    itself = ObjectRef(version.key, len(content), CHECKSUM_ALGORITHM, checksum, version.version_id)
    return replace(record, objects=replace(record.objects, json=itself))
