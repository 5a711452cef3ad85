"""What Seawall may ask of an object store: the values, and the port that an adapter or a fake implements.

Each method is one attempt of one request, and raises one of `errors` if that fails; deadlines, retries and
the byte rate are `patient`'s. What is not here cannot be done: there is no overwriting, and no deleting of a
version.

Invariants an implementation must keep (tests/tiering/store/contract.py):
- `put_new`, `finish_parts` and `copy_version` leave an existing object alone and raise AlreadyExists; a
  delete marker on top is not an object.
- what is stored has the CRC-64/NVME that was sent along, or ChecksumRefused is raised and nothing is stored.
- `mark_deleted` leaves every version readable, or raises NotVersioned and does nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from awscrt import checksums

from rules.identity import ObjectRef
from tiering.log.wire import Buffer

# Of the whole object, sent in one piece or in parts: see docs/decisions for why this one.
CHECKSUM_ALGORITHM: Final = "CRC64NVME"
crc64: Callable[[Buffer, int], int] = checksums.crc64nvme  # (bytes, CRC of what comes before them)

PageToken: TypeAlias = tuple[str, ...]
Entry = TypeVar("Entry")


def checksum_text(crc: int) -> str:
    """A CRC-64 as stores spell it: its 8 bytes, big end first, in base64."""
    return base64.b64encode(crc.to_bytes(8, "big")).decode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the store says of a version. A foreign object may come without a checksum of our kind."""

    size_bytes: int
    checksum: str | None
    version_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKey:
    """A live object in a listing."""

    key: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """A version or a delete marker in a listing. Of a key, the latest comes first."""

    key: str
    version_id: str
    is_latest: bool
    is_delete_marker: bool
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """A multipart upload that was neither finished nor aborted: it is invisible, and costs like an object."""

    key: str
    upload_id: str
    initiated_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Entry]):
    """Some entries, and what to ask with for those after them; None at the end."""

    entries: tuple[Entry, ...]
    next: PageToken | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """A part as the store acknowledged it."""

    number: int
    etag: str
    checksum: str


class Content(Protocol):
    """The bytes of an object or a part: each iteration gives all of them, from the start, piece by piece."""

    @property
    def size_bytes(self) -> int: ...

    def __iter__(self) -> Iterator[memoryview]: ...


class ObjectStore(Protocol):
    """One bucket. Safe to use from many threads."""

    @property
    def bucket(self) -> str: ...

    def put_new(self, key: str, content: Content, checksum: str) -> str | None:
        """Store an object where none is. The version id, where the store says it at once."""

    def start_parts(self, key: str) -> str:
        """Begin a multipart upload; its id."""

    def put_part(self, key: str, upload_id: str, number: int, content: Content, checksum: str) -> SentPart:
        """Send part `number`, counted from 1. Sent again, it replaces itself."""

    def finish_parts(
        self, key: str, upload_id: str, parts: tuple[SentPart, ...], *, size_bytes: int, checksum: str
    ) -> str | None:
        """Make the parts an object, where none is. `checksum` is of the whole. See `put_new`."""

    def abort_parts(self, key: str, upload_id: str) -> None:
        """Forget a multipart upload and its parts. One that is gone already is no error."""

    def head(self, key: str, version_id: str | None = None) -> Stored:
        """What the store has: of a version, else of the live object."""

    def read_range(self, key: str, version_id: str, start: int, end: int) -> Iterator[bytes]:
        """The bytes `[start, end)` of a version, in pieces; all of them, or an error."""

    def pour(self, key: str, version_id: str, start: int, end: int, into: memoryview) -> Iterator[memoryview]:
        """The same, each piece as the beginning of `into`, where it is until the next one is asked for."""

    def keys_page(self, prefix: str, token: PageToken | None) -> Page[ListedKey]: ...

    def versions_page(self, prefix: str, token: PageToken | None) -> Page[ListedVersion]: ...

    def uploads_page(self, prefix: str, token: PageToken | None) -> Page[PendingUpload]: ...

    def mark_deleted(self, key: str) -> str | None:
        """Put a delete marker over the live object; every version stays. The marker's version id.

        Where there is no live object it is the store's choice whether a marker is put: None if not.
        """

    def copy_version(self, source: ObjectRef) -> str | None:
        """Make a recorded version the live object again, where there is none. See `put_new`."""

    def set_hold(self, key: str, version_id: str, *, held: bool) -> None:
        """Place or release the legal hold of a version; a held version outlasts every lifecycle rule."""

    def is_held(self, key: str, version_id: str) -> bool: ...

    def keeps_versions(self) -> bool:
        """Whether versioning is on now: without it `mark_deleted` refuses."""

    def now_ms(self) -> int:
        """The store's own clock, to the second: what an age of an object is to be measured by."""
