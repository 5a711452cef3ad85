"""Chunks of objects kept in a folder: bounded, checked, shared by readers and by processes.

    entry: <folder>/<2 hex digits>/<62 hex digits>, the SHA-256 of the chunk's name
    at  0  magic       4 bytes, "SWCH"
    at  4  size_bytes  uint32, of the content
    at  8  crc         uint64, CRC-64/NVME of the name and the content
    at 16  content

    <folder>/usage: how many bytes the entries take, 8 bytes; its lock is the folder's

Whoever writes holds the lock, so that the bound holds for all writers together and a temporary file that
nobody holds is a dead writer's. Readers take no lock: an entry appears by rename, whole, and one that is
evicted while it is read stays readable to the end.

Owns the folder and nothing else of the disk. Refuses to give an entry whose checksum does not fit: it is
removed, counted, and fetched again. Refuses to fail a read: whatever the disk does is counted in `counters`.

Invariant: `get` of a name returns the bytes that some `put` of that name was given, or None; the entries take
at most `limit_bytes`, whatever number of processes write.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock

from tiering.reader.interface import MIB, ChunkName
from tiering.store.interface import crc64

MAGIC = b"SWCH"
USAGE = "usage"
TEMPORARY = ".new"
LIMIT_BYTES = 1024 * MIB
EVICT_TO = 0.8  # of the limit: a scan of the folder then pays for many writes

_HEADER = struct.Struct(">4sIQ")
_USAGE = struct.Struct(">Q")


@dataclass(slots=True)
class CacheCounters:
    """What became of what was asked; for metrics."""

    hits: int = 0
    misses: int = 0
    corrupt: int = 0  # entries whose checksum did not fit
    refused: int = 0  # puts and gets that the disk refused
    evicted: int = 0


class DiskCache:
    """A folder of chunks. Safe to use from many threads and processes."""

    def __init__(self, folder: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._counting = Lock()
        self.counters = CacheCounters()

    def get(self, name: ChunkName) -> bytes | None:
        path = self._path(name)
        try:
            with path.open("rb") as entry:
                header, content = entry.read(_HEADER.size), entry.read()
                os.utime(entry.fileno())  # the least recently used go first
        except FileNotFoundError:
            self._count("misses")
            return None
        except OSError:
            self._count("refused")
            return None
        if not _is_sound(name, header, content):
            self._count("corrupt")
            self.drop(name)
            return None
        self._count("hits")
        return content

    def put(self, name: ChunkName, content: bytes) -> None:
        entry = _HEADER.pack(MAGIC, len(content), _crc(name, content)) + content
        if len(entry) > self._limit_bytes:
            return
        try:
            with self._locked() as usage:
                self._keep(self._path(name), entry, usage)
        except OSError:
            self._count("refused")

    def drop(self, name: ChunkName) -> None:
        try:
            with self._locked() as usage:
                self._remove(self._path(name), usage)
        except OSError:
            self._count("refused")

    def _path(self, name: ChunkName) -> Path:
        digest = sha256(_identity(name)).hexdigest()
        return self._folder / digest[:2] / digest[2:]

    def _keep(self, path: Path, entry: bytes, usage: int) -> None:
        if path.exists():
            return  # another reader was faster; a chunk of a version never changes
        used = _read_usage(usage)
        if used is None or used + len(entry) > self._limit_bytes:
            used = self._evict(room_for=len(entry))
        # Counted before it is there: a crash in between makes the count too high, never too low.
        os.pwrite(usage, _USAGE.pack(used + len(entry)), 0)
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(path.name + TEMPORARY)
        try:
            temporary.write_bytes(entry)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _remove(self, path: Path, usage: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            size_bytes = path.stat().st_size
            path.unlink()
            used = _read_usage(usage)
            if used is not None:
                os.pwrite(usage, _USAGE.pack(max(0, used - size_bytes)), 0)

    def _evict(self, *, room_for: int) -> int:
        """Remove what was not used for longest, and dead writers' files; what the rest takes."""
        entries = sorted(self._entries())
        used = sum(size_bytes for _, size_bytes, _ in entries)
        target = min(int(self._limit_bytes * EVICT_TO), self._limit_bytes - room_for)
        if used + room_for <= self._limit_bytes:
            return used
        for _, size_bytes, path in entries:
            if used <= target:
                break
            path.unlink(missing_ok=True)
            used -= size_bytes
            self._count("evicted")
        return used

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        for folder in os.scandir(self._folder):
            if folder.is_dir(follow_symlinks=False):
                for file in os.scandir(folder):
                    path = Path(file.path)
                    if file.name.endswith(TEMPORARY):
                        path.unlink(missing_ok=True)
                        continue
                    found = file.stat(follow_symlinks=False)
                    yield found.st_mtime_ns, found.st_size, path

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The descriptor of `usage`, locked against threads and processes alike."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds what topics hold
        descriptor = os.open(self._folder / USAGE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # of this open file: other threads open their own
            yield descriptor
        finally:
            os.close(descriptor)

    def _count(self, what: str) -> None:
        with self._counting:
            setattr(self.counters, what, getattr(self.counters, what) + 1)


def _identity(name: ChunkName) -> bytes:
    return "\0".join(map(str, name)).encode("utf-8", "surrogateescape")


def _crc(name: ChunkName, content: bytes) -> int:
    return crc64(content, crc64(_identity(name), 0))


def _is_sound(name: ChunkName, header: bytes, content: bytes) -> bool:
    """Whether an entry is, to the bit, what was put under this name."""
    if len(header) < _HEADER.size:
        return False
    magic, size_bytes, crc = _HEADER.unpack(header)
    is_whole = magic == MAGIC and size_bytes == len(content) == name.size_bytes
    return bool(is_whole and _crc(name, content) == crc)


def _read_usage(usage: int) -> int | None:
    """None where nobody has counted yet."""
    stored = os.pread(usage, _USAGE.size + 1, 0)
    return _USAGE.unpack(stored)[0] if len(stored) == _USAGE.size else None
