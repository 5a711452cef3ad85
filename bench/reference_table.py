"""Load the metadata of a million segments into the reference table: records a second, and bytes of memory.

What is timed is the work on records that are read from the topic already: 1,000 logs of 1,000 finished copies
each, one behind the other in turn, in batches as a follower hands them on, below the end at which the replay
began. Our table checks each record's seal and keeps every value to be had again. The peers keep the last
value of each key, with its columns, and check nothing:

    dict      json.loads, and a dataclass with slots for each, in a dict
    sqlite3   json.loads, and an upsert into a table in memory, of the standard library

Each run is a process of its own. `rss_bytes` is what it grew by while it loaded, `cpu_s` what loading took of
the processor, in all threads: ours, then the peer's. `records_per_s` is ours, by the median.

The digests of the records are made when the first one is asked for: an agent does, once for each partition
after a replay; who reads, serves or restores does not. `digests_s` is what the digests of all logs take then,
`records_per_s_with_digests` what is left of the speed for who wants them all. The records are made once and
kept.
"""

from __future__ import annotations

import json
import pickle
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import compare
from tests.tiering.segments.strategies import CLUSTER_ID, log_record, objects_of, segment
from tiering.segments.codec import decode_segment, encode_log, encode_segment
from tiering.segments.keys import log_key, metadata_partition, segment_key
from tiering.segments.records import LogId, SegmentId
from tiering.segments.seal import NAME, row_of, sealed
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, TopicRecord

FILE = Path("build/bench/reference_table.pickle")
LOGS = 1000
SEGMENTS_EACH = 1000
PARTITIONS = 16
BATCH = 10_000
OFFSETS_EACH = 50_000
TOPIC_ID = "CgkTzsXgRlOwPTRJHnL2yg"
TOPIC = MetadataTopic(cluster_id=CLUSTER_ID, topic_id="kQfXJ2mZQ5e1bYv0x3rT8w", partition_count=PARTITIONS)
SEGMENTS = LOGS * SEGMENTS_EACH
ID, PARTITION = b"@segment@", b"@partition@"
PEERS = ("dict", "sqlite3")


def main() -> None:
    if not FILE.exists():
        print(f"bench: making {FILE}", file=sys.stderr)  # noqa: T201 a minute of silence wants a word
        _write()
    for peer in PEERS:
        _compare(peer)


def _compare(peer: str) -> None:
    ran: dict[str, list[dict[str, float]]] = {"table": [], peer: []}

    def load(loader: str) -> float:
        """Seconds that one load takes, in a process of its own."""
        child = [sys.executable, "-m", "bench.reference_table", loader]
        found = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE).stdout)
        ran[loader].append(found)
        return float(found["load_s"])

    def each(name: str) -> list[float]:
        return [round(median(run[name] for run in runs[1:]), 2) for runs in ran.values()]

    compare(
        "reference_table",
        f"{peer}, the last value of each key",
        ours=lambda: load("table"),
        theirs=lambda: load(peer),
        more=lambda: {
            "segments": SEGMENTS,
            "records_per_s": round((SEGMENTS + LOGS) / each("load_s")[0]),
            "digests_s": each("digests_s")[0],
            "records_per_s_with_digests": round(
                (SEGMENTS + LOGS) / (each("load_s")[0] + each("digests_s")[0])
            ),
            "cpu_s": each("cpu_s"),
            "rss_bytes": each("rss_bytes"),
        },
    )


def _child(loader: str) -> None:
    apply, digests = {"table": _table, "dict": _dict, "sqlite3": _sqlite}[loader]()
    before, load_s, cpu_s = _rss_bytes(), 0.0, 0.0
    for partition, batch in _batches():
        began, cpu_began = time.perf_counter(), time.process_time()
        apply(partition, batch)
        load_s += time.perf_counter() - began
        cpu_s += time.process_time() - cpu_began
    found = {"load_s": load_s, "cpu_s": cpu_s, "rss_bytes": _rss_bytes() - before}
    began = time.perf_counter()
    digests()
    found["digests_s"] = time.perf_counter() - began
    print(json.dumps(found))  # noqa: T201 for the parent


Apply = Callable[[int, list[TopicRecord]], object]
Loader = tuple[Apply, Callable[[], object]]  # the second asks for all digests, where there are any


def _none() -> None:
    """A peer has no digests."""


def _table() -> Loader:
    tables = [PartitionTable(TOPIC, number, complete_from=2**62) for number in range(PARTITIONS)]

    def apply(partition: int, batch: list[TopicRecord]) -> None:
        found = tables[partition].apply_many(batch)
        assert not found

    def digests() -> None:
        for table in tables:
            assert all(table.digest(log) for log in table.logs())

    return apply, digests


@dataclass(slots=True)
class _Kept:
    """What a plain table keeps of a segment."""

    value: bytes
    state: str
    base_offset: int
    end_offset: int
    max_timestamp_ms: int
    size_bytes: int
    leader_epoch: int


def _kept(value: bytes) -> _Kept:
    members = json.loads(value)
    return _Kept(
        value,
        members.get("state", ""),
        members.get("base_offset", 0),
        members.get("end_offset", 0),
        members.get("max_timestamp_ms", 0),
        members.get("size_bytes", 0),
        members.get("leader_epoch", 0),
    )


def _dict() -> Loader:
    found: dict[bytes, _Kept] = {}

    def apply(_: int, batch: list[TopicRecord]) -> None:
        for _, key, value in batch:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = _kept(value)

    return apply, _none


def _sqlite() -> Loader:
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute(
        "CREATE TABLE segments (key BLOB PRIMARY KEY, value BLOB, state TEXT, base INTEGER, end INTEGER,"
        " max_timestamp INTEGER, size INTEGER, leader_epoch INTEGER) WITHOUT ROWID"
    )
    upsert = (
        "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
        " value=excluded.value, state=excluded.state, base=excluded.base, end=excluded.end,"
        " max_timestamp=excluded.max_timestamp, size=excluded.size, leader_epoch=excluded.leader_epoch"
    )

    def row(record: TopicRecord) -> tuple[Any, ...]:
        assert record.value is not None
        kept = _kept(record.value)
        return (
            record.key,
            kept.value,
            kept.state,
            kept.base_offset,
            kept.end_offset,
            kept.max_timestamp_ms,
            kept.size_bytes,
            kept.leader_epoch,
        )

    def apply(_: int, batch: list[TopicRecord]) -> None:
        database.execute("BEGIN")
        database.executemany(upsert, map(row, batch))
        database.execute("COMMIT")

    return apply, _none


def _rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("Linux says how much memory a process has")


def _batches() -> Iterator[tuple[int, list[TopicRecord]]]:
    with FILE.open("rb") as file:
        while (found := pickle.load(file)) is not None:
            partition, rows = found
            yield partition, [TopicRecord(*row) for row in rows]


def _write() -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    unfinished = FILE.with_suffix(".tmp")
    ends = [0] * PARTITIONS
    waiting: list[list[tuple[int, bytes, bytes]]] = [[] for _ in range(PARTITIONS)]
    with unfinished.open("wb") as file:
        for partition, key, value in _records():
            waiting[partition].append((ends[partition], key, value))
            ends[partition] += 1
            if len(waiting[partition]) == BATCH:
                pickle.dump((partition, waiting[partition]), file)
                waiting[partition] = []
        for partition, rest in enumerate(waiting):
            pickle.dump((partition, rest), file)
        pickle.dump(None, file)
    unfinished.rename(FILE)


def _records() -> Iterator[tuple[int, bytes, bytes]]:
    logs = [LogId(CLUSTER_ID, TOPIC_ID, number) for number in range(LOGS)]
    partitions = [metadata_partition(log, PARTITIONS) for log in logs]
    for log, partition in zip(logs, partitions, strict=True):
        yield partition, log_key(log), encode_log(log_record(0, log=log))
    for number in range(SEGMENTS_EACH):
        body, row = _first(number)
        for log, partition in zip(logs, partitions, strict=True):
            identity = f"{number:08x}-0000-4000-8000-{log.partition:012x}"
            own = body.replace(ID, identity.encode()).replace(PARTITION, b"%d" % log.partition)
            key = segment_key(log, SegmentId(identity))
            value = sealed(own, key, CLUSTER_ID, row)
            if log.partition == number:  # one of each log is looked at: it is what `encode_segment` writes
                assert encode_segment(decode_segment(value)) == value
            yield partition, key, value


def _first(number: int) -> tuple[bytes, bytes]:
    """A finished copy's JSON with marks for segment and partition, and its row, which is one for all logs."""
    base = number * OFFSETS_EACH
    record = segment(number, base, base + OFFSETS_EACH, log=LogId(CLUSTER_ID, TOPIC_ID, LOGS))
    record = replace(record, size_bytes=(1 << 30) + base)
    record = replace(record, objects=objects_of(record.key_stem, record.size_bytes, record.segment_id))
    value = encode_segment(record)
    body = value[: value.rindex(f',"{NAME}"'.encode("ascii"))] + b"}"
    body = body.replace(record.segment_id.encode("ascii"), ID)
    body = body.replace(b"/%d/" % LOGS, b"/" + PARTITION + b"/")
    return body.replace(b'"partition":%d,' % LOGS, b'"partition":' + PARTITION + b","), row_of(record)


if __name__ == "__main__":
    _child(sys.argv[1])
