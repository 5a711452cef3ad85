"""Deep scrub of 8 GiB of segments on an S3 server: against `rclone check --download` of the same objects.

8 segments of 1 GiB, as brokers cut them by default, in batches of 16 KiB, each with its `.aux` and `.json`.
Both tools read every byte of every object from versitygw on this machine, as processes of their own, start
included. rclone compares with the files that were uploaded, at its own defaults; we have no such files: we
verify every batch, the offsets, the checksums of the objects and what the metadata says of them, list the
logs with versions, and leave events and memory on the disk. The table is replayed from records on disk, as
from the topic; Kafka is left out.

`cpu_s` and `their_cpu_s` are medians of the processor seconds of the tool alone. rclone is the one of
`bench.upload`.

    SEAWALL_BENCH_SEGMENTS   8 unless told; by fewer, more of ours is the start of the interpreter
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import Ran, compare, run
from rules.identity import LogId, ObjectRef
from rules.words import ScrubOutcome
from seawall import collecting
from tiering.scrub.ports import Copy, copies_of
from tiering.segments.records import EpochStart, SegmentId, SegmentObjects, SegmentRecord, SegmentState
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable
from tiering.store.keys import KeyLayout, ObjectKind, SegmentKey

PREFIX = "seawall"
CLUSTER_ID, TOPIC_ID = "MkU3OEVBNTcwNTJENDM2Qk", "CgkTzsXgRlOwPTRJHnL2yg"
SEGMENTS = int(os.environ.get("SEAWALL_BENCH_SEGMENTS", "8"))
LOGS = [LogId(CLUSTER_ID, TOPIC_ID, partition) for partition in range(SEGMENTS)]  # the same 1 GiB in each
TOPIC = MetadataTopic(cluster_id=CLUSTER_ID, topic_id="kQfXJ2mZQ5e1bYv0x3rT8w", partition_count=1)
RECORDS = "records.jsonl"


def main() -> None:
    from bench.segments import segment  # not in the process that is measured
    from bench.upload import FOLDER, _environment, _peers, _server

    source = segment("none")
    with _server() as (gateway, _), tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        os.environ |= _environment(gateway.endpoint_url)
        bucket, home = gateway.new_bucket(), Path(folder)
        size_bytes = _fill(gateway.endpoint_url, bucket, source, home)
        _compare(_peers() / "rclone", gateway.endpoint_url, bucket, home, size_bytes)


def _compare(rclone: Path, endpoint_url: str, bucket: str, home: Path, size_bytes: int) -> None:
    ours: list[Ran] = []
    theirs: list[Ran] = []
    remote = f"seawall:{bucket}/{KeyLayout(PREFIX).topic_prefix(CLUSTER_ID, TOPIC_ID)}"
    check = (rclone, "--quiet", "check", "--download", home / "local", remote)

    def measure(command: Iterable[object], into: list[Ran]) -> float:
        into.append(run(tuple(command)))
        return into[-1].wall_s

    def more() -> dict[str, Any]:
        pairs = [(our.cpu_s, their.cpu_s) for our, their in zip(ours[1:], theirs[1:], strict=True)]
        return {
            "mib_per_s": round(size_bytes / 2**20 / median(each.wall_s for each in ours[1:])),
            "their_mib_per_s": round(size_bytes / 2**20 / median(each.wall_s for each in theirs[1:])),
            "cpu_s": round(median(our for our, _ in pairs), 3),
            "their_cpu_s": round(median(their for _, their in pairs), 3),
            "cpu_ratio": round(median(their / our for our, their in pairs), 3),
        }

    compare(
        "scrub",
        "rclone check --download",
        ours=lambda: measure((sys.executable, "-m", "bench.scrub", endpoint_url, bucket, home), ours),
        theirs=lambda: measure(check, theirs),
        more=more,
    )


def _fill(endpoint_url: str, bucket: str, source: Path, home: Path) -> int:
    """Upload every segment as an agent does; the records about them, and the same files, into `home`."""
    from tiering.segments.codec import encode_segment
    from tiering.segments.keys import segment_key
    from tiering.store.aux_file import AuxContents, encode_aux
    from tiering.store.patient import patient
    from tiering.store.s3 import S3Store, S3StoreSettings
    from tiering.store.upload import Uploader

    layout, size_bytes = KeyLayout(PREFIX), 0
    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url)))
    with Uploader(store) as uploader, (home / RECORDS).open("w") as records:
        for number, log in enumerate(LOGS):
            segment = SegmentKey(log=log, base_offset=0, segment_id=str(uuid.UUID(int=number)))
            descriptor = os.open(source, os.O_RDONLY)
            try:
                key = layout.key(segment, ObjectKind.LOG)
                sent = uploader.upload_segment(key, descriptor, base_offset=segment.base_offset)
            finally:
                os.close(descriptor)
            epochs = tuple(EpochStart(*each) for each in sent.scan.epochs)
            aux = encode_aux(
                AuxContents(
                    base_offset=segment.base_offset,
                    end_offset=sent.scan.data_end,
                    offset_index=None,
                    time_index=None,
                    transaction_index=None,
                    producer_snapshot=None,
                    leader_epochs=epochs,
                    aborted=(),
                )
            )
            objects = SegmentObjects(
                log=sent.ref, aux=uploader.upload_bytes(layout.key(segment, ObjectKind.AUX), aux)
            )
            record = SegmentRecord(
                log=log,
                topic="bench",
                segment_id=SegmentId(segment.segment_id),
                base_offset=segment.base_offset,
                end_offset=sent.scan.data_end,
                data_end=sent.scan.data_end,
                leader_epochs=epochs,
                max_timestamp_ms=sent.scan.max_timestamp_ms,
                record_count=sent.scan.record_count,
                batch_count=sent.scan.batch_count,
                size_bytes=sent.scan.size_bytes,
                has_txn_index=False,
                key_stem=layout.stem(segment),
                objects=objects,
                broker_id=1,
                leader_epoch=epochs[-1].epoch,
                state=SegmentState.COPY_FINISHED,
                generation=0,
                event_id=str(uuid.UUID(int=number)),
                occurred_at_ms=0,
            )
            said = encode_segment(record)
            ref = uploader.upload_bytes(layout.key(segment, ObjectKind.JSON), said)
            begun = replace(record, state=SegmentState.COPY_STARTED, objects=SegmentObjects())
            record = replace(record, objects=replace(objects, json=ref))
            for each in (begun, record):
                line = (segment_key(log, record.segment_id).decode(), encode_segment(each).decode())
                records.write(json.dumps(line) + "\n")
            size_bytes += _keep_local(home / "local" / str(log.partition), source, record.objects, aux, said)
    return size_bytes


def _keep_local(folder: Path, log: Path, objects: SegmentObjects, aux: bytes, said: bytes) -> int:
    """What rclone compares with: the files themselves, under the names that the objects have."""

    folder.mkdir(parents=True, exist_ok=True)

    def named(ref: ObjectRef | None) -> Path:
        assert ref is not None
        return folder / ref.key.rpartition("/")[2]

    named(objects.log).hardlink_to(log)
    named(objects.aux).write_bytes(aux)
    named(objects.json).write_bytes(said)
    return sum(ref.size_bytes for _, ref in objects.present())


# Our tool: a process of its own.


@dataclass(frozen=True, slots=True)
class _Table:
    """The port of the scrub over one partition's table."""

    table: PartitionTable

    def read_on(self) -> None:
        pass

    def logs(self) -> Collection[LogId]:
        return LOGS

    def label(self, log: LogId) -> str:
        return "bench"

    def finished(self, log: LogId) -> Collection[Copy]:
        return copies_of(self.table.view(log))

    def known(self, log: LogId) -> Collection[SegmentId]:
        return [each.segment_id for each in self.finished(log)]

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        return self.table.segment(log, segment_id)

    def leader_epoch(self, log: LogId) -> int:
        return 0

    def last_offset(self, log: LogId) -> int:
        return self.table.position - 1


def _scrub(endpoint_url: str, bucket: str, home: Path) -> None:
    with collecting.imports():
        from audit_engine.spool import EmitterName, Spool
        from tiering.scrub.memory import Memory
        from tiering.scrub.ports import Ask, Ports
        from tiering.scrub.run import scrub
        from tiering.store.patient import patient
        from tiering.store.s3 import S3Store, S3StoreSettings

    table = PartitionTable(TOPIC, 0, complete_from=0)
    for offset, line in enumerate((home / RECORDS).read_text().splitlines()):
        key, value = json.loads(line)
        assert table.apply(offset, key.encode(), value.encode()) == []
    memory = Memory(home, now_ms=0)
    with Spool(home / "events.sqlite", EmitterName(CLUSTER_ID, 1, "scrub")) as spool:
        report = scrub(
            Ports(
                table=_Table(table),
                objects=patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url))),
                memory=memory,
                sink=spool,
                layout=KeyLayout(PREFIX),
                pace=lambda _: None,
                clock=time.monotonic,
                now_ms=lambda: time.time_ns() // 1_000_000,
                new_id=lambda: str(uuid.uuid4()),
            ),
            Ask(),
        )
    memory.close()
    verified = report.counts[ScrubOutcome.VERIFIED]
    assert verified == 3 * report.segments == report.counts.total(), report


if __name__ == "__main__":
    collecting.end_at_once()  # as the command line does
    _scrub(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
