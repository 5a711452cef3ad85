"""The bucket as many readers use it at once: what two want at the same moment is fetched once.

    Coalesced   of the same range of the same version, the second waits for the first one's answer
    Recent      the chunks used last, in memory, before the cache on the disk

Owns neither the bucket nor the disk's cache. Invariant: what is given is what the bucket gave for exactly
that range of exactly that version; an error reaches everyone who waited for it.
"""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future
from threading import Lock

from tiering.reader.interface import ChunkCache, ChunkName, Objects
from tiering.store.interface import Stored


class Coalesced:
    """Objects, asked by many threads."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._coming: dict[tuple[str, str, int, int], Future[bytes]] = {}
        self._lock = Lock()
        self.joined = 0  # how many had not to ask

    @property
    def bucket(self) -> str:
        return self._objects.bucket

    def read_range(self, key: str, version_id: str, start: int, end: int) -> bytes:
        asked = (key, version_id, start, end)
        with self._lock:
            coming = self._coming.get(asked)
            if coming is None:
                mine = self._coming[asked] = Future()
            else:
                self.joined += 1
        if coming is not None:
            return coming.result()
        try:
            mine.set_result(self._objects.read_range(key, version_id, start, end))
        except BaseException as failed:
            mine.set_exception(failed)
            raise
        finally:
            with self._lock:
                del self._coming[asked]
        return mine.result()

    def head(self, key: str, version_id: str | None = None) -> Stored:
        return self._objects.head(key, version_id)


class Recent:
    """A ChunkCache: in memory at most `limit_bytes`, and all of them in `below`, if there is one."""

    def __init__(self, below: ChunkCache | None, *, limit_bytes: int) -> None:
        self._below = below
        self._limit_bytes = limit_bytes
        self._chunks: OrderedDict[ChunkName, bytes] = OrderedDict()
        self._lock = Lock()
        self.size_bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, name: ChunkName) -> bytes | None:
        with self._lock:
            found = self._chunks.get(name)
            if found is not None:
                self._chunks.move_to_end(name)
                self.hits += 1
                return found
        found = self._below.get(name) if self._below is not None else None
        if found is not None:
            self._keep(name, found)
        else:
            with self._lock:
                self.misses += 1
        return found

    def put(self, name: ChunkName, content: bytes) -> None:
        self._keep(name, content)
        if self._below is not None:
            self._below.put(name, content)

    def drop(self, name: ChunkName) -> None:
        with self._lock:
            dropped = self._chunks.pop(name, None)
            self.size_bytes -= len(dropped or b"")
        if self._below is not None:
            self._below.drop(name)

    def _keep(self, name: ChunkName, content: bytes) -> None:
        with self._lock:
            if name in self._chunks or len(content) > self._limit_bytes:
                return
            self._chunks[name] = content
            self.size_bytes += len(content)
            while self.size_bytes > self._limit_bytes:
                _, oldest = self._chunks.popitem(last=False)
                self.size_bytes -= len(oldest)
