"""A process that replays many segments' records into a reference table, and prints what memory it took.

`python -m tests.tiering.segments.many_segments SEGMENTS FOLDER`. The records come as a follower hands them
on, and are made on the way; the maker keeps none. They are of 1,000 logs, one behind the other in turn, each
a finished copy. What no two segments have in common is drawn anew for each (ids, checksums, versions of the
objects), so that the values do not compress better than they would in life. Then the table is kept on disk,
as the agent does it, and each log is looked up.
"""

from __future__ import annotations

import base64
import json
import random
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.tiering.segments.strategies import CLUSTER_ID, log_record, segment
from tiering.segments.codec import decode_segment, encode_log, encode_segment
from tiering.segments.frontier import Frontier, frontier
from tiering.segments.keys import log_key, metadata_partition, segment_key
from tiering.segments.records import LogId, ObjectRef, SegmentId, SegmentObjects
from tiering.segments.seal import NAME, row_of, sealed
from tiering.segments.snapshot import path_of, snapshot_of
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord

LOGS = 1000
PARTITIONS = 16
BATCH = 1000
OFFSETS_EACH = 50_000
TOPIC_ID = "CgkTzsXgRlOwPTRJHnL2yg"
TOPIC = MetadataTopic(cluster_id=CLUSTER_ID, topic_id="kQfXJ2mZQ5e1bYv0x3rT8w", partition_count=PARTITIONS)
# Marks in a template, each as long as what takes its place.
IDENTITY, EVENT = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CHECKSUMS = ("AAAAAAAAAAA=", "BBBBBBBBBBA=", "CCCCCCCCCCA=")
VERSIONS = ("L" * 32, "X" * 32, "J" * 32)  # as long as those of S3
PARTITION = "/4321/", '"partition":4321,'
_DRAWN = (IDENTITY, EVENT, *CHECKSUMS, *VERSIONS, *PARTITION)
_MARKS = re.compile("|".join(map(re.escape, _DRAWN)).encode("ascii"))


def main(segments: int, folder: Path) -> None:
    tables = [PartitionTable(TOPIC, number, complete_from=2**62) for number in range(PARTITIONS)]
    for partition, batch in _batches(segments):
        assert not tables[partition].apply_many(batch)
    replayed = _peak_bytes()
    for table in tables:
        path_of(folder, table.partition).write_bytes(snapshot_of(table, at_end_ms=0))
    told = {
        "covered_segments": sum(_covered(ReferenceTable(tables))),
        "replayed_bytes": replayed,
        "peak_bytes": _peak_bytes(),
    }
    print(json.dumps(told))  # noqa: T201 the answer


def _covered(table: ReferenceTable) -> Iterator[int]:
    """How many segments there are in each log up to its frontier."""
    for log in table.logs():
        view = table.view(log)
        assert view is not None
        found = frontier(view)
        assert isinstance(found, Frontier)
        yield found.offset // OFFSETS_EACH


def _batches(segments: int) -> Iterator[tuple[int, list[TopicRecord]]]:
    ends = [0] * PARTITIONS
    waiting: list[list[TopicRecord]] = [[] for _ in range(PARTITIONS)]
    for partition, key, value in _records(segments):
        waiting[partition].append(TopicRecord(ends[partition], key, value))
        ends[partition] += 1
        if len(waiting[partition]) == BATCH:
            yield partition, waiting[partition]
            waiting[partition] = []
    yield from enumerate(waiting)


def _records(segments: int) -> Iterator[tuple[int, bytes, bytes]]:
    chance = random.Random(1)
    logs = [LogId(CLUSTER_ID, TOPIC_ID, number) for number in range(LOGS)]
    partitions = [metadata_partition(log, PARTITIONS) for log in logs]
    for log, partition in zip(logs, partitions, strict=True):
        yield partition, log_key(log), encode_log(log_record(0, log=log))
    for number in range(segments // LOGS):
        pieces, marks, row = _template(number)
        for log, partition in zip(logs, partitions, strict=True):
            drawn = _drawn(chance, log.partition)
            filled = [drawn[mark] for mark in marks]
            body = b"".join(part for pair in zip(pieces, [*filled, b""], strict=True) for part in pair)
            key = segment_key(log, SegmentId(drawn[IDENTITY.encode()].decode()))
            value = sealed(body, key, CLUSTER_ID, row)
            if log.partition == number:  # one of each log is looked at: it is what `encode_segment` writes
                assert encode_segment(decode_segment(value)) == value
            yield partition, key, value


def _drawn(chance: random.Random, partition: int) -> dict[bytes, bytes]:
    texts = [
        *(str(uuid.UUID(bytes=chance.randbytes(16), version=4)) for _ in range(2)),
        *(base64.b64encode(chance.randbytes(8)).decode() for _ in CHECKSUMS),
        *(base64.urlsafe_b64encode(chance.randbytes(24)).decode() for _ in VERSIONS),
        f"/{partition}/",
        f'"partition":{partition},',
    ]
    return {mark.encode(): text.encode() for mark, text in zip(_DRAWN, texts, strict=True)}


def _template(number: int) -> tuple[list[bytes], list[bytes], bytes]:
    """A finished copy's JSON around the marks in it, these, and its row, which is one for all logs."""
    base, log = number * OFFSETS_EACH, LogId(CLUSTER_ID, TOPIC_ID, 4321)
    record = segment(number, base, base + OFFSETS_EACH, log=log)
    stem = record.key_stem.replace(record.segment_id, IDENTITY)
    sizes = (("log", (1 << 30) + base), ("aux", 1 << 20), ("json", 1100))
    refs = [
        ObjectRef(f"{stem}.{kind}", size, "CRC64NVME", checksum, version)
        for (kind, size), checksum, version in zip(sizes, CHECKSUMS, VERSIONS, strict=True)
    ]
    whole = replace(
        record,
        segment_id=SegmentId(IDENTITY),
        event_id=EVENT,
        key_stem=stem,
        size_bytes=refs[0].size_bytes,
        objects=SegmentObjects(log=refs[0], aux=refs[1], json=refs[2]),
    )
    value = encode_segment(whole)
    body = value[: value.rindex(f',"{NAME}"'.encode("ascii"))] + b"}"
    return _MARKS.split(body), _MARKS.findall(body), row_of(whole)


def _peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("Linux says how much memory a process has had")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
