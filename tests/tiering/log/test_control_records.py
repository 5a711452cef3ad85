"""The control records of KRaft's own log, against Kafka's bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.message import encode_message
from tests.tiering.log.instances import instances
from tests.tiering.log.kafka_json import differences, vectors
from tiering.log.batch import ControlType
from tiering.log.errors import EndOfBuffer, LogFormatError, Malformed
from tiering.log.framed import SkippedRecord, SkipReason
from tiering.log.kraft.control import CONTROL_RECORDS, SnapshotFooter, read_control_record

NAMES = {
    "LeaderChangeMessage": ControlType.LEADER_CHANGE,
    "SnapshotHeaderRecord": ControlType.SNAPSHOT_HEADER,
    "SnapshotFooterRecord": ControlType.SNAPSHOT_FOOTER,
    "KRaftVersionRecord": ControlType.KRAFT_VERSION,
    "VotersRecord": ControlType.KRAFT_VOTERS,
}
FOOTER = encode_message(SnapshotFooter(version=0), 0)


def key(control_type: int, version: int = 0) -> bytes:
    return struct.pack(">hh", version, control_type)


@pytest.mark.parametrize(
    "vector",
    vectors("control_records", "records"),
    ids=lambda v: f"{v['type']}-v{v['version']}-{len(v['hex'])}",
)
def test_every_control_record_kafka_writes_is_read_field_by_field(vector: dict[str, Any]) -> None:
    """What Kafka wrote for a type is read as Kafka's own converter prints it."""
    control_type = NAMES[vector["type"]]

    record = read_control_record(key(control_type), bytes.fromhex(vector["hex"]))

    assert type(record) is CONTROL_RECORDS[control_type]
    assert differences(record, vector["printed"]) == []


@pytest.mark.slow
@given(st.data())
def test_each_value_survives_writing_and_reading(data: st.DataObject) -> None:
    """A control record of any type and version, written as Kafka writes it, is read as the same value."""
    control_type, table = data.draw(st.sampled_from(sorted(CONTROL_RECORDS.items())))
    version = data.draw(st.sampled_from(table.versions))
    record = data.draw(instances(table, version))
    value = struct.pack(">h", version) + encode_message(record, version)[2:]

    read = read_control_record(key(control_type), value)

    assert encode_message(read, version) == value


@pytest.mark.parametrize(
    ("control_type", "value", "reason"),
    [
        (7, FOOTER, SkipReason.UNKNOWN_TYPE),
        (ControlType.COMMIT, bytes(6), SkipReason.UNKNOWN_TYPE),
        (ControlType.SNAPSHOT_FOOTER, struct.pack(">h", 1) + b"new", SkipReason.NEWER_VERSION),
    ],
)
def test_what_is_not_read_is_said_and_why(control_type: int, value: bytes, reason: SkipReason) -> None:
    """A type from elsewhere or a version from the future is passed over, and it is said why."""
    skipped = read_control_record(key(control_type), value)

    assert isinstance(skipped, SkippedRecord)
    assert (skipped.api_key, skipped.reason) == (control_type, reason)


def test_a_later_key_is_read_as_the_first() -> None:
    """Kafka reads the type out of any later version of the key, and so do we."""
    read = read_control_record(key(ControlType.SNAPSHOT_FOOTER, version=3), FOOTER)

    assert read == SnapshotFooter(version=0)


@pytest.mark.parametrize(
    ("record_key", "value", "error"),
    [
        (b"\x00\x00\x00", FOOTER, EndOfBuffer),
        (key(ControlType.SNAPSHOT_FOOTER, version=-1), FOOTER, Malformed),
        (key(ControlType.SNAPSHOT_FOOTER), b"\x00", EndOfBuffer),
        (key(ControlType.SNAPSHOT_FOOTER), FOOTER + b"\x00", Malformed),
    ],
)
def test_a_broken_control_record_is_refused(
    record_key: bytes, value: bytes, error: type[LogFormatError]
) -> None:
    """A key or value that is cut, negative or too long is an error by type."""
    with pytest.raises(error):
        read_control_record(record_key, value)
