"""The corpus holds what it says: what the clients wrote, and each hard case in the files' own bytes.

Kafka's DumpLogSegments reads the files. Where these tests pass, a reader that agrees with the tool on every
file of the corpus has met every hard case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cluster.corpus import TORN_TOPICS, Corpus
from tests.cluster.dump_values import DumpedBatch, DumpedFile, DumpedRecord, EndTransaction
from tests.cluster.oracle import Dump, Oracle
from tests.cluster.produce import WrittenRecord

STOPPED, KILLED, TORN = "single/stopped", "single/killed", "single/torn"
FORKED = "nodes/forked-divergent"
# Their records were meant to vanish.
REMOVED = {"compacted", "compacted-transactions", "compacted-twice", "size-retention", "delete-records"}
REMOVED |= {"tiered", "tiered-deleted"}
SNAPPY_JAVA_MAGIC = b"\x82SNAPPY\x00"


@pytest.fixture(scope="module")
def stopped(corpus: Corpus, oracle: Oracle) -> Dump:
    """Every log and side file of the broker that was stopped in order."""
    files = corpus.files(".log", ".txnindex", ".snapshot", state=STOPPED)
    return oracle.dump(path for path in files if not path.parent.name.startswith("__"))


def topic_files(dump: Dump, topic: str, suffix: str = ".log") -> list[DumpedFile]:
    """A topic's files over all its partitions, in offset order."""
    found = [file for path, file in dump.files.items() if path.parent.name.rpartition("-")[0] == topic]
    return sorted((file for file in found if file.path.suffix == suffix), key=lambda file: file.path)


def batches_of(dump: Dump, topic: str) -> list[DumpedBatch]:
    return [batch for file in topic_files(dump, topic) for batch in file.batches]


def data_batches(dump: Dump, topic: str) -> list[DumpedBatch]:
    return [batch for batch in batches_of(dump, topic) if not batch.is_control]


def records_by_offset(dump: Dump, topic: str) -> dict[tuple[int, int], tuple[DumpedBatch, DumpedRecord]]:
    return {
        (int(file.path.parent.name.rpartition("-")[2]), record.offset): (batch, record)
        for file in topic_files(dump, topic)
        for batch in file.batches
        for record in batch.records
        if not batch.is_control
    }


def test_what_clients_wrote_is_in_the_files(corpus: Corpus, stopped: Dump) -> None:
    """Each acknowledged record is at its offset with its key, value, headers and timestamp, and nothing else
    is there; where the broker was killed, more may be there."""
    compared = 0
    for topic, case in corpus.written.items():
        if topic in REMOVED or topic in TORN_TOPICS or topic in ("forked", "many-epochs"):
            continue
        found = records_by_offset(stopped, topic)
        expected = {(record.partition, record.offset): record for record in case.records}
        assert topic == "killed" or set(found) == set(expected), topic
        for at, record in expected.items():
            assert_same(record, *found[at])
            compared += 1
    assert compared > 5_000


def assert_same(written: WrittenRecord, batch: DumpedBatch, dumped: DumpedRecord) -> None:
    """The dump shows text, so bytes that are not UTF-8 are compared by length only."""
    when = batch.max_timestamp_ms if batch.timestamp_type == "LogAppendTime" else dumped.timestamp_ms
    assert when == written.timestamp_ms
    assert dumped.header_keys == ",".join(key for key, _ in written.headers)
    for ours, text, size_bytes in (
        (written.key, dumped.key, dumped.key_size_bytes),
        (written.value, dumped.payload, dumped.value_size_bytes),
    ):
        assert size_bytes == (-1 if ours is None else len(ours))
        if ours is None or "\ufffd" not in (text or ""):
            assert text == (None if ours is None else ours.decode())


def test_every_batch_in_the_corpus_is_one_that_kafka_calls_valid(stopped: Dump) -> None:
    """Recovery left no torn batch behind."""
    all_batches = [batch for file in stopped.files.values() for batch in file.batches]

    assert all(batch.is_valid for batch in all_batches)
    assert all(file.trailing_invalid_bytes == 0 for file in stopped.files.values())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_codec_was_written_by_client_and_by_broker(stopped: Dump, codec: str) -> None:
    """Several batches of the codec, with few and with many records, from librdkafka and from Java."""
    by_client = {batch.codec for batch in batches_of(stopped, f"codec-{codec}")}
    by_broker = {batch.codec for batch in batches_of(stopped, f"codec-{codec}-java")}
    sizes = {batch.count for batch in batches_of(stopped, f"codec-{codec}")}

    # A client sends a batch of one record as it is when no codec makes it smaller.
    assert codec in by_client
    assert by_client <= {codec, "none"}
    assert by_broker == {codec}
    assert sizes >= {1, 10}
    assert max(sizes) >= 60
    assert len(topic_files(stopped, f"codec-{codec}-java")) > 2


def test_snappy_stands_in_both_framings(corpus: Corpus) -> None:
    """Java's snappy begins with its own magic, librdkafka's does not."""
    java = b"".join(path.read_bytes() for path in corpus.partition("codec-snappy-java").glob("*.log"))
    client = b"".join(path.read_bytes() for path in corpus.partition("codec-snappy").glob("*.log"))

    assert SNAPPY_JAVA_MAGIC in java
    assert SNAPPY_JAVA_MAGIC not in client


def test_transactions_span_segments_and_leave_aborted_ones_in_the_index(stopped: Dump) -> None:
    """Markers of both kinds; a transaction whose first record and marker lie in different segments."""
    kinds = {
        record.control.kind
        for batch in batches_of(stopped, "transactions")
        for record in batch.records
        if isinstance(record.control, EndTransaction)
    }
    indexed = [
        (file.path.stem, aborted)
        for file in topic_files(stopped, "transactions", ".txnindex")
        for aborted in file.aborted_transactions
    ]

    assert kinds == {"COMMIT", "ABORT"}
    assert len(indexed) == 3
    assert any(aborted.first_offset < int(base) for base, aborted in indexed)


def test_the_hanging_transaction_is_open_in_the_producer_snapshot(corpus: Corpus, stopped: Dump) -> None:
    """The last snapshot says that a producer's transaction began at the last stable offset."""
    last = topic_files(stopped, "hanging-transaction", ".snapshot")[-1]

    open_at = {producer.current_transaction_first_offset for producer in last.producers}
    assert corpus.written["hanging-transaction"].notes["last_stable_offset"] in open_at
    assert len(topic_files(stopped, "hanging-transaction")) > 1


def test_compaction_left_holes_tombstones_and_an_empty_batch(stopped: Dump) -> None:
    """Offsets are missing inside and between batches; a tombstone's batch has a delete horizon; the batch of
    an active producer whose records are all superseded is there without records."""
    batches = batches_of(stopped, "compacted")
    holes_inside = [batch for batch in batches if 0 < batch.count <= batch.last_offset - batch.base_offset]
    holes_between = [
        (one, next_) for one, next_ in pairwise(batches) if next_.base_offset > one.last_offset + 1
    ]
    tombstones = [
        batch
        for batch in batches
        if batch.delete_horizon_ms is not None and any(record.payload is None for record in batch.records)
    ]
    empty = [batch for batch in batches if batch.count == 0]

    assert holes_inside
    assert holes_between
    assert tombstones
    assert [batch.last_sequence for batch in empty] == [4]


def test_cleaned_transactions_leave_markers_with_a_delete_horizon(stopped: Dump) -> None:
    """A marker whose transaction has no records left waits for its horizon; a second cleaning takes it."""
    waiting = [
        batch
        for batch in batches_of(stopped, "compacted-transactions")
        if batch.is_control and batch.delete_horizon_ms is not None
    ]
    twice = [batch.base_offset for batch in batches_of(stopped, "compacted-twice")]

    assert waiting
    assert twice[0] > 0


def test_timestamps_are_as_odd_as_they_were_sent(stopped: Dump) -> None:
    """None (-1), before 1970, the largest possible, and a maximum that is not the last record's."""
    batches = batches_of(stopped, "timestamps")
    seen = {record.timestamp_ms for batch in batches for record in batch.records}

    assert {-1, -2, 1, 2**62, 2**63 - 1} <= seen
    assert any(batch.records[-1].timestamp_ms < batch.max_timestamp_ms for batch in batches)


def test_log_append_time_and_create_time_stand_in_one_log(stopped: Dump) -> None:
    """Both kinds, in every codec."""
    kinds = defaultdict(set)
    for batch in batches_of(stopped, "log-append-time"):
        kinds[batch.timestamp_type].add(batch.codec)

    assert kinds["LogAppendTime"] == kinds["CreateTime"] == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_deleted_segments_and_topics_are_there_under_their_names(corpus: Corpus) -> None:
    """`.deleted` files beside live ones, `-delete` and `-stray` folders beside live ones."""
    deleted = list(corpus.partition("size-retention", state=KILLED).glob("*.deleted"))
    folders = {path.name for log_dir in corpus.log_dirs(KILLED) for path in log_dir.iterdir()}
    strays = list((corpus.folder / "nodes/stopped").glob("node-*/logs/strayed-0.*-stray"))

    assert {path.suffixes[0] for path in deleted} >= {".log", ".index", ".timeindex"}
    assert any(name.startswith("recreated-0.") and name.endswith("-delete") for name in folders)
    assert "recreated-0" in folders
    assert len(strays) == 1


def test_the_killed_broker_left_preallocated_indexes_and_no_marker(corpus: Corpus) -> None:
    """An active index of Kafka's default 10 MiB, mostly zeros; a clean stop cuts it to its entries."""
    [killed] = [path for path in _indexes(corpus, KILLED) if path.stat().st_size >= 10 * 1024 * 1024 - 8]
    after = max(path.stat().st_size for path in _indexes(corpus, STOPPED))

    assert killed.read_bytes().count(0) > 10 * 1024 * 1024 - 1024
    assert after < 1024
    assert not (corpus.log_dirs(KILLED)[0] / ".kafka_cleanshutdown").exists()
    assert (corpus.log_dirs(STOPPED)[0] / ".kafka_cleanshutdown").exists()


def _indexes(corpus: Corpus, state: str) -> Iterator[Path]:
    yield from corpus.partition("default-index", state=state).glob("*.index")


def test_torn_tails_end_inside_a_batch_and_recovery_cuts_them(corpus: Corpus, oracle: Oracle) -> None:
    """One tail is torn in a batch's header, the other in its records; the broker then dropped that batch."""
    torn, recovered = (
        {topic: max(corpus.partition(topic, state=state).glob("*.log")) for topic in TORN_TOPICS}
        for state in (TORN, STOPPED)
    )
    dump = oracle.dump([*torn.values(), *(path for path in recovered.values() if path.name == "0" * 20)])

    left = {topic: dump[path].trailing_invalid_bytes for topic, path in torn.items()}
    assert left["torn-header"] == 17
    assert left["torn-records"] > 61
    for topic in TORN_TOPICS:
        assert recovered[topic].stat().st_size == torn[topic].stat().st_size - left[topic]


def test_the_dead_leader_has_records_that_the_others_do_not(corpus: Corpus, oracle: Oracle) -> None:
    """At and after the fork the old leader holds epoch 0, the others epoch 1; after its return all agree."""
    notes = corpus.written["forked"].notes
    states = (FORKED, "nodes/stopped")
    logs = {
        (state, node_id): sorted(corpus.partition("forked", state=state, node_id=node_id).glob("*.log"))
        for state in states
        for node_id in (1, 2, 3)
    }
    dump = oracle.dump([path for paths in logs.values() for path in paths])
    apart, together = (
        {
            node_id: [
                (batch.base_offset, batch.leader_epoch, batch.crc)
                for path in logs[state, node_id]
                for batch in dump[path].batches
            ]
            for node_id in (1, 2, 3)
        }
        for state in states
    )
    old = apart.pop(notes["old_leader"])

    assert {epoch for offset, epoch, _ in old if offset >= notes["fork"]} == {0}
    for other in apart.values():
        assert {epoch for offset, epoch, _ in other if offset >= notes["fork"]} == {1}
    assert together[1] == together[2] == together[3]


def test_many_elections_leave_many_epochs(corpus: Corpus) -> None:
    """leader-epoch-checkpoint: version, count, then an epoch and its first offset a line."""
    lines = (corpus.partition("many-epochs", state="nodes/stopped") / "leader-epoch-checkpoint").read_text()

    epochs = [tuple(map(int, line.split())) for line in lines.splitlines()[2:]]
    assert len(epochs) >= 4
    assert epochs == sorted(epochs)


def test_the_metadata_log_has_segments_snapshots_and_many_kinds(corpus: Corpus, oracle: Oracle) -> None:
    """Topics made and removed, partitions changed, configs set, and kinds that Seawall has no use for."""
    folder = corpus.partition("__cluster_metadata", state=STOPPED)
    logs, snapshots = sorted(folder.glob("*.log")), sorted(folder.glob("*.checkpoint"))

    dump = oracle.dump([*logs, *snapshots], decoder="cluster-metadata")

    kinds = {r.message["type"] for file in dump.files.values() for r in file.records if r.payload}
    assert len(logs) > 1
    assert snapshots
    assert kinds >= {
        "TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD",
        "REGISTER_BROKER_RECORD", "ACCESS_CONTROL_ENTRY_RECORD", "USER_SCRAM_CREDENTIAL_RECORD",
    }  # fmt: skip


def test_remote_segments_were_copied_and_deleted(corpus: Corpus, oracle: Oracle) -> None:
    """`__remote_log_metadata` has all four states, and the remote folder what was not deleted."""
    [log] = corpus.partition("__remote_log_metadata", state="tiered/stopped").glob("*.log")
    notes = corpus.written["tiered"].notes

    payloads = [
        record.payload or "" for record in oracle.dump([log], decoder="remote-log-metadata")[log].records
    ]

    states = {payload.partition(" state=")[2].partition(",")[0] for payload in payloads}
    assert states == {
        "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
    }  # fmt: skip
    remote = list((corpus.folder / "tiered/remote").rglob("*.log"))
    assert len(remote) == notes["copied"] - notes["deleted"]
