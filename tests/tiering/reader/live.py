"""Puts the closed segments of a real broker's log into a real bucket, with the agent's own steps.

The copy is `uploader.copy`'s and the topic is Kafka's; what an agent asks its broker first is left out.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import boto3

from rules.events import EventSink
from rules.identity import LogId, ObjectRef
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.cluster.cases_logs import partition_folder
from tests.cluster.produce import METADATA_PARTITIONS
from tests.tiering.uploader.world import FakeSink
from tiering.log.checkpoints import read_leader_epoch_checkpoint
from tiering.log.directory import read_partition_directory
from tiering.log.identity_files import read_partition_metadata
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.kafka import KafkaAppender, ensure_topic
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import SegmentRecord
from tiering.store.keys import KeyLayout
from tiering.store.patient import PatientStore, patient
from tiering.store.s3 import S3Store, S3StoreSettings
from tiering.store.upload import UploadedSegment, Uploader
from tiering.uploader.aux_source import AuxSource
from tiering.uploader.copy import LogAttempts, Ports, copy_segment
from tiering.uploader.holder import open_segment
from tiering.uploader.log_records import Writer, first_claim

BROKER_ID = 1
PREFIX = "reader-tests"  # of the keys


def store_of(bucket: LocalBucket) -> PatientStore:
    at = bucket.address
    session = boto3.Session(aws_access_key_id=at.access_key_id, aws_secret_access_key=at.secret_access_key)
    settings = S3StoreSettings(bucket=at.bucket, endpoint_url=at.endpoint_url, region=at.region)
    return patient(S3Store(settings, session))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topic:
    """Publishes a copy's records."""

    appender: KafkaAppender

    def publish(self, record: SegmentRecord) -> int:
        key = segment_key(record.log, record.segment_id)
        return self.appender.append(record.log, key, encode_segment(record))


class _Lead:
    """Everything is committed: the producers are done, and no transaction is open."""

    def may_leave_below(self) -> int:
        return 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiered:
    """What was put there: the log's closed segments, up to `end`."""

    log: LogId
    folder: Path
    end: int
    segments: tuple[SegmentRecord, ...]


def tier_partition(
    cluster: LocalCluster, bucket: LocalBucket, topic: str, partition: int = 0, node_id: int = BROKER_ID
) -> Tiered:
    """Copy every closed segment, and publish claim and copies to the metadata topic."""
    return tier_to(cluster, store_of(bucket), topic, partition, node_id)


def tier_to(
    cluster: LocalCluster, store: PatientStore, topic: str, partition: int = 0, node_id: int = BROKER_ID
) -> Tiered:
    """The same, to any bucket."""
    config = {"bootstrap.servers": cluster.bootstrap}
    folder = partition_folder(cluster, topic, partition, node_id)
    topic_id = read_partition_metadata((folder / "partition.metadata").read_bytes())
    log = LogId(cluster.cluster_id, str(topic_id), partition)
    live = read_leader_epoch_checkpoint((folder / "leader-epoch-checkpoint").read_bytes()).epochs
    closed = [each for each in read_partition_directory(folder).segments if each.is_closed]
    epoch = live[-1].epoch
    attempts = LogAttempts(
        log=log, topic=topic, broker_id=BROKER_ID, leader_epoch=epoch, generation=0, lineage=live
    )
    sink: EventSink = FakeSink()
    records = []
    with Uploader(store) as uploader:
        appender = KafkaAppender(config, ensure_topic(config, partitions=METADATA_PARTITIONS))
        writer = Writer(broker_id=BROKER_ID, leader_epoch=epoch, event_id=_new_id(), now_ms=_now_ms())
        claim = first_claim(log, topic, writer, live=live, first_tiered_offset=closed[0].base_offset)
        appender.append(log, log_key(log), encode_log(claim))
        ports = Ports(
            tier=_Topic(appender=appender),
            lead=_Lead(),
            objects=_Bucket(store=store, uploader=uploader),
            keys=KeyLayout(PREFIX),
            aux=AuxSource(directory=folder, epochs=live).gather,
            sink=sink,
            now_ms=_now_ms,
            new_id=_new_id,
        )
        for segment in closed:
            held = open_segment(segment)
            assert held is not None
            records.append(copy_segment(attempts, held, ports))
            held.close()
        appender.close()
    return Tiered(log=log, folder=folder, end=records[-1].end_offset, segments=tuple(records))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    """The uploader and the store as one."""

    store: PatientStore
    uploader: Uploader

    def upload_segment(
        self, key: str, descriptor: int, *, base_offset: int, limit_offset: int | None
    ) -> UploadedSegment:
        return self.uploader.upload_segment(
            key, descriptor, base_offset=base_offset, limit_offset=limit_offset
        )

    def upload_bytes(self, key: str, content: bytes) -> ObjectRef:
        return self.uploader.upload_bytes(key, content)

    def mark_deleted(self, key: str) -> None:
        self.store.mark_deleted(key)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _new_id() -> str:
    return str(uuid.uuid4())
