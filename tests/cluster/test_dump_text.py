"""The parser of DumpLogSegments' text: every kind of line, and no line skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.dump_text import UnreadableDump, parse
from tests.cluster.dump_values import (
    AbortedTransaction,
    ControlMessage,
    DumpedFile,
    DumpedProducer,
    EndTransaction,
    LastBatch,
    OffsetEntry,
    TimeEntry,
)

BATCH = (
    "baseOffset: 60 lastOffset: 61 count: 2 baseSequence: 10 lastSequence: 11 producerId: 4000000001"
    " producerEpoch: 3 partitionLeaderEpoch: 7 isTransactional: true isControl: false"
    " deleteHorizonMs: OptionalLong[1795090144837] position: 12967 LogAppendTime: 1795003473608 size: 2151"
    " magic: 2 compresscodec: zstd crc: 4165194750 isvalid: true\n"
)
CONTROL_BATCH = (
    "baseOffset: 5 lastOffset: 5 count: 1 baseSequence: -1 lastSequence: -1 producerId: 6 producerEpoch: 0"
    " partitionLeaderEpoch: 0 isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty"
    " position: 0 CreateTime: 17 size: 78 magic: 2 compresscodec: none crc: 1 isvalid: false\n"
)


def dumped(lines: str, *, name: str = "00000000000000000000.log", decoded: bool = False) -> DumpedFile:
    """The one file of a run that printed these lines about it."""
    [file] = parse(f"Dumping {name}\n{lines}", decoded=decoded)
    return file


def record_line(rest: str, *, key_size: int = -1, value_size: int = -1, header_keys: str = "") -> str:
    sizes = f"keySize: {key_size} valueSize: {value_size}"
    return f"| offset: 60 CreateTime: -1 {sizes} sequence: 10 headerKeys: [{header_keys}]{rest}\n"


def test_every_field_of_a_batch_line_is_read() -> None:
    """A batch line becomes a batch with each number, truth and word in its place."""
    [batch] = dumped("Log starting offset: 60\n" + BATCH).batches

    assert (batch.base_offset, batch.last_offset, batch.count) == (60, 61, 2)
    assert (batch.base_sequence, batch.last_sequence) == (10, 11)
    assert (batch.producer_id, batch.producer_epoch, batch.leader_epoch) == (4000000001, 3, 7)
    assert (batch.is_transactional, batch.is_control, batch.is_valid) == (True, False, True)
    assert batch.delete_horizon_ms == 1795090144837
    assert (batch.position, batch.size_bytes, batch.magic) == (12967, 2151, 2)
    assert (batch.timestamp_type, batch.max_timestamp_ms) == ("LogAppendTime", 1795003473608)
    assert (batch.codec, batch.crc) == ("zstd", 4165194750)


def test_null_key_and_value_are_none_and_empty_ones_are_empty() -> None:
    """What is absent from the line is None; what is there with size 0 is the empty string."""
    file = dumped(
        BATCH + record_line("") + record_line(" key:  payload: ", key_size=0, value_size=0, header_keys="a,b")
    )

    nulls, empties = file.records
    assert (nulls.key, nulls.payload, nulls.header_keys) == (None, None, "")
    assert (empties.key, empties.payload, empties.header_keys) == ("", "", "a,b")


def test_a_key_that_looks_like_the_tool_s_own_words_is_cut_by_its_size() -> None:
    """Sizes decide where the key ends, not the first ` payload: `."""
    file = dumped(BATCH + record_line(" key: a payload: b payload: c", key_size=12, value_size=1))

    [record] = file.records
    assert (record.key, record.payload) == ("a payload: b", "c")


def test_line_breaks_in_a_payload_stay_in_the_payload() -> None:
    """A payload of several lines, ending in an empty one, is one payload."""
    file = dumped(BATCH + record_line(" payload: one\n\ntwo\r\n", value_size=10) + record_line(""))

    several, none = file.records
    assert several.payload == "one\n\ntwo\r\n"
    assert none.payload is None


def test_bytes_that_are_not_utf_8_leave_the_text_within_its_size() -> None:
    """A replacement character stands for one to three bytes; outside that the line is refused."""
    broken = "\N{REPLACEMENT CHARACTER}" * 4

    [record] = dumped(BATCH + record_line(f" payload: {broken}", value_size=7)).records

    assert record.payload == broken
    with pytest.raises(UnreadableDump):
        dumped(BATCH + record_line(f" payload: {broken}", value_size=3))


def test_control_records_are_read_by_kind() -> None:
    """A transaction's marker and a KRaft control record are no payloads."""
    file = dumped(
        CONTROL_BATCH
        + record_line(" endTxnMarker: ABORT coordinatorEpoch: 12", key_size=4, value_size=6)
        + record_line(' LeaderChange: {"version":0,"leaderId":1}', key_size=4, value_size=19)
        + record_line(' SnapshotHeader {"version":0}', key_size=4, value_size=12)
    )

    kinds = [record.control for record in file.records]
    assert kinds == [
        EndTransaction(kind="ABORT", coordinator_epoch=12),
        ControlMessage(kind="LeaderChange", body={"version": 0, "leaderId": 1}),
        ControlMessage(kind="SnapshotHeader", body={"version": 0}),
    ]


def test_a_decoder_s_payload_is_json_of_any_size() -> None:
    """With a decoder the payload is Kafka's JSON, whose length is not the value's."""
    payload = '{"type":"NO_OP_RECORD","version":0,"data":{}}'

    [record] = dumped(BATCH + record_line(f" payload: {payload}", value_size=4), decoded=True).records

    assert record.message == {"type": "NO_OP_RECORD", "version": 0, "data": {}}


def test_indexes_and_snapshots_are_read() -> None:
    """Each line of an index or a producer snapshot becomes one entry."""
    offsets = dumped("offset: 24 position: 4302\noffset: 49 position: 9710\n", name="0.index")
    times = dumped("timestamp: -1 offset: 9\n", name="0.timeindex")
    aborted = dumped(
        "version: 0 producerId: 7 firstOffset: 1 lastOffset: 9 lastStableOffset: 10\n", name="0.txnindex"
    )
    fields = "producerEpoch: 2 coordinatorEpoch: -1 currentTxnFirstOffset:"
    producers = dumped(
        f"producerId: 1 {fields} OptionalLong.empty lastTimestamp: 5"
        " firstSequence: 95 lastSequence: 99 lastOffset: 349 offsetDelta: 4 timestamp: 6\n"
        f"producerId: 2 {fields} OptionalLong[33] lastTimestamp: -1\n",
        name="0.snapshot",
    )

    assert offsets.offset_entries == [
        OffsetEntry(offset=24, position=4302),
        OffsetEntry(offset=49, position=9710),
    ]
    assert times.time_entries == [TimeEntry(timestamp_ms=-1, offset=9)]
    assert aborted.aborted_transactions == [
        AbortedTransaction(version=0, producer_id=7, first_offset=1, last_offset=9, last_stable_offset=10)
    ]
    assert producers.producers == [
        DumpedProducer(
            producer_id=1,
            producer_epoch=2,
            coordinator_epoch=-1,
            current_transaction_first_offset=None,
            last_timestamp_ms=5,
            last_batch=LastBatch(
                first_sequence=95, last_sequence=99, last_offset=349, offset_delta=4, timestamp_ms=6
            ),
        ),
        DumpedProducer(
            producer_id=2,
            producer_epoch=2,
            coordinator_epoch=-1,
            current_transaction_first_offset=33,
            last_timestamp_ms=-1,
            last_batch=None,
        ),
    ]


def test_remarks_about_a_file_are_kept() -> None:
    """Where a file starts, that it is empty, that it passed a check, that its tail is torn."""
    log = dumped("Log starting offset: 75\nFound 17 invalid bytes at the end of 75.log\n")
    checkpoint = dumped("Snapshot end offset: 113, epoch: 4\n", name="113-4.checkpoint")
    index = dumped("0.index is empty.\n", name="0.index")
    checked = dumped("0.index passed sanity check.\n", name="0.index")

    assert (log.starting_offset, log.trailing_invalid_bytes) == (75, 17)
    assert (checkpoint.starting_offset, checkpoint.snapshot_epoch) == (113, 4)
    assert index.said_empty
    assert checked.passed_sanity_check


def test_files_come_in_the_order_they_were_dumped() -> None:
    """One run over several files gives one value each."""
    files = parse("Dumping a.index\noffset: 1 position: 2\nDumping b.index\n")

    assert [(file.path, len(file.offset_entries)) for file in files] == [
        (Path("a.index"), 1),
        (Path("b.index"), 0),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "something new",
        "offset: 24 position: 4302 colour: blue",
        BATCH.replace("isvalid: true", "isvalid: maybe").rstrip("\n"),
        BATCH.replace("crc", "checksum").rstrip("\n"),
        "",
    ],
)
def test_a_line_that_is_not_understood_is_refused(line: str) -> None:
    """Nothing that the tool prints is skipped."""
    with pytest.raises(UnreadableDump):
        dumped(f"{line}\n")


def test_a_payload_longer_or_shorter_than_its_size_is_refused() -> None:
    """A size that does not match the text means that lines were attributed wrongly."""
    with pytest.raises(UnreadableDump):
        dumped(BATCH + record_line(" payload: four", value_size=5))
    with pytest.raises(UnreadableDump):
        dumped(BATCH + record_line(" key: four payload: four", key_size=4, value_size=3))
