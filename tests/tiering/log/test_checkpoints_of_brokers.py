"""The text files of real brokers, held against what else the same brokers wrote: two witnesses must agree."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.cluster.corpus import Corpus
from tests.tiering.log.test_side_files_against_kafka import KRAFT_LOG, records_of
from tiering.log.batch import HEADER_BYTES, BatchHeader, read_header
from tiering.log.checkpoints import (
    CLEANER_OFFSETS,
    LEADER_EPOCHS,
    OFFSET_CHECKPOINTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    OffsetCheckpoint,
    TopicPartition,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tiering.log.identity_files import (
    META_PROPERTIES,
    PARTITION_METADATA,
    read_meta_properties,
    read_partition_metadata,
)
from tiering.log.kraft.nodes import RegisterBrokerRecord
from tiering.log.kraft.records import MetadataRecord, read_metadata_record
from tiering.log.kraft.topics import TopicRecord

NODES = [("single/killed", 1), ("single/stopped", 1), ("tiered/stopped", 1)]
NODES += [("nodes/stopped", node_id) for node_id in (1, 2, 3)]
ANY_NODE = pytest.mark.parametrize(
    ("state", "node_id"), NODES, ids=[f"{state}-{node}" for state, node in NODES]
)


def live_partitions(log_dir: Path) -> list[Path]:
    """Partition folders, but for the metadata log's, which is in no checkpoint and no topic record."""
    found = [path.parent for path in log_dir.glob(f"*/{PARTITION_METADATA}")]
    gone = ("-delete", "-stray", "-future")
    return [path for path in found if path.name != KRAFT_LOG and not path.name.endswith(gone)]


def batches_of(partition: Path) -> list[BatchHeader]:
    headers: list[BatchHeader] = []
    for path in sorted(partition.glob("*.log")):
        content, position = path.read_bytes(), 0
        while position + HEADER_BYTES <= len(content):  # a killed broker may have left less
            headers.append(read_header(content, position))
            position += headers[-1].size_bytes
    return headers


def metadata_of(corpus: Corpus, state: str, node_id: int) -> list[MetadataRecord]:
    """Every metadata record this node still has, snapshots first."""
    folders = [path / KRAFT_LOG for path in corpus.log_dirs(state, node_id) if (path / KRAFT_LOG).is_dir()]
    files = [
        path for folder in folders for suffix in ("checkpoint", "log") for path in folder.glob(f"*.{suffix}")
    ]
    read = [
        read_metadata_record(record.value or b"")
        for path in files
        for is_control, record in records_of(path)
        if not is_control
    ]
    return [record for record in read if isinstance(record, MetadataRecord)]


def checkpoint(log_dir: Path, name: str) -> OffsetCheckpoint:
    return read_offset_checkpoint((log_dir / name).read_bytes(), name)


def test_every_text_file_of_every_broker_is_read(corpus: Corpus) -> None:
    """No file of a real broker, killed, forked or stopped in order, is refused."""
    counts: dict[str, int] = defaultdict(int)
    for path in sorted(path for path in corpus.folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.name in OFFSET_CHECKPOINTS:
            read_offset_checkpoint(content, path.name)
        elif path.name == LEADER_EPOCHS or path.suffix == ".leader_epoch_checkpoint":
            read_leader_epoch_checkpoint(content)
        elif path.name == PARTITION_METADATA:
            read_partition_metadata(content)
        elif path.name == META_PROPERTIES:
            assert read_meta_properties(content).unrecognised == {}
        else:
            continue
        counts[path.name] += 1

    assert counts.keys() >= {*OFFSET_CHECKPOINTS, LEADER_EPOCHS, PARTITION_METADATA, META_PROPERTIES}


@ANY_NODE
def test_partition_metadata_names_the_topic_of_the_metadata_log(
    corpus: Corpus, state: str, node_id: int
) -> None:
    """A live partition's topic id is the one under which the KRaft log has a topic of that name."""
    topics = {
        (record.name, record.topic_id)
        for record in metadata_of(corpus, state, node_id)
        if isinstance(record, TopicRecord)
    }
    partitions = [path for log_dir in corpus.log_dirs(state, node_id) for path in live_partitions(log_dir)]

    named = {
        (path.name.rpartition("-")[0], read_partition_metadata((path / PARTITION_METADATA).read_bytes()))
        for path in partitions
    }

    assert named
    assert named <= topics


@ANY_NODE
def test_meta_properties_name_the_directory_that_was_registered(
    corpus: Corpus, state: str, node_id: int
) -> None:
    """One cluster, this node, and a directory id that the node's last registration lists."""
    directories = [
        read_meta_properties((path / META_PROPERTIES).read_bytes())
        for path in corpus.log_dirs(state, node_id)
    ]
    registered = [
        record
        for record in metadata_of(corpus, state, node_id)
        if isinstance(record, RegisterBrokerRecord) and record.broker_id == node_id
    ]

    assert {(each.version, each.node_id) for each in directories} == {(1, node_id)}
    assert len({each.cluster_id for each in directories}) == 1
    assert {each.directory_id for each in directories} == set(registered[-1].log_dirs)


@ANY_NODE
def test_epochs_are_those_of_the_batches(corpus: Corpus, state: str, node_id: int) -> None:
    """Each batch was written in the epoch in which its offset lies, by the checkpoint of its partition.

    Kafka cuts the checkpoint at the log start; the batches before it are still on disk for a while.
    """
    compared = 0
    for log_dir in corpus.log_dirs(state, node_id):
        for partition in live_partitions(log_dir):
            checkpointed = read_leader_epoch_checkpoint((partition / LEADER_EPOCHS).read_bytes())
            for header in batches_of(partition):
                if header.last_offset < checkpointed.epochs[0].start_offset:
                    continue
                assert checkpointed.epoch_of(header.last_offset) == header.leader_epoch, partition
                compared += 1

    assert compared > 0


@pytest.mark.parametrize(("state", "node_id"), [node for node in NODES if node[0].endswith("/stopped")])
def test_after_an_orderly_stop_the_checkpoints_are_at_the_log_end(
    corpus: Corpus, state: str, node_id: int
) -> None:
    """All is flushed, and what is flushed is the log: the recovery point of each log is its end."""
    compared = 0
    for log_dir in corpus.log_dirs(state, node_id):
        recovery, high = checkpoint(log_dir, RECOVERY_POINTS), checkpoint(log_dir, REPLICATION_OFFSETS)
        for partition in live_partitions(log_dir):
            topic, _, number = partition.name.rpartition("-")
            headers = batches_of(partition)
            named = TopicPartition(topic, int(number))
            if headers and named in recovery.offsets:
                compared += 1
                assert recovery.offsets[named] == headers[-1].next_offset, partition
                assert high.offsets[named] <= headers[-1].next_offset, partition

    assert compared > 0


def test_only_a_compacted_log_is_in_the_cleaners_checkpoint(corpus: Corpus) -> None:
    """What tells that a log was ever compacted names a topic that is, with an offset inside the log."""
    cleaned = {
        named: (log_dir, offset)
        for log_dir in corpus.log_dirs()
        for named, offset in checkpoint(log_dir, CLEANER_OFFSETS).offsets.items()
    }

    assert any(named.topic.startswith("compacted") for named in cleaned)
    for (topic, partition), (log_dir, offset) in cleaned.items():
        headers = batches_of(log_dir / f"{topic}-{partition}")
        assert 0 <= offset <= headers[-1].next_offset
