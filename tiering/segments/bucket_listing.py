"""What a bucket has of each segment: one listing of all versions, and the content of each live `.json`.

Owns the requests: a page for every thousand versions, one read for each `.json`, several at a time. Refuses
to interpret a record: that is `rebuild`'s. Keys that are not Seawall's are passed over; `on_strange` hears.

Invariant: segments come in the order of their keys, each once, log by log; no more than READ_AHEAD `.json`
are in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby

from tiering.segments.rebuild import LiveObject, StoredSegment
from tiering.store.errors import Missing
from tiering.store.interface import ListedVersion
from tiering.store.keys import KeyLayout, ObjectKind, SegmentKey
from tiering.store.patient import PatientStore
from workers.consumer.tasks import in_order

READERS = 16
READ_AHEAD = 256
JSON_BYTES_MAX = 4 << 20  # a record takes two thousand


def list_segments(
    store: PatientStore,
    keys: KeyLayout,
    prefix: str,
    *,
    on_strange: Callable[[str], None] = lambda _: None,
) -> Iterator[StoredSegment]:
    """Every segment below `prefix`, one of `keys`' own: of a cluster, a topic or a log."""
    bare = _grouped(store.list_versions(prefix), keys, on_strange)
    yield from in_order(bare, partial(_with_json, store), threads=READERS, ahead=READ_AHEAD)


def _grouped(
    versions: Iterable[ListedVersion], keys: KeyLayout, on_strange: Callable[[str], None]
) -> Iterator[StoredSegment]:
    """One a segment; its `.json` is not read yet. A listing is by key, and a stem's keys stand together."""

    def named() -> Iterator[tuple[SegmentKey, ObjectKind, ListedVersion]]:
        for version in versions:
            found = keys.parse(version.key)
            if found is None:
                on_strange(version.key)
            else:
                yield (*found, version)

    for name, group in groupby(named(), key=lambda each: each[0]):
        live: dict[ObjectKind, LiveObject] = {}
        has_deleted_json = False
        for _, kind, version in group:
            if version.is_latest and not version.is_delete_marker:
                live[kind] = LiveObject(version_id=version.version_id, size_bytes=version.size_bytes)
            has_deleted_json |= kind is ObjectKind.JSON and version.is_delete_marker and version.is_latest
        yield StoredSegment(
            key=name, stem=keys.stem(name), live=live, has_deleted_json=has_deleted_json, json=None
        )


def _with_json(store: PatientStore, segment: StoredSegment) -> StoredSegment:
    live = segment.live.get(ObjectKind.JSON)
    if live is None:
        return segment
    size_bytes = min(live.size_bytes, JSON_BYTES_MAX)  # a larger one is none, and its start shows it
    if not size_bytes:
        return replace(segment, json=b"")
    try:
        content = store.read_range(f"{segment.stem}.json", live.version_id, 0, size_bytes)
        return replace(segment, json=content)
    except Missing:  # deleted since it was listed, its version expired
        return segment
