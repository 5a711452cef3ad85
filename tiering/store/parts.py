"""A stream of bytes as one object, or as the parts of one: cut, sent by several threads, finished or undone.

Owns the buffers, so that memory is bounded by their number whatever is sent. What fits one buffer goes out as
one request, when it is complete; anything longer in parts of equal size (some stores insist on that), each of
them on its way while the next is filled. The CRC-64 of the whole is taken from the bytes as they come in, the
one of a part from the buffer as it goes out: the store compares both with what it received.

Invariant: unless `finish` returned, no object was made; the upload is aborted, or listed by `list_uploads`.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from types import TracebackType

from rules.identity import ObjectRef
from tiering.store.content import InMemory
from tiering.store.errors import StoreError
from tiering.store.interface import SentPart, checksum_text, crc64
from tiering.store.patient import PatientStore
from tiering.store.settle import settle


class Buffers:
    """A fixed number of equal buffers, made when first needed and used again."""

    def __init__(self, *, count: int, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._left_to_make = count
        self._lock = threading.Lock()
        self._free: SimpleQueue[bytearray] = SimpleQueue()

    def take(self) -> bytearray:
        """A buffer of nobody else's; waits until there is one."""
        try:
            return self._free.get_nowait()
        except Empty:
            pass
        with self._lock:
            may_make = self._left_to_make > 0
            self._left_to_make -= may_make
        return bytearray(self.size_bytes) if may_make else self._free.get()

    def give_back(self, buffer: bytearray) -> None:
        self._free.put(buffer)


class PartStream:
    """One object on its way. `add` its bytes in order, then `finish`; leaving the `with` before undoes it."""

    def __init__(self, store: PatientStore, senders: ThreadPoolExecutor, buffers: Buffers, key: str) -> None:
        self._store = store
        self._senders = senders
        self._buffers = buffers
        self._key = key
        self._crc = 0
        self.size_bytes = 0  # taken in so far
        self._buffer: bytearray | None = None
        self._filled_bytes = 0
        self._upload_id: str | None = None
        self._sent: list[Future[SentPart]] = []
        self._is_finished = False

    def add(self, content: memoryview) -> None:
        """Take in more bytes. Raises what befell an earlier part as soon as it is known."""
        self._crc = crc64(content, self._crc)
        self.size_bytes += len(content)
        taken = 0
        while taken < len(content):
            buffer = self._room()
            step = min(len(content) - taken, len(buffer) - self._filled_bytes)
            buffer[self._filled_bytes : self._filled_bytes + step] = content[taken : taken + step]
            self._filled_bytes += step
            taken += step

    def finish(self) -> ObjectRef:
        """Make it an object, and read back what the store has."""
        checksum = checksum_text(self._crc)
        ref = settle(
            self._store,
            self._key,
            size_bytes=self.size_bytes,
            checksum=checksum,
            write=lambda: self._put_whole(checksum) if self._upload_id is None else self._join(checksum),
        )
        self._is_finished = True
        return ref

    def _room(self) -> bytearray:
        """The buffer to fill; a full one is sent first, now that more follows it."""
        if self._buffer is not None and self._filled_bytes == len(self._buffer):
            self._send_buffer()
        if self._buffer is None:
            self._buffer = self._buffers.take()
            self._filled_bytes = 0
            self._raise_failure()
        return self._buffer

    def _send_buffer(self) -> None:
        if self._upload_id is None:
            self._upload_id = self._store.start_parts(self._key)
        assert self._buffer is not None
        buffer, self._buffer = self._buffer, None
        number = len(self._sent) + 1
        sent = self._senders.submit(
            self._send, self._upload_id, number, memoryview(buffer)[: self._filled_bytes]
        )
        sent.add_done_callback(lambda _: self._buffers.give_back(buffer))
        self._sent.append(sent)

    def _send(self, upload_id: str, number: int, content: memoryview) -> SentPart:
        with content:
            body = InMemory(content)
            return self._store.put_part(self._key, upload_id, number, body, body.checksum)

    def _raise_failure(self) -> None:
        for sent in self._sent:
            if sent.done():
                sent.result()

    def _put_whole(self, checksum: str) -> str | None:
        with memoryview(self._buffer or b"")[: self._filled_bytes] as content:
            return self._store.put_new(self._key, InMemory(content), checksum)

    def _join(self, checksum: str) -> str | None:
        assert self._upload_id is not None
        self._send_buffer()
        parts = tuple(sent.result() for sent in self._sent)
        return self._store.finish_parts(
            self._key, self._upload_id, parts, size_bytes=self.size_bytes, checksum=checksum
        )

    def _undo(self) -> None:
        for sent in self._sent:
            sent.cancel()
        wait(self._sent)  # a part that arrives after the abort would stay, and cost, for ever
        if self._upload_id is not None:
            try:
                self._store.abort_parts(self._key, self._upload_id)
            except StoreError:
                return  # what went wrong before matters more; `abort_stale_uploads` finds what is left

    def __enter__(self) -> PartStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._is_finished:
                self._undo()
        finally:
            if self._buffer is not None:
                self._buffers.give_back(self._buffer)
                self._buffer = None
