"""From a segment's open file to an object that holds what was verified (DESIGN, T3).

The file is read once, in windows. Of each window, in this order: its bytes go into the CRC-64 of the whole
and into the part that will be sent; then every batch in it is held against its CRC-32C and the offset chain.
A bit that turns over before that check is found by it; one that turns over after is found by the store, which
computes the CRC-64 itself, of each part and of the whole. A file with a defect, or one that cannot be sent,
leaves no object.

Memory is `buffers` times `part_bytes` for all segments that are on their way at once, whatever their sizes.
A segment that fits one part is verified to its end before its first byte is sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from rules.identity import ObjectRef
from tiering.log.segment import Compaction, SegmentScan, scan
from tiering.log.wire import Buffer
from tiering.store.content import InMemory
from tiering.store.errors import DefectInSegment
from tiering.store.parts import Buffers, PartStream
from tiering.store.patient import PatientStore
from tiering.store.settle import settle

MIB = 1024 * 1024
PART_BYTES_MIN = 5 * MIB  # S3's own least size of a part that is not the last
PARTS_MAX = 10_000  # S3's own most


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """How much is in memory and on the wire at once, over all segments. The defaults hold 128 MiB."""

    part_bytes: int = 16 * MIB
    buffers: int = 8
    senders: int = 6

    def __post_init__(self) -> None:
        assert self.part_bytes >= PART_BYTES_MIN, "stores refuse smaller parts"
        assert self.buffers >= 2, "one is filled while another is sent"
        assert self.senders >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedSegment:
    """What now stands in the bucket, and what the scan of those same bytes found in them."""

    ref: ObjectRef
    scan: SegmentScan


class Uploader:
    """Sends segments, several at once where several threads ask. Close it after the last."""

    def __init__(self, store: PatientStore, limits: UploadLimits | None = None) -> None:
        limits = limits or UploadLimits()
        self._store = store
        self._size_bytes_max = limits.part_bytes * PARTS_MAX
        self._senders = ThreadPoolExecutor(limits.senders, thread_name_prefix="seawall-part")
        self._buffers = Buffers(count=limits.buffers, size_bytes=limits.part_bytes)

    def upload_segment(
        self,
        key: str,
        descriptor: int,
        *,
        base_offset: int,
        limit_offset: int | None = None,
        compaction: Compaction = Compaction.NEVER,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> UploadedSegment:
        """Store the file at `descriptor` under `key`. `limit_offset` is the next segment's base, where known.

        Raises DefectInSegment, and stores nothing, where the file is not a sound segment to its end.
        """
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > self._size_bytes_max:
            raise self._refusal(key, f"{size_bytes} bytes are more than {PARTS_MAX} parts can hold")
        with PartStream(self._store, self._senders, self._buffers, key) as stream:
            found = scan(
                descriptor,
                base_offset=base_offset,
                limit_offset=limit_offset,
                compaction=compaction,
                on_progress=on_progress,
                on_bytes=stream.add,
            )
            if found.defect is not None:
                defect = found.defect
                why = f"{defect.kind.value} at byte {defect.position}: {defect.detail}"
                raise self._refusal(key, why)
            if not found.valid_bytes == found.size_bytes == stream.size_bytes:
                why = (
                    f"{found.valid_bytes} bytes are verified, {stream.size_bytes} read, of {found.size_bytes}"
                )
                raise self._refusal(key, why)
            return UploadedSegment(ref=stream.finish(), scan=found)

    def upload_bytes(self, key: str, content: Buffer) -> ObjectRef:
        """Store a small object, an `.aux` or a `.json`, in one request."""
        body = InMemory(content)
        checksum = body.checksum
        return settle(
            self._store,
            key,
            size_bytes=body.size_bytes,
            checksum=checksum,
            write=lambda: self._store.put_new(key, body, checksum),
        )

    def mark_deleted(self, key: str) -> None:
        """Put a delete marker; the versions stay."""
        self._store.mark_deleted(key)

    def close(self) -> None:
        self._senders.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Uploader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _refusal(self, key: str, why: str) -> DefectInSegment:
        return DefectInSegment(bucket=self._store.bucket, key=key, operation="upload", why=why)
