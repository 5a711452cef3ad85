"""Each record of KIP-405's topic, as the event it comes to."""

from __future__ import annotations

from itertools import count

import pytest

from audit_engine.observers.kip405.fold import OUT_OF_PLACE, TOO_NEW, UNREADABLE, Fold, Refused, Told
from audit_engine.observers.kip405.segments import Copy, Teller
from audit_engine.observers.kip405.source import MetadataRecord
from rules.events import CopyFinished, CopyStarted, DeleteCause, DeleteFinished, DeleteStarted, Source
from rules.identity import LogId
from tests.audit_engine.observers.kip405 import records
from tests.audit_engine.observers.kip405.records import CLUSTER_ID, METADATA_ID, TOPIC_ID, segment_id
from tests.encode.message import encode_framed
from tiering.log.remote_metadata import (
    RemoteLogSegmentMetadataSnapshot,
    RemotePartitionDeleteState,
    RemoteSegmentState,
    TopicIdPartition,
)

MARKED = RemotePartitionDeleteState.DELETE_PARTITION_MARKED
STARTED = RemotePartitionDeleteState.DELETE_PARTITION_STARTED
FINISHED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED


class Followed:
    """A fold over records from offset 40 on, of partition 7 of the topic."""

    def __init__(self) -> None:
        self.copies: dict[str, Copy] = {}
        self.offsets = count(40)

    def take(self, *values: bytes | None) -> list[Told]:
        fold = Fold(self.copies, Teller(CLUSTER_ID, METADATA_ID))
        told = [
            each for value in values for each in fold.take(MetadataRecord(7, next(self.offsets), 2, value))
        ]
        for key, copy in fold.changed.items():
            self.copies.pop(key, None)
            if copy is not None:
                self.copies[key] = copy
        return told


@pytest.fixture
def followed() -> Followed:
    return Followed()


def test_a_copys_life_is_told_record_by_record(followed: Followed) -> None:
    """Begun, finished, going, gone: each with the range, half-open, and the place of its own record."""
    told = followed.take(
        records.started(1, 100, 199, broker_id=3, at_ms=2_000),
        records.finished(1),
        records.deleting(1),
        records.deleted(1),
    )

    assert [type(each) for each in told] == [CopyStarted, CopyFinished, DeleteStarted, DeleteFinished]
    for offset, each in enumerate(told, 40):
        assert not isinstance(each, Refused)
        assert each.log == LogId(CLUSTER_ID, TOPIC_ID, 3)
        assert (each.topic, each.segment_id) == ("orders", segment_id(1))
        assert (each.base_offset, each.end_offset) == (100, 200)
        assert each.source is Source.REMOTE_LOG_METADATA
        assert each.metadata_offset == offset
        assert each.event_id == f"{METADATA_ID}:7:{offset}:2"
    first, finished = told[0], told[1]
    assert isinstance(first, CopyStarted)
    assert isinstance(finished, CopyFinished)
    assert (first.occurred_at_ms, first.broker_id, first.epochs) == (2_000, 3, ((4, 100),))
    assert (finished.size_bytes, finished.max_timestamp_ms, finished.objects) == (101, 501, ())
    assert followed.copies == {}


def test_no_reason_is_made_up(followed: Followed) -> None:
    """A deletion of a segment carries no cause, nor does that of a copy which was never finished."""
    told = followed.take(records.started(1, 0, 9), records.deleting(1), records.deleted(1))

    assert [each.cause for each in told if isinstance(each, DeleteStarted | DeleteFinished)] == [None, None]


def test_what_is_said_of_a_copy_that_nobody_started_is_told(followed: Followed) -> None:
    """Its range is not known; that it is unknown is for a judge to see."""
    told = followed.take(records.deleting(5), records.deleted(5))

    assert [type(each) for each in told] == [DeleteStarted, DeleteFinished]
    assert {(e.base_offset, e.end_offset) for e in told if not isinstance(e, Refused)} == {(-1, -1)}
    assert followed.copies == {}


def test_a_partitions_end_is_that_of_each_of_its_copies(followed: Followed) -> None:
    """Once each, under ids of their own, with the one cause that is said; other logs' copies stay."""
    other = TopicIdPartition(name="orders", id=TOPIC_ID, partition=4)
    followed.take(
        records.started(1, 0, 9),
        records.started(2, 10, 19),
        records.finished(2),
        records.deleting(2),
        records.started(3, 0, 9, of=other),
    )
    told = followed.take(*map(records.partition_record, (MARKED, STARTED, FINISHED)))

    assert [(type(e), e.segment_id) for e in told if not isinstance(e, Refused)] == [
        (DeleteStarted, segment_id(1)),  # the other was going already
        (DeleteFinished, segment_id(1)),
        (DeleteFinished, segment_id(2)),
    ]
    assert all(isinstance(e, DeleteStarted | DeleteFinished) for e in told)
    assert {e.cause for e in told if isinstance(e, DeleteStarted)} == {DeleteCause.TOPIC_DELETED}
    assert len({e.event_id for e in told if not isinstance(e, Refused)}) == len(told)
    assert list(followed.copies) == [segment_id(3)]


def _snapshot() -> bytes:
    return encode_framed(
        RemoteLogSegmentMetadataSnapshot(
            segment_id=segment_id(1),
            start_offset=0,
            end_offset=9,
            broker_id=1,
            max_timestamp_ms=1,
            event_timestamp_ms=1,
            segment_leader_epochs=(),
            segment_size_in_bytes=1,
            custom_metadata=None,
            remote_log_segment_state=RemoteSegmentState.COPY_SEGMENT_STARTED,
        ),
        0,
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, UNREADABLE),
        (b"", UNREADABLE),
        (records.started(1, 0, 9)[:-3], UNREADABLE),
        (b"\x01\x09\x00", TOO_NEW),
        (b"\x01\x00\x05", TOO_NEW),
        (_snapshot(), OUT_OF_PLACE),
        (records.updated(1, RemoteSegmentState.COPY_SEGMENT_STARTED), OUT_OF_PLACE),
    ],
    ids=["none", "empty", "cut", "kind", "version", "snapshot", "update to started"],
)
def test_a_record_of_which_nothing_can_be_made_is_said_to_be_one(
    followed: Followed, value: bytes | None, problem: str
) -> None:
    """It changes nothing, and what comes behind it is read as before."""
    [refused] = followed.take(value)
    told = followed.take(records.started(1, 0, 9))

    assert isinstance(refused, Refused)
    assert (refused.record.offset, refused.problem) == (40, problem)
    assert [type(each) for each in told] == [CopyStarted]


def test_a_second_beginning_keeps_what_is_known(followed: Followed) -> None:
    """A record that a broker wrote twice is told twice, by its two places; the copy stays finished."""
    told = followed.take(records.started(1, 0, 9), records.finished(1), records.started(1, 0, 9))

    assert [e.event_id[-4:] for e in told if isinstance(e, CopyStarted)] == ["40:2", "42:2"]
    assert followed.copies[segment_id(1)].counts
