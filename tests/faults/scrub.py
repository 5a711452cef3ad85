"""The bucket scrub: whether a bucket holds what a table says of it, byte for byte, and nothing else.

    each followed COPY_FINISHED segment    its three objects are live, at the versions of the record, with its
                                           sizes and checksums; the bytes verify batch by batch and come to
                                           what the record says; `.json` is the record; `.aux` reads back
    each log                               what can be read is contiguous from the tiered start to the
                                           frontier, without an overlap, each piece inside its segment
    every other object, version, upload    belongs to an attempt that the table knows and does not read

Every test of tiering ends with it. It reads the store alone and changes nothing. The table is the one thing
it takes on trust: replay it from the topic.

Invariant: it looks at everything, and says how much that was; damage does not end it: one run names all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from typing import TypeVar

from rules.identity import LogId, ObjectRef
from tiering.errors import StatedError
from tiering.log.batch import Record, read_header, read_records
from tiering.log.errors import LogFormatError
from tiering.log.segment import Compaction, Depth, SegmentScan, scan
from tiering.log.windows import walk
from tiering.segments.codec import decode_segment
from tiering.segments.coverage import Answer, Coverage, GapPiece, coverage
from tiering.segments.lineage import Epochs, epoch_at
from tiering.segments.records import EpochStart, SegmentObjects, SegmentRecord, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.table import ReferenceTable
from tiering.segments.view import LogView, SegmentSummary
from tiering.store.aux_file import read_aux
from tiering.store.errors import StoreError
from tiering.store.interface import (
    ListedVersion,
    ObjectStore,
    Page,
    PageToken,
    PendingUpload,
    checksum_text,
    crc64,
)
from tiering.store.keys import KeyLayout, ObjectKind, SegmentKey

Entry = TypeVar("Entry")
PAGES_MAX = 10_000


class Damage(str, Enum):
    """What is wrong."""

    MISSING = "missing"  # a version that the record names cannot be had
    HIDDEN = "hidden"  # it is there, under a delete marker or another version
    SIZE = "size"
    CHECKSUM = "checksum"  # as the store states it, or of the bytes that come
    BATCHES = "batches"  # not what the record says, or not sound
    AUX = "aux"
    JSON = "json"  # not the record
    RECORD = "record"  # the record names no object, or one that is not the segment's
    HOLE = "hole"  # offsets below the frontier that nothing answers for
    OVERLAP = "overlap"  # offsets that two pieces answer for
    OUTSIDE = "outside"  # a piece that its segment does not hold
    LINEAGE = "lineage"  # a piece of another history than the log's
    GAP = "gap"  # on record as lost, where nobody said that it may be
    UNCLAIMED = "unclaimed"  # segments of a log that no leader has claimed
    UNACCOUNTED = "unaccounted"  # an object, version or upload that no record stands behind
    REMAINS = "remains"  # a copy that once counted was removed, by its record, and is live


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, and where: an object's key, or a log and offsets."""

    damage: Damage
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.damage.value} at {self.where}: {self.detail}"


@dataclass(slots=True, kw_only=True)
class Scrubbed:
    """What was found, and how much was looked at. `leftovers` are accounted for and not live data."""

    problems: list[Problem] = field(default_factory=list)
    logs: int = 0
    segments: int = 0
    objects: int = 0
    size_bytes: int = 0
    records: int = 0
    versions: int = 0
    leftovers: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """An empty bucket is not clean: nothing was looked at."""
        return self.segments > 0 and not self.problems

    def __str__(self) -> str:
        seen = (
            f"{self.logs} logs, {self.segments} segments, {self.objects} objects, {self.size_bytes} bytes, "
            f"{self.records} records, {self.versions} versions, {len(self.leftovers)} leftovers"
        )
        return "\n".join([seen, *map(str, self.problems)])


def scrub(
    table: ReferenceTable,
    store: ObjectStore,
    keys: KeyLayout,
    *,
    topic_id: str | None = None,
    may_have_gaps: bool = False,
) -> Scrubbed:
    """Look at all that the table and the bucket hold of the table's cluster, or of one topic of it."""
    return _Scrub(table, store, keys, topic_id, may_have_gaps=may_have_gaps).run()


def tiered_records(table: ReferenceTable, store: ObjectStore, log: LogId) -> Iterator[Record]:
    """What a reader of the tier gets below the frontier, in order: each data record of the log once."""
    found = _coverage(table, log)
    if found is None:
        return
    of_log = table.of(log)
    assert of_log is not None
    for piece in found.pieces(found.frontier.start, found.frontier.offset):
        if isinstance(piece, GapPiece):
            continue
        record = of_log.segment(log, piece.segment_id)
        assert record is not None
        assert record.objects.log is not None
        content = _read(store, record.objects.log)
        yield from (each for each in records_in(content) if piece.start <= each.offset < piece.end)


def tiered_to(table: ReferenceTable, log: LogId) -> int:
    """The frontier of a log; 0 where nothing was ever claimed."""
    found = _coverage(table, log)
    return 0 if found is None else found.frontier.offset


def records_in(content: bytes) -> Iterator[Record]:
    """The data records of a whole segment, control batches left out."""
    for begin, _ in pairwise(walk(memoryview(content), len(content))):
        header = read_header(content, begin)
        if not header.is_control:
            yield from read_records(content, header, begin)


class _Scrub:
    """One run."""

    def __init__(
        self,
        table: ReferenceTable,
        store: ObjectStore,
        keys: KeyLayout,
        topic_id: str | None,
        *,
        may_have_gaps: bool,
    ) -> None:
        self._topic_id = topic_id
        self._table, self._store, self._keys = table, store, keys
        self._may_have_gaps = may_have_gaps
        self._found = Scrubbed()
        self._live: dict[str, ObjectRef] = {}  # by key: what finished segments consist of
        self._earlier: dict[str, int] = {}  # by key: how many generations came before, each of a version
        self._known: dict[tuple[LogId, str], SegmentSummary] = {}

    def run(self) -> Scrubbed:
        for log in sorted(self._table.logs()):
            if self._topic_id not in (None, log.topic_id):
                continue
            view = self._table.view(log)
            assert view is not None
            self._found.logs += 1
            self._segments(view)
            self._coverage(view)
        cluster_id = self._table.topic.cluster_id
        prefix = self._keys.cluster_prefix(cluster_id)
        if self._topic_id is not None:
            prefix = self._keys.topic_prefix(cluster_id, self._topic_id)
        for version in _entries(self._store.versions_page, prefix):
            self._version(version)
        for upload in _entries(self._store.uploads_page, prefix):
            self._upload(upload)
        self._found.problems.sort(key=lambda each: (each.where, each.damage.value))
        return self._found

    def _wrong(self, damage: Damage, where: str, detail: str) -> None:
        self._found.problems.append(Problem(damage=damage, where=where, detail=detail))

    def _segments(self, view: LogView) -> None:
        table = self._table.of(view.log)
        assert table is not None
        for summary in view.segments():
            self._known[view.log, summary.segment_id] = summary
            if summary.standing is not Standing.FOLLOWED or summary.state is not SegmentState.COPY_FINISHED:
                continue
            record = table.segment(view.log, summary.segment_id)
            assert record is not None
            self._found.segments += 1
            self._segment(record)

    def _segment(self, record: SegmentRecord) -> None:
        segment = SegmentKey(
            log=record.log, base_offset=record.base_offset, segment_id=str(record.segment_id)
        )
        checks: dict[ObjectKind, tuple[ObjectRef | None, Callable[[SegmentRecord, str, bytes], None]]] = {
            ObjectKind.LOG: (record.objects.log, self._batches),
            ObjectKind.AUX: (record.objects.aux, self._aux),
            ObjectKind.JSON: (record.objects.json, self._json),
        }
        for kind, (ref, check) in checks.items():
            key = self._keys.key(segment, kind)
            if ref is None or ref.key != key or ref.version_id is None:
                named = "no object" if ref is None else f"{ref.key} at version {ref.version_id}"
                self._wrong(Damage.RECORD, key, f"the record names {named}")
                continue
            self._live[key], self._earlier[key] = ref, record.generation
            content = self._content(ref)
            if content is not None:
                check(record, key, content)

    def _content(self, ref: ObjectRef) -> bytes | None:
        """The bytes of an object, if they are there at all; whatever else is wrong is noted."""
        try:
            stored = self._store.head(ref.key, ref.version_id)
            content = _read(self._store, ref)
        except StoreError as error:
            self._wrong(Damage.MISSING, ref.key, f"version {ref.version_id}: {error}")
            return None
        self._found.objects += 1
        self._found.size_bytes += len(content)
        if not len(content) == stored.size_bytes == ref.size_bytes:
            sizes = f"{ref.size_bytes} bytes by the record, {stored.size_bytes} by the store, {len(content)}"
            self._wrong(Damage.SIZE, ref.key, f"{sizes} came")
        computed = checksum_text(crc64(content, 0))
        if not computed == stored.checksum == ref.checksum:
            sums = f"{ref.checksum} by the record, {stored.checksum} by the store, {computed} of the bytes"
            self._wrong(Damage.CHECKSUM, ref.key, sums)
        return content

    def _batches(self, record: SegmentRecord, key: str, content: bytes) -> None:
        found = _scanned(content, record)
        if found.defect is not None:
            self._wrong(Damage.BATCHES, key, f"{found.defect.kind.value}: {found.defect.detail}")
            return
        self._found.records += found.record_count
        stated = {
            "size": (record.size_bytes, len(content)),
            "data_end": (record.data_end, found.data_end),
            "end": (record.end_offset, found.data_end),  # of a log that is never compacted
            "records": (record.record_count, found.record_count),
            "batches": (record.batch_count, found.batch_count),
            "max_timestamp_ms": (record.max_timestamp_ms, found.max_timestamp_ms),
            "epochs": (record.leader_epochs, tuple(EpochStart(*each) for each in found.epochs)),
        }
        for what, (said, is_so) in stated.items():
            if said != is_so:
                self._wrong(Damage.BATCHES, key, f"{what}: {said} by the record, {is_so} in the bytes")

    def _aux(self, record: SegmentRecord, key: str, content: bytes) -> None:
        try:
            found = read_aux(content)
        except LogFormatError as error:
            self._wrong(Damage.AUX, key, str(error))
            return
        if (found.base_offset, found.end_offset) != (record.base_offset, record.end_offset):
            self._wrong(Damage.AUX, key, f"is of [{found.base_offset}, {found.end_offset})")

    def _json(self, record: SegmentRecord, key: str, content: bytes) -> None:
        try:
            found = decode_segment(content)
        except StatedError as error:
            self._wrong(Damage.JSON, key, str(error))
            return
        wanted = replace(record, objects=replace(record.objects, json=None))
        if record.generation > 0:  # a restore writes the record anew, and never the .json
            found, wanted = _of_any_generation(found), _of_any_generation(wanted)
        if found != wanted:
            self._wrong(Damage.JSON, key, "is not the record that the topic holds")

    def _coverage(self, view: LogView) -> None:
        name = f"{view.log.topic_id}-{view.log.partition}"
        found = coverage(view)
        if not isinstance(found, Coverage):
            if view.rows.size:
                self._wrong(Damage.UNCLAIMED, name, f"{view.rows.size} segments")
            return
        start, end = found.frontier.start, found.frontier.offset
        at = start
        for piece in found.pieces(start, end):
            if piece.start > at:
                self._wrong(Damage.HOLE, name, f"nothing answers for [{at}, {piece.start})")
            elif piece.start < at:
                self._wrong(Damage.OVERLAP, name, f"[{piece.start}, {at}) is answered for twice")
            at = piece.end
            self._piece(view.log, name, piece, found.lineage)
        if at != end:
            self._wrong(Damage.HOLE, name, f"the pieces end at {at}, the frontier is at {end}")

    def _piece(self, log: LogId, name: str, piece: Answer, lineage: Epochs) -> None:
        if isinstance(piece, GapPiece):
            if not self._may_have_gaps:
                self._wrong(Damage.GAP, name, f"[{piece.start}, {piece.end}) is recorded as lost")
            return
        what = f"[{piece.start}, {piece.end}) from {piece.segment_id}"
        summary = self._known.get((log, piece.segment_id))
        held = (summary.base_offset, summary.covered_end) if summary is not None else (0, 0)
        if summary is None or not held[0] <= piece.start < piece.end <= held[1]:
            self._wrong(Damage.OUTSIDE, name, f"{what}, which holds {held}")
            return
        own = summary.leader_epochs
        turns = {piece.start} | {each.start_offset for each in (*lineage, *own)}
        for offset in sorted(each for each in turns if piece.start <= each < piece.end):
            if epoch_at(lineage, offset) != epoch_at(own, offset):
                self._wrong(Damage.LINEAGE, name, f"{what} is of another epoch at {offset} than the log")
                return

    def _version(self, version: ListedVersion) -> None:
        self._found.versions += 1
        live = self._live.get(version.key)
        if live is not None:
            if version.version_id == live.version_id:
                if not version.is_latest:
                    self._wrong(Damage.HIDDEN, version.key, f"version {version.version_id} is not the latest")
            elif not version.is_delete_marker and self._earlier[version.key] > 0:
                self._earlier[version.key] -= 1
            elif not version.is_delete_marker:
                self._wrong(Damage.UNACCOUNTED, version.key, f"version {version.version_id} is one too many")
            return
        summary = self._attempt(version.key)
        is_live = version.is_latest and not version.is_delete_marker
        if summary is None:
            if is_live or self._keys.parse(version.key) is None:
                self._wrong(Damage.UNACCOUNTED, version.key, "no record stands behind it")
        elif is_live and self._was_removed(version.key, summary):
            self._wrong(Damage.REMAINS, version.key, "was removed, by its record")
        if is_live:
            self._found.leftovers.append(version.key)

    def _was_removed(self, key: str, summary: SegmentSummary) -> bool:
        """Not so an attempt that never came to its end: its author may have written on, deposed or cut off,
        while the next leader removed it. What it left is a leftover like any other, for `tier orphans`."""
        if summary.state is not SegmentState.DELETE_FINISHED:
            return False
        parsed = self._keys.parse(key)
        table = self._table.of(parsed[0].log) if parsed is not None else None
        record = table.segment(parsed[0].log, summary.segment_id) if parsed and table is not None else None
        return record is None or record.objects.log is not None

    def _upload(self, upload: PendingUpload) -> None:
        self._found.leftovers.append(upload.key)
        if self._attempt(upload.key) is None:
            self._wrong(Damage.UNACCOUNTED, upload.key, f"upload {upload.upload_id}: no record stands behind")

    def _attempt(self, key: str) -> SegmentSummary | None:
        """What the table knows of the attempt that an object's key names."""
        parsed = self._keys.parse(key)
        if parsed is None:
            return None
        return self._known.get((parsed[0].log, parsed[0].segment_id))


def _of_any_generation(record: SegmentRecord) -> SegmentRecord:
    """What every generation of a copy has in common: its bytes, and what they hold."""
    kept = {kind: ref._replace(version_id=None) for kind, ref in record.objects.present() if kind != "json"}
    return replace(
        record,
        objects=SegmentObjects(**kept),
        broker_id=0,
        leader_epoch=0,
        generation=0,
        event_id="",
        occurred_at_ms=0,
    )


def _coverage(table: ReferenceTable, log: LogId) -> Coverage | None:
    view = table.view(log)
    found = None if view is None else coverage(view)
    return found if isinstance(found, Coverage) else None


def _scanned(content: bytes, record: SegmentRecord) -> SegmentScan:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return scan(
            file.fileno(),
            base_offset=record.base_offset,
            limit_offset=record.end_offset,
            depth=Depth.RECORDS,
            compaction=Compaction.NEVER,
        )


def _read(store: ObjectStore, ref: ObjectRef) -> bytes:
    """All bytes of a version, however many there are."""
    assert ref.version_id is not None
    stored = store.head(ref.key, ref.version_id)
    return b"".join(store.read_range(ref.key, ref.version_id, 0, max(1, stored.size_bytes)))


def _entries(page: Callable[[str, PageToken | None], Page[Entry]], prefix: str) -> Iterable[Entry]:
    token: PageToken | None = None
    for _ in range(PAGES_MAX):
        found = page(prefix, token)
        yield from found.entries
        token = found.next
        if token is None:
            return
    raise AssertionError(f"more than {PAGES_MAX} pages under {prefix}")
