"""Fetches pieces of objects: from the cache, else from the store, by named version only.

Objects are cut into chunks of one size, so that what one read fetched another finds in the cache. Owns the
translation of what the store answers into errors that name log, segment and object: a version that is gone,
one that is shorter than the record says.

Refuses an object without a version id: what lies under its key today may be another.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from rules.identity import LogId, ObjectRef
from tiering.reader.errors import ObjectDamaged, ObjectMissing, VersionUnnamed
from tiering.reader.interface import ChunkCache, ChunkName, Objects
from tiering.segments.records import SegmentId
from tiering.store.errors import Missing, StoreError


class Source(NamedTuple):
    """An object of a segment, and whose it is."""

    log: LogId
    segment_id: SegmentId
    ref: ObjectRef

    def damaged(self, position: int, why: str) -> ObjectDamaged:
        return ObjectDamaged(
            log=self.log,
            segment_id=self.segment_id,
            key=self.ref.key,
            version_id=self.ref.version_id,
            position=position,
            why=why,
        )


@dataclass(slots=True)
class FetchCounters:
    """What was asked of the store; for metrics."""

    requests: int = 0
    bytes_read: int = 0
    fetched_again: int = 0  # chunks that held damage and were fetched past the cache


class Chunks:
    """The chunks of objects of one bucket. Safe to use from many threads."""

    def __init__(self, objects: Objects, cache: ChunkCache | None, chunk_bytes: int) -> None:
        self.chunk_bytes = chunk_bytes
        self.counters = FetchCounters()
        self._objects = objects
        self._cache = cache
        self._counting = Lock()

    def get(self, source: Source, index: int) -> bytes:
        """Chunk `index`, whole."""
        name = self._name(source, index)
        found = self._cache.get(name) if self._cache is not None else None
        return found if found is not None else self._fetch(source, name)

    def get_again(self, source: Source, index: int) -> bytes:
        """The chunk from the store, whatever the cache has: what it had was found to be damaged."""
        name = self._name(source, index)
        if self._cache is not None:
            self._cache.drop(name)
        with self._counting:
            self.counters.fetched_again += 1
        return self._fetch(source, name)

    def read(self, source: Source, start: int, end: int, *, again: bool = False) -> bytes:
        """The bytes `[start, end)`, by whole chunks."""
        if start >= end:
            return b""
        first = start // self.chunk_bytes
        get = self.get_again if again else self.get
        whole = b"".join(get(source, index) for index in range(first, (end - 1) // self.chunk_bytes + 1))
        at = first * self.chunk_bytes
        return whole[start - at : end - at]

    def _name(self, source: Source, index: int) -> ChunkName:
        ref = source.ref
        if ref.version_id is None:
            raise VersionUnnamed(
                log=source.log, segment_id=source.segment_id, key=ref.key, version_id=ref.version_id
            )
        start = index * self.chunk_bytes
        assert 0 <= start < ref.size_bytes, (index, ref)
        return ChunkName(
            bucket=self._objects.bucket,
            key=ref.key,
            version_id=ref.version_id,
            chunk_bytes=self.chunk_bytes,
            place=index,
            size_bytes=min(self.chunk_bytes, ref.size_bytes - start),
        )

    def _fetch(self, source: Source, name: ChunkName) -> bytes:
        start = name.place * name.chunk_bytes
        try:
            content = self._objects.read_range(name.key, name.version_id, start, start + name.size_bytes)
        except Missing as missing:
            raise self._missing(source, missing.why) from missing
        except StoreError as refused:
            self._explain(source, start, refused)
            raise
        with self._counting:
            self.counters.requests += 1
            self.counters.bytes_read += len(content)
        if self._cache is not None:
            self._cache.put(name, content)
        return content

    def _explain(self, source: Source, start: int, refused: StoreError) -> None:
        """Raise what is wrong, if it is that the object is not as large as the record says."""
        try:
            stored = self._objects.head(source.ref.key, source.ref.version_id)
        except Missing as missing:
            raise self._missing(source, missing.why) from refused
        except StoreError:
            return  # the store cannot tell either: what it said first is what there is to say
        if stored.size_bytes != source.ref.size_bytes:
            why = f"the store has {stored.size_bytes} bytes, the record {source.ref.size_bytes}"
            raise source.damaged(min(start, stored.size_bytes), why) from refused

    def _missing(self, source: Source, why: str) -> ObjectMissing:
        return ObjectMissing(
            log=source.log,
            segment_id=source.segment_id,
            key=source.ref.key,
            version_id=source.ref.version_id,
            why=why,
        )
