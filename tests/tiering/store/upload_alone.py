"""A process that uploads one segment to nowhere, and prints its own peak of memory in bytes.

`python -m tests.tiering.store.upload_alone SEGMENT`. The store takes every byte, checks it and keeps none.
boto3 is imported because a real uploader has it in memory too.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path

import boto3  # noqa: F401 its memory counts

from tests.tiering.store.memory import MemoryStore
from tiering.store.interface import Content, SentPart, Stored, checksum_text, crc64
from tiering.store.patient import patient
from tiering.store.upload import Uploader, UploadLimits


class Nowhere(MemoryStore):
    """A store that believes what it is told at the finish, having checked each part."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self.stored = Stored(size_bytes=0, checksum=None, version_id="1")
        self._together = together
        self._meet = threading.Barrier(together)

    def put_part(self, key: str, upload_id: str, number: int, content: Content, checksum: str) -> SentPart:
        if number <= self._together:
            self._meet.wait(timeout=60)  # so many parts are in memory at once, as with a slow store
        crc = 0
        for piece in content:
            crc = crc64(piece, crc)
        assert checksum_text(crc) == checksum
        return SentPart(number=number, etag="", checksum=checksum)

    def finish_parts(
        self, key: str, upload_id: str, parts: tuple[SentPart, ...], *, size_bytes: int, checksum: str
    ) -> str | None:
        self.stored = Stored(size_bytes=size_bytes, checksum=checksum, version_id="1")
        return "1"

    def head(self, key: str, version_id: str | None = None) -> Stored:
        return self.stored


def main(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    with Uploader(patient(Nowhere(UploadLimits().senders))) as uploader:
        uploaded = uploader.upload_segment("segment", descriptor, base_offset=0)
    assert uploaded.ref.size_bytes == path.stat().st_size
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    print(int(peak[1]) * 1024)  # noqa: T201 the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
