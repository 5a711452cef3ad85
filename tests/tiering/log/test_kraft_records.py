"""KRaft's metadata records against Kafka's own bytes, and against what no Kafka has written yet."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.message import compact_string, encode_framed
from tests.encode.record_batch import uvarint
from tests.tiering.log.instances import instances
from tests.tiering.log.kafka_json import differences, vectors
from tiering.log.errors import EndOfBuffer, LogFormatError, Malformed, UnsupportedVersion
from tiering.log.framed import SkippedRecord, SkipReason, SkipTally
from tiering.log.kraft.records import CREDENTIAL_RECORDS, METADATA_RECORDS, read_metadata_record
from tiering.log.kraft.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from tiering.log.wire import Uuid

VECTORS = vectors("metadata_records", "records")
TABLES = sorted(METADATA_RECORDS.items())
TOPIC_ID = Uuid("CgkTzsXgRlOwPTRJHnL2yg")
TOPIC = TopicRecord(name="orders", topic_id=TOPIC_ID)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['type']}-v{v['version']}-{len(v['hex'])}")
def test_every_record_kafka_writes_is_read_field_by_field(vector: dict[str, Any]) -> None:
    """What Kafka's serde wrote is read as Kafka's own converter prints it."""
    record = read_metadata_record(bytes.fromhex(vector["hex"]))

    if vector["apiKey"] in CREDENTIAL_RECORDS:
        assert record == SkippedRecord(
            api_key=vector["apiKey"], version=vector["version"], reason=SkipReason.CREDENTIALS
        )
    else:
        assert type(record).__name__ == vector["type"]
        assert differences(record, vector["printed"]) == []


def test_the_vectors_hold_every_type_in_every_version() -> None:
    """No table stands untested against Kafka's own bytes."""
    written = {(vector["apiKey"], vector["version"]) for vector in VECTORS}

    ours = {(key, version) for key, table in TABLES for version in table.versions}

    assert ours == {(key, version) for key, version in written if key not in CREDENTIAL_RECORDS}


@given(st.data())
def test_each_value_survives_writing_and_reading(data: st.DataObject) -> None:
    """A record of any type and version, written as Kafka writes it, is read as the same value."""
    _, table = data.draw(st.sampled_from(TABLES))
    version = data.draw(st.sampled_from(table.versions))
    record = data.draw(instances(table, version))

    assert read_metadata_record(encode_framed(record, version)) == record


@pytest.mark.parametrize(
    ("value", "api_key", "version", "reason"),
    [
        (b"\x01\x63\x00whatever", 99, 0, SkipReason.UNKNOWN_TYPE),
        (b"\x01\x02\x01whatever", 2, 1, SkipReason.NEWER_VERSION),
        (b"\x01\x0b\x00whatever", 11, 0, SkipReason.CREDENTIALS),
    ],
)
def test_what_is_not_read_is_said_and_why(
    value: bytes, api_key: int, version: int, reason: SkipReason
) -> None:
    """A type or version from the future, and a credential, are passed over, and it is said why."""
    skipped = read_metadata_record(value)

    assert skipped == SkippedRecord(api_key=api_key, version=version, reason=reason)


def test_skipped_records_are_counted_while_the_others_pass() -> None:
    """The tally holds one count for each type, version and reason, and nothing else is lost."""
    tally = SkipTally()
    values = [b"\x01\x63\x00", encode_framed(TOPIC, 0), b"\x01\x63\x00", b"\x01\x02\x07"]

    passed = list(tally.sift(map(read_metadata_record, values)))

    assert passed == [TOPIC]
    assert tally.skipped == Counter(
        {
            SkippedRecord(api_key=99, version=0, reason=SkipReason.UNKNOWN_TYPE): 2,
            SkippedRecord(api_key=2, version=7, reason=SkipReason.NEWER_VERSION): 1,
        }
    )


def test_a_tag_of_the_future_is_passed_over() -> None:
    """A tagged field that no table knows changes nothing of what is known (KIP-482)."""
    value = encode_framed(TOPIC, 0, extra_tags={7: b"from the future"})

    assert read_metadata_record(value) == TOPIC


def test_a_change_says_what_it_left_as_it_was() -> None:
    """A change record with no tags changes nothing: None, -2 and -1, each as its class says."""
    change = read_metadata_record(encode_framed(PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID), 2))

    assert isinstance(change, PartitionChangeRecord)
    assert (change.isr, change.leader, change.leader_recovery_state) == (None, -2, -1)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", EndOfBuffer),
        (b"\x00\x02\x00", UnsupportedVersion),
        (b"\x02\x02\x00", UnsupportedVersion),
        (b"\x01" + uvarint(2**15) + b"\x00", Malformed),
        (b"\x01\x02" + uvarint(2**32 - 1), Malformed),
        (encode_framed(TOPIC, 0)[:-1], EndOfBuffer),
        (encode_framed(TOPIC, 0) + b"\x00", Malformed),
        (b"\x01\x02\x00" + compact_string(None) + bytes(17), Malformed),
    ],
    ids=[
        "empty",
        "frame 0",
        "frame 2",
        "key over int16",
        "version over int16",
        "cut",
        "garbage",
        "null name",
    ],
)
def test_a_broken_record_is_refused_by_type(value: bytes, error: type[LogFormatError]) -> None:
    """A frame or a record that Kafka could not have written is an error, not a guess."""
    with pytest.raises(error):
        read_metadata_record(value)


def test_a_tag_that_the_version_does_not_have_is_refused() -> None:
    """Kafka's reader refuses such a record too: it would read an ELR into a version without one."""
    record = PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )

    with pytest.raises(Malformed, match="tag 1"):
        read_metadata_record(encode_framed(record, 1, extra_tags={1: b"\x01"}))


def test_an_error_names_the_record_and_the_field() -> None:
    """Whoever reads the message knows where in which record the bytes went wrong."""
    value = encode_framed(TOPIC, 0)

    with pytest.raises(EndOfBuffer) as caught:
        read_metadata_record(value[:12])

    assert str(caught.value) == "TopicRecord.topic_id: uuid at byte 10 needs 16 bytes, but 2 are left"
