"""The walking skeleton: from records produced to bytes read back out of S3, each claim proved on the way.

Owns the story's order and its proofs. It holds no logic of its own: brokers and bucket are seawall/local's,
reading and judging segments is tiering.log's. Nothing outside `folder` is touched, and nothing of it is
needed afterwards.

Invariant: a chapter that returns has proved what it says; what does not hold raises ProofFailed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crc32c

from seawall.local import kafka, s3
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.errors import UploadRefused
from tiering.log.batch import read_header, read_records
from tiering.log.directory import Segment, read_partition_directory
from tiering.log.segment import Compaction, Depth, iter_batches, scan_segment
from tiering.log.verify import verify_segment
from tiering.outcome import Verified

TOPIC = "tides"
SEGMENT_BYTES = 8 * 1024 * 1024
RECORDS = 64_000
RECORD_BYTES = 1_000
PREFIX = f"demo/{TOPIC}/0/"
RANGE_BATCHES = 20
INTO_BATCH_BYTES = 500  # past the 61 bytes of its header, among its records


class ProofFailed(Exception):
    """A claim of the story does not hold: an outcome, not a failure to look, so it has no code of its own."""

    def __init__(self, claim: str, found: object) -> None:
        super().__init__(f"the demo's proof does not hold: {claim}\n\nFound instead: {found}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a chapter proved, in words and in numbers."""

    says: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    name: str
    doing: str
    act: Callable[[], Told]


def prove(claim: str, holds: bool, found: object = "") -> None:
    if not holds:
        raise ProofFailed(claim, found)


class Demo:
    """The story over one folder. Use it as a context: leaving it ends every server, whatever happened."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers = ExitStack()
        self._closed: tuple[Segment, ...] = ()
        self._crcs: dict[str, int] = {}

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    def chapters(self) -> Iterator[Chapter]:
        """In order; each needs those before it."""
        yield Chapter(name="start", doing="starting a broker and a bucket", act=self.start)
        yield Chapter(name="produce", doing="producing until segments close", act=self.produce)
        yield Chapter(name="verify", doing="verifying the closed segments", act=self.verify)
        yield Chapter(name="copy", doing="copying them to S3", act=self.copy)
        yield Chapter(name="damage", doing="flipping one bit", act=self.damage)
        yield Chapter(name="list", doing="listing what S3 holds", act=self.list_objects)
        yield Chapter(name="read", doing="reading a range back", act=self.read_back)

    def start(self) -> Told:
        self._cluster = LocalCluster(self._folder / "kafka")
        self._bucket = LocalBucket(self._folder)
        self._servers.enter_context(self._bucket)
        self._servers.enter_context(self._cluster)
        self._s3 = self._bucket.client()
        return Told(
            says=f"a Kafka broker at {self._cluster.bootstrap}, and an S3 bucket at "
            f"{self._bucket.address.endpoint_url} with versions and object lock",
            facts={"broker": self._cluster.bootstrap, "bucket": self._bucket.address.endpoint_url},
        )

    def produce(self) -> Told:
        bootstrap = self._cluster.bootstrap
        kafka.create_topic(bootstrap, TOPIC, config={"segment.bytes": str(SEGMENT_BYTES)})
        acknowledged = kafka.produce(bootstrap, TOPIC, _values(RECORDS))
        prove("every record was acknowledged", acknowledged == RECORDS, f"{acknowledged} of {RECORDS}")
        listing = read_partition_directory(self._cluster.log_dirs()[0] / f"{TOPIC}-0")
        self._closed = tuple(segment for segment in listing.segments if segment.is_closed)
        prove("segments have closed", bool(self._closed), f"{len(listing.segments)} segment files")
        return Told(
            says=f"{acknowledged:,} records acknowledged; {len(self._closed)} segments closed, one active",
            facts={"records": acknowledged, "closed_segments": len(self._closed)},
        )

    def verify(self) -> Told:
        """Every byte under a CRC, offsets without a hole from 0 to where the active segment begins."""
        batches, expected_base = 0, 0
        for segment in self._closed:
            checked = verify_segment(segment, Depth.BATCHES, Compaction.NEVER)
            claim = f"{segment.path.name} is what Kafka wrote"
            prove(claim, isinstance(checked.outcome, Verified), checked.outcome)
            prove("segments follow each other", segment.base_offset == expected_base, segment.base_offset)
            expected_base = segment.end_offset or -1
            batches += checked.scan.batch_count if checked.scan else 0
        size_bytes = sum(segment.size_bytes for segment in self._closed)
        return Told(
            says=f"{batches:,} batches in {_mib(size_bytes)}: every CRC-32C right, "
            f"offsets [0, {expected_base:,}) without a hole",
            facts={"batches": batches, "size_bytes": size_bytes, "end_offset": expected_base},
        )

    def copy(self) -> Told:
        for segment in self._closed:
            body = segment.path.read_bytes()
            key = PREFIX + segment.path.name
            self._crcs[key] = crc32c.crc32c(body)
            s3.put_once(self._s3, self._bucket.name, key, body, crc=self._crcs[key])
        size_bytes = sum(segment.size_bytes for segment in self._closed)
        return Told(
            says=f"{len(self._closed)} segments, {_mib(size_bytes)}, each stored once, "
            "with a CRC-32C that the store checked",
            facts={"objects": len(self._closed), "size_bytes": size_bytes},
        )

    def damage(self) -> Told:
        """The same segment with one bit flipped is noticed on disk, and S3 does not take it for the other."""
        segment = self._closed[0]
        body = bytearray(segment.path.read_bytes())
        flipped_at = _batch_range(segment.path)[0] + INTO_BATCH_BYTES
        body[flipped_at] ^= 1
        copy = self._folder / "damaged" / segment.path.name
        copy.parent.mkdir()
        copy.write_bytes(body)
        defect = scan_segment(copy).defect
        prove("a scan finds the flipped bit", defect is not None)
        assert defect is not None
        key = f"{PREFIX}damaged.log"
        crc = self._crcs[PREFIX + segment.path.name]
        try:
            s3.put_once(self._s3, self._bucket.name, key, bytes(body), crc=crc)
        except UploadRefused as refused:
            prove("the store names the reason", refused.why == "BadDigest", refused.why)
        else:
            prove("the store refuses it", False, "it took the object")
        return Told(
            says=f"one bit flipped at byte {flipped_at:,} of a copy: the scan says {defect.kind.value} "
            f"in the batch at byte {defect.position:,}, and S3 refuses the upload",
            facts={
                "flipped_at": flipped_at,
                "defect": defect.kind.value,
                "position": defect.position,
                "refused": "BadDigest",
            },
        )

    def list_objects(self) -> Told:
        listed = s3.sizes_by_key(self._s3, self._bucket.name, PREFIX)
        expected = {PREFIX + segment.path.name: segment.size_bytes for segment in self._closed}
        prove("the bucket holds these objects and no other", listed == expected, listed)
        for key, crc in self._crcs.items():
            stored = s3.stored_crc32c(self._s3, self._bucket.name, key)
            prove(f"{key} is kept with its checksum", stored == s3.base64_crc32c(crc), stored)
        return Told(
            says=f"{len(listed)} objects, sizes and checksums as they were committed",
            facts={"objects": len(listed), "size_bytes": sum(listed.values())},
        )

    def read_back(self) -> Told:
        """A range of one object against the same bytes on the broker's disk, and as records."""
        segment = self._closed[len(self._closed) // 2]
        start, end = _batch_range(segment.path)
        found = s3.read_range(self._s3, self._bucket.name, PREFIX + segment.path.name, start, end)
        with segment.path.open("rb") as local:
            local.seek(start)
            prove("the range is byte-equal with the file", found == local.read(end - start), len(found))
        offsets = list(_offsets(memoryview(found)))
        prove(
            "its records follow each other", offsets == list(range(offsets[0], offsets[-1] + 1)), offsets[:3]
        )
        return Told(
            says=f"bytes [{start:,}, {end:,}) of {segment.path.name}: equal to the broker's file, "
            f"and they are the records [{offsets[0]:,}, {offsets[-1] + 1:,})",
            facts={
                "object": PREFIX + segment.path.name,
                "range": [start, end],
                "offsets": [offsets[0], offsets[-1] + 1],
            },
        )


def _values(count: int) -> Iterable[bytes]:
    filler = b"." * RECORD_BYTES
    return ((b"high water at quay %08d " % number + filler)[:RECORD_BYTES] for number in range(count))


def _batch_range(path: Path) -> tuple[int, int]:
    """Where some batches in the middle of a segment begin and end."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        ends = [batch.position + batch.header.size_bytes for batch in iter_batches(descriptor)]
    finally:
        os.close(descriptor)
    middle = len(ends) // 2
    return ends[middle - 1], ends[min(middle + RANGE_BATCHES, len(ends)) - 1]


def _offsets(batches: memoryview) -> Iterator[int]:
    while batches:
        header = read_header(batches)
        yield from (record.offset for record in read_records(batches[: header.size_bytes], header))
        batches = batches[header.size_bytes :]


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.1f} MiB"
