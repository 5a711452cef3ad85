"""An object store in memory: the contract as S3 documents it, without S3.

It is AWS as AWS describes itself where the servers at hand are not: a delete marker is no object to a
conditional write, and a finished multipart upload is unknown from then on. `refuse` makes the next requests
fail; `asked` counts them.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rules.identity import ObjectRef
from tiering.store.errors import (
    AlreadyExists,
    ChecksumRefused,
    Missing,
    NotVersioned,
    Rejected,
    StoreError,
    Unavailable,
    Unsupported,
)
from tiering.store.interface import (
    Content,
    ListedKey,
    ListedVersion,
    Page,
    PageToken,
    PendingUpload,
    SentPart,
    Stored,
    checksum_text,
    crc64,
)

Entry = TypeVar("Entry")
READ_PIECE_BYTES = 1000


@dataclass(slots=True, kw_only=True)
class Version:
    """One version of an object, or a delete marker."""

    version_id: str
    content: bytes
    is_marker: bool = False
    is_held: bool = False
    moment_ms: int = 0


@dataclass(slots=True, kw_only=True)
class Upload:
    """A multipart upload under way."""

    key: str
    initiated_ms: int
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Bucket:
    """What every `MemoryStore` of one bucket shares."""

    name: str = "memory"
    versioned: bool = True
    locked: bool = True
    objects: dict[str, list[Version]] = field(default_factory=lambda: defaultdict(list))  # latest last
    uploads: dict[str, Upload] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))


class MemoryStore:
    """One bucket of it."""

    def __init__(
        self,
        bucket: Bucket | None = None,
        *,
        page_entries: int = 1000,
        now_ms: Callable[[], int] = lambda: 1_700_000_000_000,
    ) -> None:
        self.kept = bucket or Bucket()
        self.asked: Counter[str] = Counter()
        self._page_entries = page_entries
        self._now_ms = now_ms
        self._refusals: dict[str, list[type[StoreError]]] = defaultdict(list)
        self._losses: Counter[str] = Counter()

    @property
    def bucket(self) -> str:
        return self.kept.name

    def refuse(self, operation: str, *kinds: type[StoreError]) -> None:
        """Fail the next requests of this operation, one with each kind, before they do anything."""
        self._refusals[operation] += kinds

    def lose_answer(self, operation: str, *, count: int = 1) -> None:
        """Do what the next requests ask for, and then fail as if the answer had been lost."""
        self._losses[operation] += count

    def put_new(self, key: str, content: Content, checksum: str) -> str | None:
        with self.kept.lock:
            self._note("put", key)
            self._must_be_absent("put", key)
        received = self._received("put", key, content, checksum)
        with self.kept.lock:
            self._must_be_absent("put", key)
            return self._done("put", key, self._keep(key, received))

    def start_parts(self, key: str) -> str:
        with self.kept.lock:
            self._note("start", key)
            upload_id = f"upload-{next(self.kept.ids)}"
            self.kept.uploads[upload_id] = Upload(key=key, initiated_ms=self._now_ms())
            return self._done("start", key, upload_id)

    def put_part(self, key: str, upload_id: str, number: int, content: Content, checksum: str) -> SentPart:
        with self.kept.lock:
            self._note("part", key)
        received = self._received("part", key, content, checksum)
        with self.kept.lock:
            self._upload("part", key, upload_id).parts[number] = received
            return self._done("part", key, SentPart(number=number, etag=f"etag-{number}", checksum=checksum))

    def finish_parts(
        self, key: str, upload_id: str, parts: tuple[SentPart, ...], *, size_bytes: int, checksum: str
    ) -> str | None:
        with self.kept.lock:
            self._note("finish", key)
            upload = self._upload("finish", key, upload_id)
            self._must_be_absent("finish", key)
            whole = b"".join(upload.parts[part.number] for part in parts)
            if len(whole) != size_bytes:
                raise self._error(Rejected, "finish", key, f"{len(whole)} bytes, not {size_bytes}")
            if checksum_text(crc64(whole, 0)) != checksum:
                raise self._error(ChecksumRefused, "finish", key, "another checksum")
            del self.kept.uploads[upload_id]
            return self._done("finish", key, self._keep(key, whole))

    def abort_parts(self, key: str, upload_id: str) -> None:
        with self.kept.lock:
            self._note("abort", key)
            self.kept.uploads.pop(upload_id, None)

    def head(self, key: str, version_id: str | None = None) -> Stored:
        with self.kept.lock:
            self._note("head", key)
            found = self._version("head", key, version_id)
            if not self.kept.versioned:
                raise self._error(NotVersioned, "head", key, "no version id")
            return Stored(
                size_bytes=len(found.content),
                checksum=checksum_text(crc64(found.content, 0)),
                version_id=found.version_id,
            )

    def read_range(self, key: str, version_id: str, start: int, end: int) -> Iterator[bytes]:
        with self.kept.lock:
            self._note("read", key)
            content = self._version("read", key, version_id).content
        if start >= len(content):
            raise self._error(Rejected, "read", key, "the range is not in the object")
        wanted = content[start:end]
        for at in range(0, len(wanted), READ_PIECE_BYTES):
            yield wanted[at : at + READ_PIECE_BYTES]

    def pour(self, key: str, version_id: str, start: int, end: int, into: memoryview) -> Iterator[memoryview]:
        for piece in self.read_range(key, version_id, start, end):
            into[: len(piece)] = piece
            yield into[: len(piece)]

    def keys_page(self, prefix: str, token: PageToken | None) -> Page[ListedKey]:
        with self.kept.lock:
            self._note("list keys", prefix)
            found = [
                ListedKey(key=key, size_bytes=len(versions[-1].content), modified_ms=versions[-1].moment_ms)
                for key, versions in self._under(prefix)
                if not versions[-1].is_marker
            ]
        return self._page(found, token)

    def versions_page(self, prefix: str, token: PageToken | None) -> Page[ListedVersion]:
        with self.kept.lock:
            self._note("list versions", prefix)
            found = [
                ListedVersion(
                    key=key,
                    version_id=version.version_id,
                    is_latest=version is versions[-1],
                    is_delete_marker=version.is_marker,
                    size_bytes=len(version.content),
                    modified_ms=version.moment_ms,
                )
                for key, versions in self._under(prefix)
                for version in reversed(versions)
            ]
        return self._page(found, token)

    def uploads_page(self, prefix: str, token: PageToken | None) -> Page[PendingUpload]:
        with self.kept.lock:
            self._note("list uploads", prefix)
            found = [
                PendingUpload(key=upload.key, upload_id=upload_id, initiated_ms=upload.initiated_ms)
                for upload_id, upload in sorted(self.kept.uploads.items(), key=lambda item: item[1].key)
                if upload.key.startswith(prefix)
            ]
        return self._page(found, token)

    def mark_deleted(self, key: str) -> str | None:
        with self.kept.lock:
            self._note("mark", key)
            if not self.kept.versioned:
                raise self._error(NotVersioned, "mark", key, "versioning is off")
            return self._done("mark", key, self._keep(key, b"", is_marker=True))

    def copy_version(self, source: ObjectRef) -> str | None:
        with self.kept.lock:
            self._note("copy", source.key)
            content = self._version("copy", source.key, source.version_id).content
            self._must_be_absent("copy", source.key)
            return self._done("copy", source.key, self._keep(source.key, content))

    def set_hold(self, key: str, version_id: str, *, held: bool) -> None:
        with self.kept.lock:
            self._note("hold", key)
            if not self.kept.locked:
                raise self._error(Unsupported, "hold", key, "no object lock")
            self._version("hold", key, version_id).is_held = held

    def is_held(self, key: str, version_id: str) -> bool:
        with self.kept.lock:
            self._note("held", key)
            return self._version("held", key, version_id).is_held

    def keeps_versions(self) -> bool:
        self._note("versioning", "")
        return self.kept.versioned

    def now_ms(self) -> int:
        self._note("clock", "")
        return self._now_ms()

    def _note(self, operation: str, key: str) -> None:
        self.asked[operation] += 1
        if self._refusals[operation]:
            raise self._error(self._refusals[operation].pop(0), operation, key, "as the test asked")

    def _done(self, operation: str, key: str, answer: Entry) -> Entry:
        if self._losses[operation] > 0:
            self._losses[operation] -= 1
            raise self._error(Unavailable, operation, key, "the answer was lost")
        return answer

    def _keep(self, key: str, content: bytes, *, is_marker: bool = False) -> str:
        version_id = f"version-{next(self.kept.ids)}"
        version = Version(
            version_id=version_id, content=content, is_marker=is_marker, moment_ms=self._now_ms()
        )
        self.kept.objects[key] = [*(self.kept.objects[key] if self.kept.versioned else []), version]
        return version_id

    def _received(self, operation: str, key: str, content: Content, checksum: str) -> bytes:
        received = b"".join(content)
        if len(received) != content.size_bytes or checksum_text(crc64(received, 0)) != checksum:
            raise self._error(ChecksumRefused, operation, key, "another checksum")
        return received

    def _must_be_absent(self, operation: str, key: str) -> None:
        versions = self.kept.objects.get(key)
        if versions and not versions[-1].is_marker:
            raise self._error(AlreadyExists, operation, key, "412")

    def _upload(self, operation: str, key: str, upload_id: str) -> Upload:
        if upload_id not in self.kept.uploads:
            raise self._error(Missing, operation, key, "no such upload")
        return self.kept.uploads[upload_id]

    def _version(self, operation: str, key: str, version_id: str | None) -> Version:
        versions = self.kept.objects.get(key, [])
        wanted = [v for v in versions if v.version_id == version_id] if version_id else versions[-1:]
        if not wanted or wanted[0].is_marker:
            raise self._error(Missing, operation, key, f"no version {version_id}")
        return wanted[0]

    def _under(self, prefix: str) -> list[tuple[str, list[Version]]]:
        return sorted(item for item in self.kept.objects.items() if item[0].startswith(prefix) and item[1])

    def _page(self, found: Sequence[Entry], token: PageToken | None) -> Page[Entry]:
        start = int(token[0]) if token else 0
        end = start + self._page_entries
        return Page(entries=tuple(found[start:end]), next=(str(end),) if end < len(found) else None)

    def _error(self, kind: type[StoreError], operation: str, key: str, why: str) -> StoreError:
        return kind(bucket=self.bucket, key=key, operation=operation, why=why)
