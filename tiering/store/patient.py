"""An object store that is asked patiently: every request with a deadline, retries and the byte rate.

This is what the rest of Seawall uses. It adds no request of its own to those of the port, and knows nothing
of segments.

What a lost answer leaves open is for whoever knows what was to be stored: `upload.settle` reads back. Here a
repeated `put_new` simply comes to AlreadyExists.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from rules.identity import ObjectRef
from tiering.store.content import PIECE_BYTES
from tiering.store.errors import Transient
from tiering.store.interface import (
    Content,
    ListedKey,
    ListedVersion,
    ObjectStore,
    Page,
    PageToken,
    PendingUpload,
    SentPart,
    Stored,
)
from tiering.store.retry import Deadline, Retried, Retrier, RetryPolicy
from tiering.store.throttle import InTurn, Pace, Throttle, unlimited

T = TypeVar("T")
Entry = TypeVar("Entry")

READ_BYTES_MAX = 64 * 1024 * 1024  # one `read_range`; whoever wants more asks again
STREAM_PIECE_BYTES = 2 * 1024 * 1024  # costs less than 1 MiB, or 512 KiB (measured: bench/scrub.py)
PAGES_MAX = 1_000_000  # a thousand million entries: more is a store that goes in circles


class PatientStore:
    """One bucket. Safe to use from many threads."""

    def __init__(self, store: ObjectStore, retrier: Retrier, pace: Pace | None = None) -> None:
        self._store = store
        self._retrier = retrier
        self._pace = pace or unlimited()

    def paced_by(self, pace: Pace) -> PatientStore:
        """The same bucket, for bytes that keep to another rate as well."""
        return PatientStore(self._store, self._retrier, InTurn(self._pace, pace))

    @property
    def bucket(self) -> str:
        return self._store.bucket

    def put_new(self, key: str, content: Content, checksum: str) -> str | None:
        return self._retrier.run(
            lambda deadline: self._store.put_new(key, self._paced(content, deadline, key, "put"), checksum)
        )

    def start_parts(self, key: str) -> str:
        return self._retrier.run(lambda _: self._store.start_parts(key))

    def put_part(self, key: str, upload_id: str, number: int, content: Content, checksum: str) -> SentPart:
        operation = f"part {number}"
        return self._retrier.run(
            lambda deadline: self._store.put_part(
                key, upload_id, number, self._paced(content, deadline, key, operation), checksum
            )
        )

    def finish_parts(
        self, key: str, upload_id: str, parts: tuple[SentPart, ...], *, size_bytes: int, checksum: str
    ) -> str | None:
        return self._retrier.run(
            lambda _: self._store.finish_parts(
                key, upload_id, parts, size_bytes=size_bytes, checksum=checksum
            )
        )

    def abort_parts(self, key: str, upload_id: str) -> None:
        self._retrier.run(lambda _: self._store.abort_parts(key, upload_id))

    def head(self, key: str, version_id: str | None = None) -> Stored:
        return self._retrier.run(lambda _: self._store.head(key, version_id))

    def read_range(self, key: str, version_id: str, start: int, end: int) -> bytes:
        """The bytes `[start, end)` of a version, all of them."""
        assert 0 <= start <= end <= start + READ_BYTES_MAX, (start, end)
        if start == end:
            return b""
        return self._retrier.run(lambda deadline: self._read_whole(key, version_id, start, end, deadline))

    def stream(self, key: str, version_id: str, start: int, end: int) -> Iterator[memoryview]:
        """The same of a range of any size, in pieces as they come; each is there until the next is asked for.

        An answer that breaks off is asked for again from where it stopped, with attempts of its own.
        """
        if start == end:
            return
        coming = _Coming(self._store, key, version_id, start, end)
        try:
            while coming.at < end:
                yield self._retrier.run(lambda _: coming.next())
        finally:
            coming.drop()

    def list_keys(self, prefix: str) -> Iterator[ListedKey]:
        """Every live object under the prefix, in the order of keys."""
        return self._walk(prefix, "list keys", self._store.keys_page)

    def list_versions(self, prefix: str) -> Iterator[ListedVersion]:
        """Every version and delete marker under the prefix, in the order of keys, the latest first."""
        return self._walk(prefix, "list versions", self._store.versions_page)

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        """Every multipart upload under the prefix that was neither finished nor aborted."""
        return self._walk(prefix, "list uploads", self._store.uploads_page)

    def mark_deleted(self, key: str) -> str | None:
        return self._retrier.run(lambda _: self._store.mark_deleted(key))

    def copy_version(self, source: ObjectRef) -> str | None:
        return self._retrier.run(lambda _: self._store.copy_version(source))

    def set_hold(self, key: str, version_id: str, *, held: bool) -> None:
        self._retrier.run(lambda _: self._store.set_hold(key, version_id, held=held))

    def is_held(self, key: str, version_id: str) -> bool:
        return self._retrier.run(lambda _: self._store.is_held(key, version_id))

    def keeps_versions(self) -> bool:
        return self._retrier.run(lambda _: self._store.keeps_versions())

    def now_ms(self) -> int:
        return self._retrier.run(lambda _: self._store.now_ms())

    def _paced(self, content: Content, deadline: Deadline, key: str, operation: str) -> Content:
        def check() -> None:
            deadline.check(bucket=self.bucket, key=key, operation=operation)

        return _Paced(content, self._pace, deadline, check)

    def _read_whole(self, key: str, version_id: str, start: int, end: int, deadline: Deadline) -> bytes:
        found: list[bytes] = []
        for piece in self._store.read_range(key, version_id, start, end):
            found.append(piece)
            deadline.check(bucket=self.bucket, key=key, operation="read")
        whole = b"".join(found)
        if len(whole) != end - start:
            why = f"{len(whole)} bytes came of {end - start}"
            raise Transient(bucket=self.bucket, key=key, operation="read", why=why)
        return whole

    def _walk(
        self, prefix: str, operation: str, page_of: Callable[[str, PageToken | None], Page[Entry]]
    ) -> Iterator[Entry]:
        token: PageToken | None = None
        before: frozenset[Entry] = frozenset()
        for _ in range(PAGES_MAX):
            page = self._page(page_of, prefix, token)
            # Some stores begin a page with entries of the page before (versitygw 1.8: delete markers).
            yield from (entry for entry in page.entries if entry not in before)
            if page.next is None:
                return
            if page.next == token:
                break
            token, before = page.next, frozenset(page.entries)
        why = "the listing does not get any further"
        raise Transient(bucket=self.bucket, key=prefix, operation=operation, why=why)

    def _page(
        self, page_of: Callable[[str, PageToken | None], Page[Entry]], prefix: str, token: PageToken | None
    ) -> Page[Entry]:
        return self._retrier.run(lambda _: page_of(prefix, token))


class _Coming:
    """A range on its way: how far it came, and the answer that it comes from."""

    def __init__(self, store: ObjectStore, key: str, version_id: str, start: int, end: int) -> None:
        self._store, self._key, self._version_id, self._end = store, key, version_id, end
        self.at = start
        self._into = memoryview(_pages(min(STREAM_PIECE_BYTES, end - start)))
        self._pieces: Iterator[memoryview] | None = None

    def next(self) -> memoryview:
        if self._pieces is None:
            self._pieces = self._store.pour(self._key, self._version_id, self.at, self._end, self._into)
        try:
            piece = next(self._pieces, self._into[:0])
        except BaseException:
            self._pieces = None  # it ended with what it raised
            raise
        if not piece or self.at + len(piece) > self._end:
            self.drop()
            why = f"{self.at + len(piece)} bytes came of {self._end}"
            raise Transient(bucket=self._store.bucket, key=self._key, operation="read", why=why)
        self.at += len(piece)
        return piece

    def drop(self) -> None:
        """Let go of the answer, and of its connection."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()
        self._pieces = None


def _pages(size_bytes: int) -> mmap.mmap:
    """Memory of the kernel's own: what is freed into malloc's arenas, one for each thread, stays there.

    In large pages, where there are any: 2 MiB in small ones cost more to have than to fill.
    """
    pages = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # on Linux alone, and not in every kernel there
        with contextlib.suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


class _Paced:
    """Content that waits for the byte rate before each piece, and stops where the attempt's time is up."""

    def __init__(self, content: Content, pace: Pace, deadline: Deadline, check: Callable[[], None]) -> None:
        self._content = content
        self._pace = pace
        self._deadline = deadline
        self._check = check

    @property
    def size_bytes(self) -> int:
        return self._content.size_bytes

    def __iter__(self) -> Iterator[memoryview]:
        for piece in self._content:
            self._deadline.extend(self._pace.take(len(piece)))
            self._check()
            yield piece


def patient(
    store: ObjectStore,
    *,
    policy: RetryPolicy | None = None,
    bytes_per_s: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
    on_retry: Callable[[Retried], None] = lambda _: None,
) -> PatientStore:
    """With this machine's clock and its randomness. `sleep` may raise, to end all waiting at a stop."""
    # Seeded apart from `random`'s own state: two agents started by one program must not pause in step.
    draw = random.Random(os.urandom(16)).random
    retrier = Retrier(
        policy or RetryPolicy(), clock=time.monotonic, sleep=sleep, random=draw, on_retry=on_retry
    )
    throttle = Throttle(
        bytes_per_s=bytes_per_s,
        burst_bytes=4 * PIECE_BYTES,
        clock=time.monotonic,
        sleep=sleep,
    )
    return PatientStore(store, retrier, throttle)
