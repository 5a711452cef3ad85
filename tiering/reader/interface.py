"""What a reader is given and what it gives: the ports and the values.

Owns the vocabulary. `TieredLog` is a log as it stood at one moment: its coverage, and where the record of a
segment is to be had.

Invariant: the clips of the batches of a range, gaps included, are in order, do not overlap and leave nothing
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import NamedTuple, Protocol

from rules.identity import LogId
from tiering.log.batch import BatchHeader, Record, read_header, read_records
from tiering.outcome import Inconclusive
from tiering.segments.coverage import Coverage, coverage
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.segments.table import ReferenceTable
from tiering.store.interface import Stored

MIB = 1024 * 1024


class Isolation(str, Enum):
    """Whether records of aborted transactions are shown. Control records never are."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class Objects(Protocol):
    """The bucket, as a reader uses it. PatientStore is one."""

    @property
    def bucket(self) -> str: ...

    def read_range(self, key: str, version_id: str, start: int, end: int) -> bytes: ...

    def head(self, key: str, version_id: str | None = None) -> Stored: ...


class ChunkName(NamedTuple):
    """A chunk of one version of one object: bytes `[place * chunk_bytes, ...)`, `size_bytes` of them."""

    bucket: str
    key: str
    version_id: str
    chunk_bytes: int
    place: int
    size_bytes: int


class ChunkCache(Protocol):
    """Chunks kept near. What it gives is what was put, or nothing; it never fails its user."""

    def get(self, name: ChunkName) -> bytes | None: ...

    def put(self, name: ChunkName, content: bytes) -> None: ...

    def drop(self, name: ChunkName) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLimits:
    """What is in memory and on the wire: a read holds `ahead_chunks` + 2 chunks and a batch at most."""

    chunk_bytes: int = 2 * MIB
    ahead_chunks: int = 12
    fetchers: int = 6

    def __post_init__(self) -> None:
        assert self.chunk_bytes >= 1
        assert self.ahead_chunks >= 0
        assert self.fetchers >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredLog:
    """One log as the table had it: what covers which offset, and the record of each segment.

    `segment` is called by the thread that reads. Where another fills the table, it has to be safe for that.
    """

    log: LogId
    coverage: Coverage
    segment: Callable[[SegmentId], SegmentRecord | None]

    @property
    def start(self) -> int:
        return self.coverage.frontier.start

    @property
    def end(self) -> int:
        """The frontier: from here on nothing is read from the tier."""
        return self.coverage.frontier.offset


def tiered_log(table: ReferenceTable, log: LogId) -> TieredLog | Inconclusive:
    """A log of a table, as it stands now."""
    partition = table.of(log)
    view = None if partition is None else partition.view(log)
    if partition is None or view is None:
        return Inconclusive("the metadata topic has no record of the log")
    found = coverage(view)
    if isinstance(found, Inconclusive):
        return found
    return TieredLog(log=log, coverage=found, segment=lambda segment_id: partition.segment(log, segment_id))


class StoredBatch(NamedTuple):
    """A whole batch, byte for byte as the broker had it, of which `[start, end)` was asked for."""

    header: BatchHeader
    content: memoryview
    start: int
    end: int
    segment_id: SegmentId
    position: int  # in the segment

    def records(self) -> Iterator[Record]:
        """The records that were asked for. Raises LogFormatError where the bytes hold no such records."""
        for record in read_records(self.content, self.header):
            if self.start <= record.offset < self.end:
                yield record


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """Whole batches of one segment, back to back: batch `i` is `content[bounds[i] : bounds[i + 1]]`.

    What they have in common with a StoredBatch means the same. Taken together, batches cost a tenth of what
    they cost one by one.
    """

    content: memoryview
    bounds: Sequence[int]
    bases: Sequence[int]  # base offset of each batch
    next_offset: int  # behind the last of them
    start: int
    end: int
    segment_id: SegmentId
    position: int  # of the first, in the segment

    def __len__(self) -> int:
        return len(self.bases)

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    def split(self, count: int) -> tuple[StoredRun, StoredRun]:
        """The first `count` batches, and the others: some of each."""
        assert 0 < count < len(self), (count, len(self))
        cut, at = self.bounds[count], self.bases[count]
        first = replace(
            self,
            content=self.content[:cut],
            bounds=self.bounds[: count + 1],
            bases=self.bases[:count],
            next_offset=at,
            end=min(self.end, at),
        )
        others = replace(
            self,
            content=self.content[cut:],
            bounds=[each - cut for each in self.bounds[count:]],
            bases=self.bases[count:],
            start=max(self.start, at),
            position=self.position + cut,
        )
        return first, others

    def batches(self) -> Iterator[StoredBatch]:
        """One by one."""
        for begin, end in pairwise(self.bounds):
            content = self.content[begin:end]
            header = read_header(content)
            yield StoredBatch(
                header=header,
                content=content,
                start=max(header.base_offset, self.start),
                end=min(header.next_offset, self.end),
                segment_id=self.segment_id,
                position=self.position + begin,
            )


class Gap(NamedTuple):
    """`[start, end)` is on record as lost: no copy and no replica has it."""

    start: int
    end: int
