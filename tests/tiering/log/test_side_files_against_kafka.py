"""Every index, snapshot and metadata record of real brokers: what we read is what DumpLogSegments prints."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local.jvm_options import short_lived
from tests.cluster.corpus import Corpus
from tests.cluster.dump_values import ControlMessage, DumpedFile, DumpedProducer
from tests.cluster.oracle import Dump, Oracle
from tests.tiering.log.kafka_json import differences
from tiering.log.batch import Record, read_header, read_records
from tiering.log.errors import EndOfBuffer
from tiering.log.framed import SkippedRecord, SkipReason, read_frame
from tiering.log.index import OffsetPosition, TimestampOffset, read_offset_index, read_time_index
from tiering.log.kraft.control import ControlRecord, read_control_record
from tiering.log.kraft.records import CREDENTIAL_RECORDS, read_metadata_record
from tiering.log.producer_snapshot import ProducerState, read_producer_snapshot
from tiering.log.remote_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    TopicIdPartition,
    read_remote_metadata,
)
from tiering.log.transaction_index import read_transaction_index

KRAFT_LOG = "__cluster_metadata-0"
REMOTE_LOG = "__remote_log_metadata-"
CONTROL_KINDS = {
    "LeaderChange": "LeaderChange",
    "SnapshotHeader": "SnapshotHeader",
    "SnapshotFooter": "SnapshotFooter",
    "KRaftVersion": "KRaftVersion",
    "KRaftVoters": "Voters",
}


def base_offset_of(path: Path) -> int:
    return int(path.name[:20])


def has_records_beside(path: Path) -> bool:
    """Without them the tool breaks down on an index, and is started anew: only torn logs are left to that."""
    if path.suffix not in (".index", ".timeindex"):
        return True
    log = path.with_suffix(".log")
    return log.exists() and log.stat().st_size > 0


@pytest.fixture(scope="module")
def side_files(corpus: Corpus) -> list[Path]:
    found = corpus.files(".index", ".timeindex", ".txnindex", ".snapshot", deleted=True)
    return [path for path in found if "remote" not in path.relative_to(corpus.folder).parts[:2]]


@pytest.fixture(scope="module")
def dumped(side_files: list[Path], oracle: Oracle) -> Dump:
    return oracle.dump([path for path in side_files if has_records_beside(path)], allow_failures=True)


def of_suffix(suffix: str, side_files: list[Path], dumped: Dump) -> Iterator[tuple[Path, DumpedFile]]:
    found = [(path, dumped[path]) for path in side_files if path.suffix == suffix and path in dumped.files]
    assert found
    yield from found


def test_every_offset_index_agrees(side_files: list[Path], dumped: Dump) -> None:
    """Closed, active with its pre-allocated tail, or left by a crash: the same entries as the tool's.

    The tool prints the first entry whatever it is: of an index with no entries, a zero one.
    """
    for path, theirs in of_suffix(".index", side_files, dumped):
        base = base_offset_of(path)
        index = read_offset_index(path.read_bytes(), base_offset=base)
        ours = list(index) or [OffsetPosition(base, 0)] * (index.tail_bytes > 0)
        assert ours == [(entry.offset, entry.position) for entry in theirs.offset_entries], path


def test_every_time_index_agrees(side_files: list[Path], dumped: Dump) -> None:
    """Closed, active with its pre-allocated tail, or left by a crash: the same entries as the tool's.

    The tool prints the first entry whatever it is: of an index with no entries, a zero one.
    """
    for path, theirs in of_suffix(".timeindex", side_files, dumped):
        base = base_offset_of(path)
        index = read_time_index(path.read_bytes(), base_offset=base)
        ours = list(index) or [TimestampOffset(0, base)] * (index.tail_bytes > 0)
        assert ours == [(entry.timestamp_ms, entry.offset) for entry in theirs.time_entries], path


def test_an_index_of_an_empty_segment_has_no_entries(side_files: list[Path], dumped: Dump) -> None:
    """Where the tool breaks down, for want of records, ten megabytes of zeros or none are no entries."""
    undumped = [path for path in side_files if path not in dumped.files]
    assert undumped

    for path in undumped:
        read = read_offset_index if path.suffix == ".index" else read_time_index
        assert len(read(path.read_bytes(), base_offset=base_offset_of(path))) == 0, path


def test_every_transaction_index_agrees(side_files: list[Path], dumped: Dump) -> None:
    """The same aborted transactions, in the same order, those from earlier segments included."""
    for path, theirs in of_suffix(".txnindex", side_files, dumped):
        index = read_transaction_index(path.read_bytes(), base_offset=base_offset_of(path))
        assert [(0, *aborted) for aborted in index.transactions] == [
            (each.version, each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
            for each in theirs.aborted_transactions
        ], path


def as_dumped(state: ProducerState) -> tuple[int | None, ...]:
    """In the order of `printed_producer`: the tool prints no last batch where its offset is -1."""
    first_sequence = (state.last_sequence - state.offset_delta) % 2**31
    batch = (first_sequence, state.last_sequence, state.last_offset, state.offset_delta)
    return (
        state.producer_id,
        state.producer_epoch,
        state.coordinator_epoch,
        None if state.current_txn_first_offset == -1 else state.current_txn_first_offset,
        state.timestamp_ms,
        *(batch if state.last_offset >= 0 else ()),
    )


def printed_producer(printed: DumpedProducer) -> tuple[int | None, ...]:
    last = printed.last_batch
    batch = (last.first_sequence, last.last_sequence, last.last_offset, last.offset_delta) if last else ()
    return (
        printed.producer_id,
        printed.producer_epoch,
        printed.coordinator_epoch,
        printed.current_transaction_first_offset,
        printed.last_timestamp_ms,
        *batch,
    )


def test_every_producer_snapshot_agrees(side_files: list[Path], dumped: Dump) -> None:
    """The same producers with the same sequences, offsets and open transactions."""
    for path, theirs in of_suffix(".snapshot", side_files, dumped):
        states = read_producer_snapshot(path.read_bytes())
        assert sorted(map(as_dumped, states), key=str) == sorted(
            map(printed_producer, theirs.producers), key=str
        ), path


def records_of(path: Path) -> Iterator[tuple[bool, Record]]:
    """The records of a file up to its end or to where it was cut, each with: is it a control record."""
    content = path.read_bytes()
    position = 0
    while position < len(content):
        try:
            header = read_header(content, position)
            records = list(read_records(content, header, position))
        except EndOfBuffer:
            return
        yield from ((header.is_control, record) for record in records)
        position += header.size_bytes


def type_name(record: object) -> str:
    """`TopicRecord` as the decoder prints it: TOPIC_RECORD."""
    name = type(record).__name__
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name).lstrip("_")


def check_control(record: Record, theirs: ControlMessage) -> None:
    ours = read_control_record(record.key or b"", record.value or b"")

    assert isinstance(ours, ControlRecord)
    assert type(ours).__name__ == CONTROL_KINDS[theirs.kind]
    assert differences(ours, theirs.body) == []


def check_metadata(record: Record, theirs: dict[str, Any]) -> None:
    value = record.value or b""
    ours = read_metadata_record(value)

    frame = read_frame(value)
    assert frame.version == theirs["version"]
    if isinstance(ours, SkippedRecord):
        assert (frame.api_key in CREDENTIAL_RECORDS, ours.reason) == (True, SkipReason.CREDENTIALS)
    else:
        assert type_name(ours) == theirs["type"]
        assert differences(ours, theirs["data"]) == []


def test_every_metadata_record_agrees(corpus: Corpus, oracle: Oracle) -> None:
    """Each record of the KRaft log and of its snapshots, of every node: same type, version and fields."""
    files = [path for path in corpus.files(".log", ".checkpoint") if path.parent.name == KRAFT_LOG]
    files += sorted(corpus.folder.rglob("bootstrap.checkpoint"))
    dump = oracle.dump(files, decoder="cluster-metadata")

    seen: set[str] = set()
    for path in files:
        for (is_control, ours), theirs in zip(records_of(path), dump[path].records, strict=True):
            assert ours.offset == theirs.offset
            if is_control:
                assert isinstance(theirs.control, ControlMessage)
                seen.add(theirs.control.kind)
                check_control(ours, theirs.control)
            else:
                seen.add(theirs.message["type"])
                check_metadata(ours, theirs.message)

    # That the corpus holds what matters: an oracle with nothing to say agrees with everything.
    assert seen >= {"LeaderChange", "SnapshotHeader", "SnapshotFooter"}
    assert seen >= {"TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "REMOVE_TOPIC_RECORD"}
    assert seen >= {"CONFIG_RECORD", "REGISTER_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"}
    assert seen >= {"FEATURE_LEVEL_RECORD", "PRODUCER_IDS_RECORD", "NO_OP_RECORD", "BEGIN_TRANSACTION_RECORD"}


DYNAMIC_QUORUM = """
process.roles=broker,controller
node.id=7
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:9093
"""


def test_the_voters_of_a_dynamic_quorum_agree(tmp_path: Path, oracle: Oracle) -> None:
    """Where voters may change (KIP-853), formatting writes who they are, and it is read as Kafka prints it.

    Nothing listens on the ports: the storage is only formatted.
    """
    settings = tmp_path / "server.properties"
    settings.write_text(f"{DYNAMIC_QUORUM}log.dirs={tmp_path / 'logs'}\n")
    java = [str(find_java().path), *short_lived(), "-cp", classpath("broker"), "kafka.tools.StorageTool"]
    arguments = [
        "format",
        "--standalone",
        "--cluster-id",
        "MkU3OEVBNTcwNTJENDM2Qg",
        "--config",
        str(settings),
    ]
    subprocess.run([*java, *arguments], check=True, capture_output=True, timeout=60)
    path = tmp_path / "logs" / KRAFT_LOG / "00000000000000000000-0000000000.checkpoint"

    theirs = list(oracle.dump([path], decoder="cluster-metadata")[path].records)

    kinds = []
    for (is_control, ours), printed in zip(records_of(path), theirs, strict=True):
        assert is_control
        assert isinstance(printed.control, ControlMessage)
        check_control(ours, printed.control)
        kinds.append(printed.control.kind)
    assert kinds == ["SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"]


def printed_partition(partition: TopicIdPartition) -> str:
    return f"{partition.id}:{partition.name}-{partition.partition}"


def printed_custom(custom: bytes | None) -> str:
    return "Optional.empty" if custom is None else f"Optional[CustomMetadata{{{len(custom)} bytes}}]"


def printed_remote(record: object) -> str:
    """A record as the toString() of Kafka's class has it."""
    if isinstance(record, RemoteLogSegmentMetadata):
        epochs = ", ".join(f"{each.leader_epoch}={each.offset}" for each in record.segment_leader_epochs)
        return (
            f"RemoteLogSegmentMetadata{{remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition="
            f"{printed_partition(record.remote_log_segment_id.topic_id_partition)}, "
            f"id={record.remote_log_segment_id.id}}}, startOffset={record.start_offset}, "
            f"endOffset={record.end_offset}, brokerId={record.broker_id}, "
            f"maxTimestampMs={record.max_timestamp_ms}, eventTimestampMs={record.event_timestamp_ms}, "
            f"segmentLeaderEpochs={{{epochs}}}, segmentSizeInBytes={record.segment_size_in_bytes}, "
            f"customMetadata={printed_custom(record.custom_metadata)}, "
            f"state={record.remote_log_segment_state.name}, "
            f"txnIdxEmpty={str(record.txn_index_empty).lower()}}}"
        )
    assert isinstance(record, RemoteLogSegmentMetadataUpdate)
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition="
        f"{printed_partition(record.remote_log_segment_id.topic_id_partition)}, "
        f"id={record.remote_log_segment_id.id}}}, "
        f"customMetadata={printed_custom(record.custom_metadata)}, "
        f"state={record.remote_log_segment_state.name}, "
        f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
    )


def test_every_remote_metadata_record_agrees(corpus: Corpus, oracle: Oracle) -> None:
    """Each record of `__remote_log_metadata` is what Kafka's decoder says of it, field by field."""
    files = [path for path in corpus.files(".log") if path.parent.name.startswith(REMOTE_LOG)]
    dump = oracle.dump(files, decoder="remote-log-metadata")

    agreed = 0
    for path in files:
        for (_, ours), theirs in zip(records_of(path), dump[path].records, strict=True):
            assert ours.offset == theirs.offset
            assert printed_remote(read_remote_metadata(ours.value or b"")) == theirs.payload
            agreed += 1

    assert agreed > 0
