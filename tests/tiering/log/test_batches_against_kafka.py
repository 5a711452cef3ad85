"""Real log dirs: every batch and record is read as Kafka reads it, and sound logs are Verified."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.corpus import Corpus
from tests.cluster.dump_values import DumpedBatch, DumpedRecord, EndTransaction
from tests.cluster.oracle import Dump, Oracle
from tests.cluster.produce import WrittenRecord
from tiering.log.batch import BatchHeader, Record, read_marker
from tiering.log.codec import Codec
from tiering.log.segment import BatchAt, Compaction, Depth, iter_batches, scan_segment
from tiering.log.verify import Checked, Request, verify_log_directory, verify_partition
from tiering.outcome import Failed, Inconclusive, Verified

STATES = ("single/killed", "single/stopped", "nodes/forked-divergent", "nodes/stopped", "tiered/stopped")


@pytest.fixture(scope="module")
def segments(corpus: Corpus) -> list[Path]:
    """Every intact segment of the corpus; the torn ones have tests of their own."""
    found = [path for state in STATES for path in corpus.files(".log", state=state, deleted=True)]
    assert len(found) > 200
    return found


@pytest.fixture(scope="module")
def dumped(segments: list[Path], oracle: Oracle) -> Dump:
    """What DumpLogSegments says of them."""
    return oracle.dump(segments)


@contextmanager
def batches_of(path: Path) -> Iterator[Iterator[BatchAt]]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield iter_batches(descriptor)
    finally:
        os.close(descriptor)


def as_dumped(batch: BatchAt) -> DumpedBatch:
    """Our reading in the terms of Kafka's tool, without the records."""
    header: BatchHeader = batch.header
    return DumpedBatch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        count=header.record_count,
        base_sequence=header.base_sequence,
        last_sequence=header.last_sequence,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        leader_epoch=header.leader_epoch,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon_ms=header.delete_horizon_ms,
        position=batch.position,
        timestamp_type="LogAppendTime" if header.is_log_append_time else "CreateTime",
        max_timestamp_ms=header.max_timestamp_ms,
        size_bytes=header.size_bytes,
        magic=2,
        codec=Codec(header.codec_number).name.lower(),
        crc=header.crc,
        is_valid=batch.crc_matches(),
    )


def assert_same_record(ours: Record, theirs: DumpedRecord, header: BatchHeader) -> None:
    assert (ours.offset, ours.timestamp_ms) == (theirs.offset, theirs.timestamp_ms)
    assert (-1 if ours.key is None else len(ours.key)) == theirs.key_size_bytes
    assert (-1 if ours.value is None else len(ours.value)) == theirs.value_size_bytes
    assert ",".join(name for name, _ in ours.headers) == theirs.header_keys
    if isinstance(theirs.control, EndTransaction):
        marker = read_marker(ours)
        assert marker is not None
        assert ("COMMIT" if marker.is_commit else "ABORT") == theirs.control.kind
        assert marker.coordinator_epoch == theirs.control.coordinator_epoch
    elif theirs.control is None:
        assert not header.is_control
        for content, text in ((ours.key, theirs.key), (ours.value, theirs.payload)):
            if content is not None and content.isascii():
                assert content.decode() == text


def test_every_batch_and_record_agrees_with_kafkas_own_tool(segments: list[Path], dumped: Dump) -> None:
    """Header by header and record by record, over every hard case, we read what DumpLogSegments reads."""
    records = 0
    for path in segments:
        theirs = iter(dumped[path].batches)
        with batches_of(path) as ours:
            for batch in ours:
                their = next(theirs)
                listed = list(batch.records())
                assert as_dumped(batch) == DumpedBatch(
                    **{name: getattr(their, name) for name in DumpedBatch.__slots__ if name != "records"}
                ), path
                assert len(listed) == len(their.records), path
                for our_record, their_record in zip(listed, their.records, strict=True):
                    assert_same_record(our_record, their_record, batch.header)
                records += len(listed)
        assert next(theirs, None) is None, path
    assert records > 8000


def test_the_corpus_holds_what_it_is_for(dumped: Dump) -> None:
    """Agreement means something only if the hard cases are really in the files."""
    batches = [batch for file in dumped.files.values() for batch in file.batches]

    assert {batch.codec for batch in batches} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert {batch.timestamp_type for batch in batches} == {"CreateTime", "LogAppendTime"}
    assert any(batch.count == 0 for batch in batches)
    assert any(batch.delete_horizon_ms is not None for batch in batches)
    assert any(0 < batch.count < batch.last_offset - batch.base_offset + 1 for batch in batches)
    kinds = {r.control.kind for b in batches for r in b.records if isinstance(r.control, EndTransaction)}
    assert kinds == {"COMMIT", "ABORT"}
    assert len({batch.leader_epoch for batch in batches}) > 3


CASES_READ_IN_FULL = [
    "codec-none",
    "codec-gzip",
    "codec-snappy",
    "codec-lz4",
    "codec-zstd",
    "codec-zstd-java",
    "codec-mixed",
    "large-records",
    "headers",
    "nulls",
    "idempotent",
    "timestamps",
    "log-append-time",
    "transactions",
]


@pytest.mark.parametrize("topic", CASES_READ_IN_FULL)
def test_what_clients_wrote_is_what_is_read(corpus: Corpus, topic: str) -> None:
    """Keys, values, headers and times of each acknowledged record come back from the broker's files."""
    expected = {record.offset: record for record in corpus.written[topic].of_partition(0)}

    read: dict[int, Record] = {}
    for path in sorted(corpus.partition(topic).glob("*.log")):
        with batches_of(path) as batches:
            read |= {r.offset: r for b in batches if not b.header.is_control for r in b.records()}

    assert read.keys() == expected.keys()
    for offset, record in read.items():
        assert_as_written(record, expected[offset])


def assert_as_written(ours: Record, theirs: WrittenRecord) -> None:
    assert (ours.key, ours.value, ours.timestamp_ms) == (theirs.key, theirs.value, theirs.timestamp_ms)
    assert [(name, content) for name, content in ours.headers] == list(theirs.headers)


def log_dirs(corpus: Corpus, state: str) -> list[Path]:
    return sorted(path for path in (corpus.folder / state).glob("*/logs*") if path.is_dir())


def verified(log_dir: Path, depth: Depth = Depth.RECORDS) -> list[Checked]:
    request = Request(depth=depth)
    return list(verify_log_directory(log_dir, request, lambda _: None))


@pytest.mark.parametrize("state", STATES)
def test_log_dirs_of_real_brokers_are_sound(corpus: Corpus, state: str) -> None:
    """No file of a log dir that a broker wrote, killed or stopped, fails: a false alarm would be here."""
    checked = [c for log_dir in log_dirs(corpus, state) for c in verified(log_dir)]

    complaints = [(str(c.path), c.outcome) for c in checked if isinstance(c.outcome, Failed | Inconclusive)]
    assert complaints == []
    assert sum(isinstance(c.outcome, Verified) for c in checked) > 30


def test_a_torn_tail_of_a_killed_broker_is_inconclusive_and_nothing_else_is(corpus: Corpus) -> None:
    """Exactly the two active segments that were cut short are not Verified."""
    checked = [c for log_dir in log_dirs(corpus, "single/torn") for c in verified(log_dir)]

    unclear = sorted(c.path.parent.name for c in checked if isinstance(c.outcome, Inconclusive))
    assert unclear == ["torn-header-0", "torn-records-0"]
    assert not [c for c in checked if isinstance(c.outcome, Failed)]


def test_a_middle_segment_taken_from_a_real_log_is_missed(corpus: Corpus, tmp_path: Path) -> None:
    """The hole is named with its exact range, which Kafka would load over without a word."""
    partition = tmp_path / "idempotent-0"
    shutil.copytree(corpus.partition("idempotent"), partition)
    logs = sorted(partition.glob("*.log"))
    assert len(logs) > 3
    lost = int(logs[1].stem), int(logs[2].stem)
    for side in partition.glob(f"{logs[1].stem}.*"):
        side.unlink()

    failed = [
        c for c in verify_partition(partition, Request(), lambda _: None) if isinstance(c.outcome, Failed)
    ]

    [hole] = failed
    assert isinstance(hole.outcome, Failed)
    assert hole.path.name == logs[0].name
    assert f"[{lost[0]}, {lost[1]})" in hole.outcome.problems[0].detail


def test_every_covered_byte_flipped_in_a_real_segment_is_found(corpus: Corpus, tmp_path: Path) -> None:
    """One bit at a time, somewhere in every 7 bytes of a real compressed segment: each is a defect."""
    source = min(corpus.partition("codec-zstd").glob("*.log"))
    path = tmp_path / source.name
    content = source.read_bytes()
    path.write_bytes(content)
    end = scan_segment(source, compaction=Compaction.NEVER).data_end
    last_header_at = None
    with batches_of(source) as batches:
        for batch in batches:
            last_header_at = batch.position
    assert last_header_at is not None

    missed = []
    with path.open("r+b", buffering=0) as file:
        for at in range(0, len(content), 7):
            os.pwrite(file.fileno(), bytes([content[at] ^ (1 << at % 8)]), at)
            found = scan_segment(path, limit_offset=end)
            if found.defect is None and not last_header_at + 12 <= at < last_header_at + 16:
                missed.append(at)
            os.pwrite(file.fileno(), content[at : at + 1], at)

    assert missed == []
