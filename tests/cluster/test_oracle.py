"""The oracle loses nothing of what Kafka's tool says, over every file of the corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.cluster import oracle as oracle_module
from tests.cluster.corpus import Corpus
from tests.cluster.dump_text import parse
from tests.cluster.dump_values import DumpedBatch, DumpedFile, DumpedRecord, EndTransaction
from tests.cluster.oracle import Decoder, Oracle, OracleFailed

SIDE_FILES = (".index", ".timeindex", ".txnindex", ".snapshot")
STATES = ("single/stopped", "nodes/forked-divergent", "nodes/stopped", "tiered/stopped")
DECODED_TOPICS: dict[str, Decoder] = {
    "__cluster_metadata": "cluster-metadata",
    "__remote_log_metadata": "remote-log-metadata",
    "__consumer_offsets": "offsets",
    "__transaction_state": "transaction-log",
}


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def batch_line(batch: DumpedBatch) -> str:
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count}"
        f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
        f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
        f" partitionLeaderEpoch: {batch.leader_epoch}"
        f" isTransactional: {str(batch.is_transactional).lower()}"
        f" isControl: {str(batch.is_control).lower()}"
        f" deleteHorizonMs: {optional_long(batch.delete_horizon_ms)} position: {batch.position}"
        f" {batch.timestamp_type}: {batch.max_timestamp_ms} size: {batch.size_bytes} magic: {batch.magic}"
        f" compresscodec: {batch.codec} crc: {batch.crc} isvalid: {str(batch.is_valid).lower()}"
    )


def record_line(record: DumpedRecord) -> str:
    line = (
        f"| offset: {record.offset} {record.timestamp_type}: {record.timestamp_ms}"
        f" keySize: {record.key_size_bytes} valueSize: {record.value_size_bytes}"
        f" sequence: {record.sequence} headerKeys: [{record.header_keys}]"
    )
    if isinstance(record.control, EndTransaction):
        epoch = record.control.coordinator_epoch
        return f"{line} endTxnMarker: {record.control.kind} coordinatorEpoch: {epoch}"
    if record.control is not None:
        colon = ":" if record.control.kind == "LeaderChange" else ""
        body = json.dumps(record.control.body, separators=(",", ":"))
        return f"{line} {record.control.kind}{colon} {body}"
    line += "" if record.key is None else f" key: {record.key}"
    return line + ("" if record.payload is None else f" payload: {record.payload}")


def lines_of(file: DumpedFile) -> Iterator[str]:
    """What the tool must have printed to give this value."""
    yield f"Dumping {file.path}"
    if file.path.suffix == ".log":
        yield f"Log starting offset: {file.starting_offset}"
    elif file.path.suffix == ".checkpoint":
        snapshot = f"Snapshot end offset: {file.starting_offset}, epoch: {file.snapshot_epoch}"
        yield "KRaft bootstrap snapshot" if file.starting_offset is None else snapshot
    for batch in file.batches:
        yield batch_line(batch)
        yield from map(record_line, batch.records)
    if file.trailing_invalid_bytes:
        yield f"Found {file.trailing_invalid_bytes} invalid bytes at the end of {file.path.name}"
    for entry in file.offset_entries:
        yield f"offset: {entry.offset} position: {entry.position}"
    for time_entry in file.time_entries:
        yield f"timestamp: {time_entry.timestamp_ms} offset: {time_entry.offset}"
    for aborted in file.aborted_transactions:
        yield (
            f"version: {aborted.version} producerId: {aborted.producer_id}"
            f" firstOffset: {aborted.first_offset} lastOffset: {aborted.last_offset}"
            f" lastStableOffset: {aborted.last_stable_offset}"
        )
    yield from _producer_lines(file)
    if file.said_empty:
        yield f"{file.path} is empty."


def _producer_lines(file: DumpedFile) -> Iterator[str]:
    for producer in file.producers:
        line = (
            f"producerId: {producer.producer_id} producerEpoch: {producer.producer_epoch}"
            f" coordinatorEpoch: {producer.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(producer.current_transaction_first_offset)}"
            f" lastTimestamp: {producer.last_timestamp_ms} "
        )
        if last := producer.last_batch:
            line += (
                f"firstSequence: {last.first_sequence} lastSequence: {last.last_sequence}"
                f" lastOffset: {last.last_offset} offsetDelta: {last.offset_delta}"
                f" timestamp: {last.timestamp_ms}"
            )
        yield line


@pytest.mark.parametrize("state", STATES)
def test_the_tool_s_text_can_be_written_again_from_the_values(
    corpus: Corpus, oracle: Oracle, state: str
) -> None:
    """Byte for byte, for every file: so the parser has lost, moved and invented nothing."""
    files = [
        path
        for path in corpus.files(".log", *SIDE_FILES, state=state)
        if path.parent.name.rpartition("-")[0] not in DECODED_TOPICS
    ]

    run = oracle.run(["--print-data-log", "--files", ",".join(map(str, files))])

    again = "".join(f"{line}\n" for file in parse(run.output) for line in lines_of(file))
    assert len(files) >= 5
    assert again == run.output


@pytest.mark.parametrize(("topic", "decoder"), DECODED_TOPICS.items())
def test_decoded_text_can_be_written_again_too(
    corpus: Corpus, oracle: Oracle, topic: str, decoder: Decoder
) -> None:
    """The same for the topics whose records Kafka's tool decodes itself."""
    files = [
        path
        for path in corpus.files(".log", ".checkpoint")
        if path.parent.name == f"{topic}-0" or (topic == "__cluster_metadata" and path.name[0] == "b")
    ]

    run = oracle.run([f"--{decoder}-decoder", "--files", ",".join(map(str, files))])

    again = "".join(f"{line}\n" for file in parse(run.output, decoded=True) for line in lines_of(file))
    assert files
    assert again == run.output


def test_every_decoder_is_tried() -> None:
    """The topics above use all of them."""
    assert set(DECODED_TOPICS.values()) == set(get_args(Decoder))


def test_indexes_of_a_stopped_broker_pass_kafka_s_own_check(corpus: Corpus, oracle: Oracle) -> None:
    """With the sanity check on, an index that has entries is passed and none is printed."""
    folder = corpus.partition("transactions")
    indexes = sorted(folder.glob("*.index"))[:-1]

    dump = oracle.dump(indexes, index_sanity_check=True)

    assert all(dump[path].passed_sanity_check for path in indexes)
    assert not any(dump[path].offset_entries for path in indexes)


def test_a_file_that_breaks_the_tool_costs_only_itself(corpus: Corpus, oracle: Oracle) -> None:
    """A pre-allocated index beside an empty log ends the tool; the files before and behind it are dumped."""
    good = sorted(corpus.partition("codec-gzip").glob("*.log"))
    [breaks] = corpus.partition("empty", state="single/killed").glob("*.index")
    files = [good[0], breaks, good[1]]

    dump = oracle.dump(files, allow_failures=True)

    assert set(dump.files) == {good[0], good[1]}
    assert list(dump.failures) == [breaks]
    with pytest.raises(OracleFailed, match="NoSuchElementException"):
        oracle.dump(files)


def test_what_the_tool_complains_of_is_kept(corpus: Corpus, oracle: Oracle) -> None:
    """A compacted log's jumps, pair by pair, under their heading and their file."""
    logs = sorted(corpus.partition("compacted").glob("*.log"))

    jumps = [each for each in oracle.dump(logs).complaints if not each.line.startswith("-1 is")]

    assert {each.heading for each in jumps} == {"Non-consecutive offsets in"}
    assert {each.path for each in jumps} <= set(logs)
    assert len(jumps) > 1


def test_many_files_are_dumped_in_several_runs(
    corpus: Corpus, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one argument cannot hold all names, nothing is lost."""
    logs = sorted(corpus.partition("size-retention").glob("*.log"))
    monkeypatch.setattr(oracle_module, "ARGUMENT_BYTES", len(str(logs[0])) + 10)

    dump = oracle.dump(logs)

    assert sorted(dump.files) == logs
    assert len(logs) > 1


def test_a_name_with_a_comma_is_refused(oracle: Oracle) -> None:
    """The tool would take it for two files."""
    with pytest.raises(OracleFailed, match="comma"):
        oracle.dump([Path("a,b.log")])
