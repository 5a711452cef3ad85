"""Restore to the tier of 1,000 expired segments: against a script that copies the same versions with boto3.

Each segment has a `.log`, an `.aux` and a `.json` under delete markers on versitygw. Ours is all of `apply`:
the world checked against the plan, the promise, every copy with its checksum, every record encoded, followed
and read back, the start moved, all of it listed again and told as events. The script knows the versions by
heart and copies them, 16 at once as we do, and neither checks nor records anything. Kafka is left out:
records go to the real table in this process. Both copy by CopyObject, as on AWS. Each round has a new bucket,
so that listings do not grow from round to round.

Every request that leaves the process while ours runs is counted. `requests_per_segment` are those that name
an object; `of_the_bucket` those about the bucket as a whole: pages of listings, and whether it keeps
versions, which is asked once. Where a store must be asked to copy by parts it is three requests an object,
and one to read back (docs/decisions/0005-restore-by-parts.md).
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from bench.harness import compare, timed
from rules.events import Event
from rules.identity import LogId, ObjectRef

SEGMENTS = 1000
OFFSETS = 100  # of a segment
LOG_BYTES, AUX_BYTES = 64 * 1024, 1024
AT_ONCE = 16
CLUSTER_ID, TOPIC_ID = "MkU3OEVBNTcwNTJENDM2Qk", "CgkTzsXgRlOwPTRJHnL2yg"
LOG = LogId(CLUSTER_ID, TOPIC_ID, 0)


def main() -> None:
    from bench.upload import _environment, _server

    with _server() as (gateway, _):
        os.environ |= _environment(gateway.endpoint_url)
        worlds: list[World] = []

        def ours() -> float:
            world = World(gateway.endpoint_url, gateway.new_bucket())
            worlds[:] = [world]
            world.fill()
            world.expire()
            plan = world.plan()
            world.asked.clear()
            took = timed(lambda: world.apply(plan))
            world.counted = Counter(world.asked)
            return took

        def theirs() -> float:
            [world] = worlds
            world.expire()
            return timed(world.copy_all)

        compare("restore_tier", "boto3 script", ours=ours, theirs=theirs, more=lambda: worlds[0].told())


@dataclass
class World:
    """The bucket, the table, and who acts on them."""

    endpoint_url: str
    bucket: str
    asked: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    lock: Lock = field(default_factory=Lock)
    offset: int = 0

    def __post_init__(self) -> None:
        from tiering.segments.state import MetadataTopic
        from tiering.segments.table import PartitionTable
        from tiering.store.keys import KeyLayout
        from tiering.store.patient import patient
        from tiering.store.s3 import S3Store, S3StoreSettings

        topic = MetadataTopic(cluster_id=CLUSTER_ID, topic_id="kQfXJ2mZQ5e1bYv0x3rT8w", partition_count=1)
        settings = S3StoreSettings(
            bucket=self.bucket, endpoint_url=self.endpoint_url, copies_where_absent=True
        )
        s3 = S3Store(settings)
        self.client = s3._client
        self.client.meta.events.register("before-send.s3", self._note)
        self.store = patient(s3)
        self.table = PartitionTable(topic, 0, complete_from=0)
        self.layout = KeyLayout("seawall")

    def _note(self, event_name: str, **_: Any) -> None:
        with self.lock:
            self.asked[event_name.rpartition(".")[2]] += 1

    # The ports of a restore.

    def read_on(self) -> None:
        pass

    def view(self, log: LogId) -> Any:
        with self.lock:
            return self.table.view(log)

    def segment(self, log: LogId, segment_id: Any) -> Any:
        with self.lock:
            return self.table.segment(log, segment_id)

    def publish(self, record: Any) -> int:
        from tiering.segments.codec import encode_segment
        from tiering.segments.keys import segment_key

        return self._append(segment_key(record.log, record.segment_id), encode_segment(record))

    def publish_log(self, record: Any) -> int:
        from tiering.segments.codec import encode_log
        from tiering.segments.keys import log_key

        return self._append(log_key(record.log), encode_log(record))

    def emit_many(self, events: Sequence[Event]) -> None:
        pass

    def _append(self, key: bytes, value: bytes) -> int:
        with self.lock:
            assert self.table.apply(self.offset, key, value) == []
            self.offset += 1
            return self.offset - 1

    # What happens.

    def fill(self) -> None:
        """A claim, every segment's objects and records, and one more that stays live."""
        from tiering.segments.records import EpochStart, LogRecord

        self.publish_log(
            LogRecord(
                log=LOG,
                topic="bench",
                broker_id=1,
                claim_epoch=0,
                claim_offset=None,
                earlier_claims=(),
                leader_epochs=(EpochStart(0, 0),),
                log_start=0,
                first_tiered_offset=0,
                gaps=(),
                generation=0,
                keep_until_ms=None,
                holds=(),
                topic_deleted_at_ms=None,
                based_on=None,
                event_id="claim",
                occurred_at_ms=1,
            )
        )
        with ThreadPoolExecutor(AT_ONCE) as workers:
            made = list(workers.map(self._uploaded, range(SEGMENTS + 1)))
        for begun, finished in made:
            self.publish(begun)
            self.publish(finished)
        self.made = [finished for _, finished in made]

    def _uploaded(self, number: int) -> tuple[Any, Any]:
        import uuid

        from tiering.segments.codec import encode_segment
        from tiering.segments.records import (
            EpochStart,
            SegmentId,
            SegmentObjects,
            SegmentRecord,
            SegmentState,
        )
        from tiering.store.keys import SegmentKey

        base, segment_id = number * OFFSETS, str(uuid.UUID(int=number))
        stem = self.layout.stem(SegmentKey(log=LOG, base_offset=base, segment_id=segment_id))
        objects = SegmentObjects(
            log=self._put(f"{stem}.log", os.urandom(LOG_BYTES)),
            aux=self._put(f"{stem}.aux", os.urandom(AUX_BYTES)),
        )
        record = SegmentRecord(
            log=LOG,
            topic="bench",
            segment_id=SegmentId(segment_id),
            base_offset=base,
            end_offset=base + OFFSETS,
            data_end=base + OFFSETS,
            leader_epochs=(EpochStart(0, base),),
            max_timestamp_ms=1,
            record_count=OFFSETS,
            batch_count=1,
            size_bytes=LOG_BYTES,
            has_txn_index=False,
            key_stem=stem,
            objects=objects,
            broker_id=1,
            leader_epoch=0,
            state=SegmentState.COPY_FINISHED,
            generation=0,
            event_id=f"copy-{number}",
            occurred_at_ms=1,
        )
        json = self._put(f"{stem}.json", encode_segment(record))
        begun = replace(record, state=SegmentState.COPY_STARTED, objects=SegmentObjects())
        return begun, replace(record, objects=replace(objects, json=json))

    def _put(self, key: str, content: bytes) -> ObjectRef:
        from tiering.store.content import InMemory
        from tiering.store.interface import CHECKSUM_ALGORITHM

        body = InMemory(content)
        version_id = self.store.put_new(key, body, body.checksum)
        return ObjectRef(key, len(content), CHECKSUM_ALGORITHM, body.checksum, version_id)

    def expire(self) -> None:
        """All but the last segment go, as expiry has them go."""
        from tiering.segments.records import SegmentState

        self._change(log_start=self.made[-1].base_offset, keep_until_ms=None)
        keys = []
        for each in self.made[:-1]:
            record = self.segment(LOG, each.segment_id)
            assert record is not None
            if record.state is SegmentState.COPY_FINISHED:
                gone = replace(record, state=SegmentState.DELETE_STARTED, event_id=f"gone-{next(self.ids)}")
                self.publish(gone)
                self.publish(
                    replace(gone, state=SegmentState.DELETE_FINISHED, event_id=f"gone-{next(self.ids)}")
                )
            keys += [ref.key for _, ref in record.objects.present()]
        with ThreadPoolExecutor(AT_ONCE) as workers:
            list(workers.map(lambda key: self.client.delete_object(Bucket=self.bucket, Key=key), keys))

    def _change(self, **fields: Any) -> None:
        view = self.view(LOG)
        changed = replace(
            view.record,
            claim_offset=view.claims[-1].offset,
            based_on=view.record_offset,
            event_id=f"change-{next(self.ids)}",
            **fields,
        )
        self.publish_log(changed)

    def plan(self) -> Any:
        from backup.catalogue.gather import gather
        from backup.plan import AskedBy
        from backup.plan.make import Wish, make_plan

        wish = Wish(by=AskedBy.ALL, text="all")
        return make_plan(gather(LOG, self, self.store, self.layout), wish, None, now_ms=1, bucket=self.bucket)

    def apply(self, plan: Any) -> None:
        from backup.tier.apply import apply
        from backup.tier.ports import Ports

        done = apply(
            plan,
            Ports(
                cluster_id=CLUSTER_ID,
                table=self,
                tier=self,
                objects=self.store,
                layout=self.layout,
                policy=lambda _: None,
                sink=self,
                principal="bench",
                now_ms=lambda: time.time_ns() // 1_000_000,
                workers=AT_ONCE,
            ),
        )
        assert done.objects_put_back == 3 * SEGMENTS
        assert done.log_start == 0

    def copy_all(self) -> None:
        """The script."""
        sources = []
        for each in self.made[:-1]:
            record = self.segment(LOG, each.segment_id)
            assert record is not None
            sources += [ref for _, ref in record.objects.present()]

        def copy(ref: ObjectRef) -> None:
            self.client.copy_object(
                Bucket=self.bucket,
                Key=ref.key,
                CopySource={"Bucket": self.bucket, "Key": ref.key, "VersionId": ref.version_id or ""},
                ChecksumAlgorithm="CRC64NVME",
            )

        with ThreadPoolExecutor(AT_ONCE) as workers:
            list(workers.map(copy, sources))

    def told(self) -> dict[str, Any]:
        of_the_bucket = {name: self.counted[name] for name in sorted(self.counted) if _is_of_bucket(name)}
        rest = sum(self.counted.values()) - sum(of_the_bucket.values())
        return {
            "segments": SEGMENTS,
            "requests": sum(self.counted.values()),
            "requests_per_segment": round(rest / SEGMENTS, 3),
            "of_the_bucket": of_the_bucket,
            "by_kind": dict(self.counted),
        }


def _is_of_bucket(operation: str) -> bool:
    return operation.startswith("List") or operation == "GetBucketVersioning"
