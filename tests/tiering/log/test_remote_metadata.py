"""The records of `__remote_log_metadata`, against Kafka's bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.message import encode_framed
from tests.tiering.log.instances import instances
from tests.tiering.log.kafka_json import differences, vectors
from tiering.log.errors import Malformed
from tiering.log.framed import SkippedRecord, SkipReason
from tiering.log.remote_metadata import (
    REMOTE_METADATA,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    TopicIdPartition,
    read_remote_metadata,
)
from tiering.log.wire import ZERO_UUID

VECTORS = vectors("remote_metadata", "records")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['type']}-{len(v['hex'])}")
def test_every_record_kafka_writes_is_read_field_by_field(vector: dict[str, Any]) -> None:
    """What Kafka's serde wrote is read as Kafka's own converter prints it."""
    record = read_remote_metadata(bytes.fromhex(vector["hex"]))

    assert type(record) is REMOTE_METADATA[vector["apiKey"]]
    assert differences(record, vector["printed"]) == []


def test_the_vectors_hold_every_type() -> None:
    """No table stands untested against Kafka's own bytes."""
    assert {vector["apiKey"] for vector in VECTORS} == set(REMOTE_METADATA)


@given(st.data())
def test_each_value_survives_writing_and_reading(data: st.DataObject) -> None:
    """A record of any type, written as Kafka writes it, is read as the same value."""
    _, table = data.draw(st.sampled_from(sorted(REMOTE_METADATA.items())))
    record = data.draw(instances(table, 0))

    assert read_remote_metadata(encode_framed(record, 0)) == record


@given(instances(RemoteLogSegmentMetadata, 0) | instances(RemoteLogSegmentMetadataSnapshot, 0))
def test_kafkas_last_offset_becomes_a_half_open_range(
    record: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataSnapshot,
) -> None:
    """`end_offset` is the last offset in the segment; `offsets` stops one past it, as ranges do here."""
    assert (record.offsets.start, record.offsets.stop) == (record.start_offset, record.end_offset + 1)


def test_a_state_that_kafka_does_not_have_is_malformed() -> None:
    """An unknown state is never taken for another: the record is refused, and the field named."""
    deleted = RemotePartitionDeleteMetadata(
        topic_id_partition=TopicIdPartition(name="orders", id=ZERO_UUID, partition=0),
        broker_id=1,
        event_timestamp_ms=0,
        remote_partition_delete_state=RemotePartitionDeleteState.DELETE_PARTITION_FINISHED,
    )
    value = bytearray(encode_framed(deleted, 0))
    value[-2] = 3

    with pytest.raises(Malformed, match=r"remote_partition_delete_state.* has no value 3"):
        read_remote_metadata(value)


def test_a_type_of_the_future_is_passed_over() -> None:
    """A fifth record type is skipped with its number, as is a version this table does not know."""
    assert read_remote_metadata(b"\x01\x04\x00...") == SkippedRecord(
        api_key=4, version=0, reason=SkipReason.UNKNOWN_TYPE
    )
    assert read_remote_metadata(b"\x01\x00\x01...") == SkippedRecord(
        api_key=0, version=1, reason=SkipReason.NEWER_VERSION
    )
