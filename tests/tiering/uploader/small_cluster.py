"""A cluster small enough for a model test: real segment files on disk, a topic in memory, agents that die.

Replicas of one log hold the same records and cut them into segments wherever they like. Every record's value
names its offset and the epoch it was written in, so that what comes back from the store proves itself. An
agent is the real UploadService over the real table and decisions; its process ends at any effect (`Plan`),
and the next one starts from nothing but the topic, the bucket and its broker's disk.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rules.identity import LogId
from tests.encode.record_batch import PlainRecord, encode_batch
from tests.tiering.uploader.world import FakeObjects, FakeSink, Plan
from tiering.cluster.interface import (
    LeaderOffsets,
    Leadership,
    Recovery,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.settings import Setting, Source, topic_settings
from tiering.cluster.topics import TopicFilter
from tiering.log.batch import read_header, read_records
from tiering.log.directory import read_partition_directory
from tiering.log.segment import BatchAt
from tiering.log.windows import walk
from tiering.log.wire import Uuid
from tiering.segments.coverage import Coverage, Piece, coverage
from tiering.segments.keys import metadata_partition
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord
from tiering.store.keys import KeyLayout
from tiering.uploader.aux_source import AuxSource
from tiering.uploader.copy import Lead, Ports
from tiering.uploader.holder import HoldLimits, SegmentHolder
from tiering.uploader.metadata import Metadata
from tiering.uploader.one_log import Cluster, Tools
from tiering.uploader.service import UploadService

TOPIC, TOPIC_ID, CLUSTER_ID = "orders", Uuid("CgkTzsXgRlOwPTRJHnL2yg"), "c1"
LOG = LogId(CLUSTER_ID, TOPIC_ID, 0)
PARTITION = TopicPartition(TOPIC, 0)
PARTITIONS = 4  # of the metadata topic
DEFAULTS = {
    "cleanup.policy": "delete",
    "remote.storage.enable": "false",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "segment.ms": "604800000",
    "segment.bytes": "1073741824",
    "file.delete.delay.ms": "60000",
    "min.insync.replicas": "1",
    "max.message.bytes": "1048588",
    "unclean.leader.election.enable": "false",
}


def value_of(offset: int, epoch: int) -> bytes:
    return f"{offset}@{epoch}".encode()


@dataclass(slots=True)
class Replica:
    """One broker's copy of the log: real files, in one log dir."""

    broker_id: int
    log_dir: Path
    segments: list[tuple[int, bytearray]] = field(default_factory=list)  # base, bytes; the last is active
    epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0

    @property
    def path(self) -> Path:
        return self.log_dir / f"{TOPIC}-0"

    @property
    def start(self) -> int:
        return self.segments[0][0]

    def begin(self) -> None:
        self.path.mkdir(parents=True)
        (self.log_dir / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={self.broker_id}\n"
        )
        (self.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
        self.segments = [(0, bytearray())]
        self._write_out()

    def append(self, records: list[PlainRecord], epoch: int) -> None:
        self.note_epoch(epoch, records[0].offset)
        self.segments[-1][1].extend(encode_batch(records, leader_epoch=epoch))
        self.end = records[-1].offset + 1
        self._write_out()

    def note_epoch(self, epoch: int, start: int) -> None:
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs = [each for each in self.epochs if each[1] < start]
            self.epochs.append((epoch, start))
            self._write_out()

    def roll(self) -> None:
        if self.segments[-1][1]:
            self.segments.append((self.end, bytearray()))
            self._write_out()

    def drop_first(self) -> None:
        """Local retention takes the oldest closed segment; the epoch history is cut with it."""
        if len(self.segments) > 1:
            base, _ = self.segments.pop(0)
            (self.path / f"{base:020d}.log").unlink()
            start = self.start
            later = [each for each in self.epochs if each[1] > start]
            before = [each for each in self.epochs if each[1] <= start]
            self.epochs = [*([(before[-1][0], start)] if before else []), *later]
            self._write_out()

    def has(self, offset: int) -> bool:
        return self.start <= offset < self.end

    def _write_out(self) -> None:
        for base, content in self.segments:
            (self.path / f"{base:020d}.log").write_bytes(content)
        lines = [f"{epoch} {start}\n" for epoch, start in self.epochs]
        (self.path / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n{''.join(lines)}")


@dataclass(slots=True)
class FakeCluster:
    """Answers as brokers would: one leader, one epoch, everything replicated at once."""

    replicas: dict[int, Replica]
    leader_id: int = 1
    epoch: int = 0
    held_back: int = 0  # so many records at the end are not committed yet
    silent: bool = False

    @property
    def leader(self) -> Replica:
        return self.replicas[self.leader_id]

    @property
    def high_watermark(self) -> int:
        return max(0, self.leader.end - self.held_back)

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]:
        answer = Leadership(
            topic=TOPIC,
            topic_id=TOPIC_ID,
            partition=0,
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            replicas=tuple(self.replicas),
            isr=tuple(self.replicas),
            recovery=Recovery.RECOVERED,
        )
        return dict.fromkeys(partitions, answer)

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]:
        answer = LeaderOffsets(
            topic_id=TOPIC_ID,
            leader_id=self.leader_id,
            leader_epoch=self.epoch,
            high_watermark=self.high_watermark,
            last_stable_offset=self.high_watermark,
            log_start=self.leader.start,
        )
        return dict.fromkeys(partitions, answer)

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        entries = {name: Setting(value=value, source=Source.DEFAULT) for name, value in DEFAULTS.items()}
        return {topic: topic_settings(topic, entries) for topic in topics}

    def broker_settings(self, broker_id: int) -> Unknown:
        raise NotImplementedError(broker_id)


@dataclass(slots=True)
class MemoryTopic:
    """The metadata topic, and the tables that follow it."""

    plan: Plan
    records: dict[int, list[TopicRecord]] = field(default_factory=lambda: {n: [] for n in range(PARTITIONS)})
    followers: list[Metadata] = field(default_factory=list)
    topic: MetadataTopic = field(
        default_factory=lambda: MetadataTopic(
            cluster_id=CLUSTER_ID, topic_id="AAAAAAAAAAAAAAAAAAAAAg", partition_count=PARTITIONS
        )
    )

    def append(self, log: LogId, key: bytes, value: bytes) -> int:
        partition = metadata_partition(log, PARTITIONS)
        for _ in self.plan.effect():
            record = TopicRecord(len(self.records[partition]), key, value)
            self.records[partition].append(record)
            for follower in self.followers:
                follower.applied(partition, [record])
        return record.offset

    def replayed(self) -> ReferenceTable:
        tables = []
        for partition, records in self.records.items():
            table = PartitionTable(self.topic, partition, complete_from=len(records))
            table.apply_many(records)
            tables.append(table)
        return ReferenceTable(tables)


class SmallCluster:
    """The brokers, the topic, the bucket, and one agent a broker that is made anew for every run."""

    def __init__(self, folder: Path, *, brokers: int = 3, seed: int = 0) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.plan = Plan()
        self.cluster = FakeCluster(
            {n: Replica(broker_id=n, log_dir=folder / f"broker-{n}") for n in range(1, brokers + 1)}
        )
        for replica in self.cluster.replicas.values():
            replica.begin()
        self.topic = MemoryTopic(self.plan)
        self.objects = FakeObjects(self.plan)
        self.sink = FakeSink()
        self.written: dict[int, bytes] = {}  # what each offset of the log holds
        self._ids, self._clock = itertools.count(1), itertools.count(1_700_000_000_000, 1_000_000)
        self.cluster.leader.note_epoch(0, 0)

    def produce(self, count: int) -> None:
        """Records to every replica; each may cut its log wherever it likes."""
        cluster, start = self.cluster, self.cluster.leader.end
        records = [
            PlainRecord(offset=o, timestamp_ms=1_700_000_000_000 + o, value=value_of(o, cluster.epoch))
            for o in range(start, start + count)
        ]
        self.written |= {record.offset: record.value or b"" for record in records}
        for replica in cluster.replicas.values():
            replica.append(records, cluster.epoch)
            if self.chance.random() < 0.4:
                replica.roll()

    def move_leader(self, broker_id: int) -> None:
        cluster = self.cluster
        cluster.leader_id, cluster.epoch = broker_id, cluster.epoch + 1
        cluster.leader.note_epoch(cluster.epoch, cluster.leader.end)

    def run_agent(self, broker_id: int) -> None:
        """A fresh process beside one broker: one pass."""
        table = self.topic.replayed()
        metadata = Metadata(table, self.topic, deadline_s=1.0)
        self.topic.followers.append(metadata)
        holder = SegmentHolder(HoldLimits())

        def ports(lead: Lead, local: object) -> Ports:
            source = AuxSource(directory=self.cluster.replicas[broker_id].path, epochs=())
            return Ports(
                tier=metadata,
                lead=lead,
                objects=self.objects,
                keys=KeyLayout("tier"),
                aux=source.gather,
                sink=self.sink,
                now_ms=self._now_ms,
                new_id=self._new_id,
            )

        service = UploadService(
            survey=Surveyor(
                [self.cluster.replicas[broker_id].log_dir],
                topics=TopicFilter(),
                now_ns=lambda: self._now_ms() * 1_000_000,
            ).survey,
            tools=Tools(
                cluster=Cluster(leadership=self.cluster, offsets=self.cluster, settings=self.cluster),
                metadata=metadata,
                holder=holder,
                ports=ports,
                sink=self.sink,
                now_ms=self._now_ms,
                new_id=self._new_id,
            ),
            is_tiered=lambda topic: topic == TOPIC,
        )
        try:
            service.run_pass()
        finally:
            self.topic.followers.remove(metadata)
            service.close()
        self.statuses = service.statuses()

    def coverage(self) -> Coverage | None:
        """What a reader who replays the topic now could read."""
        view = self.topic.replayed().view(LOG)
        found = None if view is None else coverage(view)
        return found if isinstance(found, Coverage) else None

    def read_back(self, found: Coverage) -> dict[int, bytes]:
        """Every offset below the frontier that the tier holds, from the objects that readers would use."""
        table = self.topic.replayed().of(LOG)
        assert table is not None
        read: dict[int, bytes] = {}
        for piece in found.pieces(found.frontier.start, found.frontier.offset):
            if isinstance(piece, Piece):
                record = table.segment(LOG, piece.segment_id)
                assert record is not None
                assert record.objects.log is not None
                content = self.objects.versions[record.objects.log.key]
                for offset, value in records_in(content).items():
                    if piece.start <= offset < piece.end:
                        assert offset not in read, f"offset {offset} is read twice"
                        read[offset] = value
        return read

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _now_ms(self) -> int:
        return next(self._clock)

    def _new_id(self) -> str:
        return f"00000000-0000-0000-0000-{next(self._ids):012d}"


def records_in(content: bytes) -> dict[int, bytes]:
    """The records of a whole segment, by offset."""
    found: dict[int, bytes] = {}
    bounds = walk(memoryview(content), len(content))
    for begin, _ in itertools.pairwise(bounds):
        header = read_header(content, begin)
        found |= {r.offset: r.value or b"" for r in read_records(content, header, begin)}
    return found


def local_offsets(replica: Replica) -> set[int]:
    return {
        offset
        for segment in read_partition_directory(replica.path).segments
        for offset in records_in(segment.path.read_bytes())
    }


__all__ = ["LOG", "BatchAt", "SmallCluster", "local_offsets", "records_in"]
