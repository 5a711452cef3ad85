"""The story from end to end: from records produced to the same records read back after the brokers lost them.

Owns the story's order and its proofs. It holds no logic of its own: brokers and bucket are seawall/local's,
copying is the agent's, run as a user runs it, judging and reading are tiering's. Nothing outside `folder` is
touched, and nothing of it is needed afterwards.

Invariant: a chapter that returns has proved what it says; what does not hold raises ProofFailed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rules.identity import LogId
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.process import Child
from seawall.local.s3 import segment_store
from seawall.local.waiting import wait_until
from tiering.cluster.interface import LeaderOffsets, TopicPartition
from tiering.cluster.kafka import KafkaCluster
from tiering.errors import StatedError
from tiering.log.directory import Segment, read_partition_directory
from tiering.log.segment import Compaction, Depth, iter_batches, scan_segment
from tiering.log.verify import verify_segment
from tiering.outcome import Verified
from tiering.reader.interface import TieredLog, tiered_log
from tiering.reader.reader import TieredReader
from tiering.retention.kafka import KafkaDeleteRecords
from tiering.segments.kafka import check_topic, replay
from tiering.segments.records import SegmentRecord, SegmentState
from tiering.segments.table import ReferenceTable
from tiering.store.content import InMemory
from tiering.store.errors import StoreError
from tiering.store.patient import patient

TOPIC = "tides"
SEGMENT_BYTES = 8 * 1024 * 1024
RECORDS = 64_000
RECORD_BYTES = 1_000
PREFIX = "demo"
INTO_BATCH_BYTES = 500  # past the 61 bytes of its header, among its records
TIER_DEADLINE_S = 60.0


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

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    def chapters(self) -> Iterator[Chapter]:
        """In order; each needs those before it."""
        yield Chapter(name="start", doing="starting a broker and a bucket", act=self.start)
        yield Chapter(name="produce", doing="producing until segments close", act=self.produce)
        yield Chapter(name="verify", doing="verifying the closed segments", act=self.verify)
        yield Chapter(name="tier", doing="running the agent that copies them to S3", act=self.tier)
        yield Chapter(name="damage", doing="flipping one bit", act=self.damage)
        yield Chapter(name="lose", doing="deleting the head of the log", act=self.lose)
        yield Chapter(name="read", doing="reading it all back", act=self.read_back)

    def start(self) -> Told:
        self._cluster = LocalCluster(self._folder / "kafka")
        self._bucket = LocalBucket(self._folder)
        self._servers.enter_context(self._bucket)
        self._servers.enter_context(self._cluster)
        self._plain_store = segment_store(self._bucket.address)
        self._store = patient(self._plain_store)
        return Told(
            says=f"a Kafka broker at {self._cluster.bootstrap}, and an S3 bucket at "
            f"{self._bucket.address.endpoint_url} with versions and object lock",
            facts={"broker": self._cluster.bootstrap, "bucket": self._bucket.address.endpoint_url},
        )

    def produce(self) -> Told:
        bootstrap = self._cluster.bootstrap
        kafka.create_topic(bootstrap, TOPIC, config={"segment.bytes": str(SEGMENT_BYTES)})
        acknowledged = kafka.produce(bootstrap, TOPIC, map(_value, range(RECORDS)))
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

    def tier(self) -> Told:
        """`seawall agent`, beside the broker, until the tier covers all that is closed."""
        at = self._bucket.address
        agent = Child(
            name="agent",
            argv=[sys.executable, "-m", "seawall", "agent", *self._agent_options()],
            log=self._folder / "agent.log",
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")},
                "PYTHONPATH": os.pathsep.join(sys.path),
                "AWS_ACCESS_KEY_ID": at.access_key_id,
                "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
            },
        )
        agent.start()
        self._servers.callback(agent.kill)
        end = self._closed[-1].end_offset
        wait_until(
            lambda: self._covered() == (0, end),
            name="the agent",
            wanted=f"offsets [0, {end}) in the tier",
            deadline_s=TIER_DEADLINE_S,
        )
        prove("the agent ends in order when it is asked to", agent.stop())
        records = list(self._segments())
        objects = [ref for record in records for _, ref in record.objects.present()]
        for ref in objects:
            stored = self._store.head(ref.key, ref.version_id)
            kept = stored.size_bytes, stored.checksum
            prove(f"{ref.key} is kept as it was committed", kept == (ref.size_bytes, ref.checksum), kept)
        size_bytes = sum(record.size_bytes for record in records)
        return Told(
            says=f"{len(records)} segments, {_mib(size_bytes)}, as {len(objects)} objects, each stored once "
            f"with a checksum that the store checked; [0, {end:,}) is in the tier",
            facts={
                "segments": len(records),
                "objects": len(objects),
                "size_bytes": size_bytes,
                "frontier": end,
            },
        )

    def damage(self) -> Told:
        """The same segment with one bit flipped is noticed on disk, and S3 does not take it for the other."""
        segment = self._closed[0]
        body = bytearray(segment.path.read_bytes())
        flipped_at = _batch_in_the_middle(segment.path) + INTO_BATCH_BYTES
        body[flipped_at] ^= 1
        copy = self._folder / "damaged" / segment.path.name
        copy.parent.mkdir()
        copy.write_bytes(body)
        defect = scan_segment(copy).defect
        prove("a scan finds the flipped bit", defect is not None)
        assert defect is not None
        [record] = [each for each in self._segments() if each.base_offset == segment.base_offset]
        assert record.objects.log is not None
        try:
            self._plain_store.put_new(f"{PREFIX}/damaged.log", InMemory(body), record.objects.log.checksum)
        except StoreError as refused:
            why = type(refused).__name__
        else:
            why = ""
        prove("the store refuses what is not what its checksum says", bool(why))
        return Told(
            says=f"one bit flipped at byte {flipped_at:,} of a copy: the scan says {defect.kind.value} "
            f"in the batch at byte {defect.position:,}, and S3 refuses the upload",
            facts={
                "flipped_at": flipped_at,
                "defect": defect.kind.value,
                "position": defect.position,
                "refused": why,
            },
        )

    def lose(self) -> Told:
        """DeleteRecords takes the head of the log from every broker, as a mistake would."""
        end = self._closed[-1].end_offset
        assert end is not None
        config = {"bootstrap.servers": self._cluster.bootstrap}
        partition = TopicPartition(TOPIC, 0)
        KafkaDeleteRecords(config).delete_records(partition, end)
        cluster = KafkaCluster(config, monotonic_s=time.monotonic)
        found = cluster.leader_offsets([partition])[partition]
        prove("the broker has lost it", isinstance(found, LeaderOffsets) and found.log_start == end, found)
        return Told(
            says=f"somebody's DeleteRecords takes [0, {end:,}) from every broker: no consumer can read it",
            facts={"end_offset": end},
        )

    def read_back(self) -> Told:
        """Every record that the broker lost, from the bucket alone, with the value that was produced."""
        table = self._table()
        log = tiered_log(table, self._log(table))
        assert isinstance(log, TieredLog), log
        count = 0
        with TieredReader(self._store) as reader:
            for record in reader.records(log, log.start, log.end):
                is_right = record.offset == count and record.value == _value(count)
                prove(f"record {count} is what was produced", is_right, record)
                count += 1
        prove("none is missing", count == log.end, count)
        return Told(
            says=f"{count:,} records read back from the bucket alone, each once and as it was produced",
            facts={"records": count},
        )

    def _agent_options(self) -> list[str]:
        at = self._bucket.address
        options = {
            "--bootstrap": self._cluster.bootstrap,
            "--bucket": at.bucket,
            "--endpoint-url": at.endpoint_url,
            "--region": at.region,
            "--prefix": PREFIX,
            "--topic": TOPIC,
            "--listen": "127.0.0.1:0",
            "--state-dir": str(self._folder / "agent"),
            "--log-dir": str(self._cluster.log_dirs()[0]),
        }
        return [word for option in options.items() for word in option]

    def _table(self) -> ReferenceTable:
        config = {"bootstrap.servers": self._cluster.bootstrap}
        return replay(config, check_topic(config))

    def _log(self, table: ReferenceTable) -> LogId:
        [log] = list(table.logs())
        return log

    def _segments(self) -> Iterator[SegmentRecord]:
        """What the tier holds, by the metadata topic."""
        table = self._table()
        log = self._log(table)
        view, of_log = table.view(log), table.of(log)
        assert view is not None
        assert of_log is not None
        for summary in view.segments():
            record = of_log.segment(log, summary.segment_id)
            if record is not None and record.state is SegmentState.COPY_FINISHED:
                yield record

    def _covered(self) -> tuple[int, int] | None:
        try:
            table = self._table()
        except StatedError:  # the agent has not made the topic yet
            return None
        logs = list(table.logs())
        found = tiered_log(table, logs[0]) if logs else None
        return (found.start, found.end) if isinstance(found, TieredLog) else None


def _value(number: int) -> bytes:
    return (b"high water at quay %08d " % number).ljust(RECORD_BYTES, b".")


def _batch_in_the_middle(path: Path) -> int:
    """Where a batch in the middle of a segment begins."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        begins = [batch.position for batch in iter_batches(descriptor)]
    finally:
        os.close(descriptor)
    return begins[len(begins) // 2]


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.1f} MiB"
