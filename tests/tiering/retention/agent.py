"""Several logs, their metadata topic, a bucket and a cluster that answers: what one agent's retention sees.

The table and `Metadata` are the real ones; the topic is a list a partition, and what is appended is read at
once by whoever follows. Every fake can be made to fall silent.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rules.events import LogEvent
from rules.policy import read_policy
from tests.tiering.retention.trim_world import settings_with
from tests.tiering.retention.world import DAY_MS, EPOCH, NOW_MS
from tests.tiering.segments.strategies import CLUSTER_ID, LOG, OTHER_LOG, log_record, objects_of, segment
from tests.tiering.store.memory import MemoryStore, Version
from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import (
    BrokerIdentity,
    BrokerSettings,
    Cause,
    DescribedTopic,
    LeaderOffsets,
    Leadership,
    Recovery,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.log.wire import Uuid
from tiering.retention.expire import Objects
from tiering.retention.service import RemoteRetention, RetentionLimits
from tiering.retention.table_end import MetadataEnds, ReadToEnd
from tiering.retention.topic_watch import TopicWatch
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.keys import log_key, metadata_partition, segment_key
from tiering.segments.records import LogId, LogRecord, SegmentRecord, SegmentState
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord
from tiering.uploader.metadata import Metadata

METADATA = "__seawall_segments"
METADATA_ID = Uuid(base64.urlsafe_b64encode(b"m" * 16).decode()[:22])
PARTITIONS = 2
TOPIC = MetadataTopic(cluster_id=CLUSTER_ID, topic_id=METADATA_ID, partition_count=PARTITIONS)
BROKER = 1
NAMES = {LOG.topic_id: "orders", OTHER_LOG.topic_id: "payments"}
POLICY = {
    "version": 1,
    "topics": {
        "*": {
            "total_retention_ms": "7d",
            "local_retention_ms": "1d",
            "tiering": True,
            "trim": True,
            "remote_deletion": True,
            "delete_grace_ms": "1d",
            "blast_limit_segments_per_hour": 4,
            "backup_window_days": 7,
        }
    },
}


@dataclass
class Answers:
    """The cluster. What is in `silent` is not answered; a topic in `deleted` is not known."""

    topic_ids: dict[str, str] = field(default_factory=lambda: {name: key for key, name in NAMES.items()})
    led_by: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)  # leader, epoch
    ends: Callable[[int], int] = lambda partition: 0
    silent: set[str] = field(default_factory=set)
    replicas: tuple[int, ...] = (1, 2, 3)
    log_starts: dict[TopicPartition, int] = field(default_factory=dict)
    high_watermark: int = 10_000

    def topic_id(self, topic: str) -> Uuid | Unknown:
        if topic in self.silent:
            return Unknown(cause=Cause.NO_ANSWER, reason="silence")
        if topic == METADATA:
            return METADATA_ID
        found = self.topic_ids.get(topic)
        return Uuid(found) if found else Unknown(cause=Cause.NO_SUCH_TOPIC, reason="no such topic")

    def leadership(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Leadership | Unknown]:
        return {each: self._leadership(each) for each in partitions}

    def _leadership(self, partition: TopicPartition) -> Leadership | Unknown:
        topic_id = self.topic_id(partition.topic)
        if isinstance(topic_id, Unknown):
            return topic_id
        leader_id, epoch = self.led_by.get(partition, (BROKER, EPOCH))
        return Leadership(
            topic=partition.topic,
            topic_id=topic_id,
            partition=partition.partition,
            leader_id=leader_id,
            leader_epoch=epoch,
            replicas=self.replicas,
            isr=self.replicas,
            recovery=Recovery.RECOVERED,
        )

    def leader_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LeaderOffsets | Unknown]:
        return {each: self._offsets(each) for each in partitions}

    def _offsets(self, partition: TopicPartition) -> LeaderOffsets | Unknown:
        topic_id = self.topic_id(partition.topic)
        if isinstance(topic_id, Unknown):
            return topic_id
        leader_id, epoch = self.led_by.get(partition, (BROKER, EPOCH))
        end = self.ends(partition.partition) if partition.topic == METADATA else self.high_watermark
        return LeaderOffsets(
            topic_id=topic_id,
            leader_id=leader_id,
            leader_epoch=epoch,
            high_watermark=end,
            last_stable_offset=end,
            log_start=self.log_starts.get(partition, 0),
        )

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        return {topic: settings_with() for topic in topics}

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown:
        raise NotImplementedError(broker_id)

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        def described(topic: str) -> DescribedTopic | Unknown:
            found = self.topic_id(topic)
            if isinstance(found, Unknown):
                return found
            return DescribedTopic(topic=topic, topic_id=found, partitions={})

        return {topic: described(topic) for topic in topics}


@dataclass
class Agent:
    """One agent's world. `fail_on`: what must be in a key for its deletion to fail."""

    now_ms: int = NOW_MS
    policy: dict[str, Any] = field(default_factory=lambda: POLICY)
    answers: Answers = field(default_factory=Answers)
    store: MemoryStore = field(default_factory=MemoryStore)
    events: list[LogEvent] = field(default_factory=list)
    records: dict[int, list[TopicRecord]] = field(
        default_factory=lambda: {number: [] for number in range(PARTITIONS)}
    )
    requests: int = 0
    fail_on: str | None = None
    objects: Objects | None = None  # None: this agent, before its MemoryStore
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.answers.ends = lambda partition: len(self.records[partition])
        self.restart()

    def restart(self) -> None:
        """Another process: nothing is known but what the topic says."""
        tables = []
        for number, records in self.records.items():
            table = PartitionTable(TOPIC, number, complete_from=0)
            table.apply_many(records)
            tables.append(table)
        self.metadata = Metadata(ReferenceTable(tables), self, deadline_s=0.05)
        self.retention = RemoteRetention(
            broker_id=BROKER,
            table=ReadToEnd(
                metadata=self.metadata,
                end_of=MetadataEnds(offsets=self.answers, topic=METADATA, topic_id=METADATA_ID),
            ),
            publish_segment=self.metadata.publish,
            publish_log=self.metadata.publish_log,
            bury=lambda log, key: self.append(log, key, None),
            leadership=self.answers,
            topics=TopicWatch(self.answers, now_ms=lambda: self.now_ms),
            metadata_topic=METADATA,
            survey=lambda: HostSurvey(
                broker=BrokerIdentity(cluster_id=CLUSTER_ID, broker_id=BROKER), log_dirs=(), offline=()
            ),
            objects=self.objects or self,
            policy=lambda topic: read_policy(self.policy).effective(topic),
            pace=self._pace,
            sink=self,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"00000000-0000-0000-0000-{next(self.numbers):012d}",
            limits=RetentionLimits(),
        )

    # The topic.

    def append(self, log: LogId, key: bytes, value: bytes | None, *, is_read: bool = True) -> int:
        number = metadata_partition(log, PARTITIONS)
        record = TopicRecord(len(self.records[number]), key, value)
        self.records[number].append(record)
        if is_read:
            self.metadata.applied(number, [record])
        return record.offset

    def put(self, record: SegmentRecord | LogRecord) -> int:
        if isinstance(record, LogRecord):
            return self.append(record.log, log_key(record.log), encode_log(record))
        return self.append(record.log, segment_key(record.log, record.segment_id), encode_segment(record))

    def claim(self, log: LogId, epoch: int = EPOCH, **fields: Any) -> None:
        """A claim, recorded long ago."""
        fields.setdefault("occurred_at_ms", self.now_ms - 10 * DAY_MS)
        self.put(log_record(epoch, log=log, topic=NAMES[log.topic_id], **fields))

    def change(self, log: LogId, **fields: Any) -> None:
        """Another record under the standing claim."""
        view = self.metadata.view(log)
        assert view is not None
        assert view.record is not None
        changed = {"event_id": f"change-{next(self.numbers)}", **fields}
        self.put(
            replace(
                view.record,
                based_on=view.record_offset,
                claim_offset=view.claims[-1].offset,
                earlier_claims=view.claims_to_repeat(),
                **changed,
            )
        )

    def copy(self, log: LogId, base: int, end: int, *, age_ms: int = 30 * DAY_MS) -> SegmentRecord:
        whole = segment(
            next(self.numbers),
            base,
            end,
            leader_epoch=EPOCH,
            epochs=((0, base),),
            log=log,
            topic=NAMES[log.topic_id],
            max_timestamp_ms=self.now_ms - age_ms,
        )
        self.put(replace(whole, state=SegmentState.COPY_STARTED, objects=type(whole.objects)()))
        for kind in ("log", "aux", "json"):
            version = Version(version_id=f"v1-{kind}", content=kind.encode())
            self.store.kept.objects[f"{whole.key_stem}.{kind}"].append(version)
        finished = replace(whole, objects=objects_of(whole.key_stem, whole.size_bytes))
        self.put(finished)
        return finished

    def log_start(self, log: LogId) -> int:
        view = self.metadata.view(log)
        assert view is not None
        assert view.record is not None
        return view.record.log_start

    def marked(self, log: LogId) -> set[int]:
        """Base offsets of the log's segments whose .log is under a delete marker."""
        return {
            int(key.rpartition("/")[2][:20])
            for key, versions in self.store.kept.objects.items()
            if versions[-1].is_marker and f"/{log.topic_id}/" in key and key.endswith(".log")
        }

    # The other ports.

    def mark_deleted(self, key: str) -> str | None:
        self.requests += 1
        if self.fail_on is not None and self.fail_on in key:
            raise RuntimeError("the store is on fire")
        return self.store.mark_deleted(key)

    def keeps_versions(self) -> bool:
        return self.store.keeps_versions()

    def emit(self, event: LogEvent) -> None:
        self.events.append(event)

    def _pace(self) -> None:
        self.paced = getattr(self, "paced", 0) + 1
