"""What the observer reads beyond the survey: few bytes, of few files, each at most once a change.

Owns the reading, read-only. The time and end of what is closed are in its indexes and its last batches.

Invariant: None means that the file is not there any more, or cannot be read; it is never guessed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from tiering.log.directory import FileKind, Segment
from tiering.log.errors import LogFormatError
from tiering.log.index import TIME_ENTRY
from tiering.log.segment import base_offset_of, iter_batches
from tiering.retention.newest import newest_ms


class Newest(NamedTuple):
    """A segment's newest record time. Not indexed: the file's own time, which the broker goes by then."""

    at_ms: int | None
    is_indexed: bool


class Reads(Protocol):
    """The reading of single files, as the comparison asks for it."""

    def newest(self, segment: Segment) -> Newest: ...

    def size_bytes(self, path: Path) -> int | None: ...

    def data_end(self, path: Path) -> int | None: ...


class FileReads:
    """From the disk itself."""

    def newest(self, segment: Segment) -> Newest:
        try:
            entries = segment.side_file(FileKind.TIME_INDEX).stat().st_size // TIME_ENTRY.itemsize
        except OSError:
            entries = 0
        return Newest(newest_ms(segment), entries > 0)

    def size_bytes(self, path: Path) -> int | None:
        try:
            return path.stat().st_size
        except OSError:
            return None

    def data_end(self, path: Path) -> int | None:
        """Where the records of a segment file end, under whatever suffix it stands."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would hold us
        except OSError:
            return None
        end = base_offset_of(path.name)
        try:
            for batch in iter_batches(descriptor):
                end = batch.header.next_offset
        except (OSError, LogFormatError):
            pass  # a tail that is being written, or torn: the records end before it
        finally:
            os.close(descriptor)
        return end
