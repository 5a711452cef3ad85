"""Publishing a record: it counts when our own table follows it, and not when it follows somebody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tiering.segments.strategies import LOG, log_record, segment
from tests.tiering.segments.topic import new_table
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import LogId, LogRecord, SegmentObjects, SegmentRecord, SegmentState
from tiering.segments.table import ReferenceTable, TopicRecord
from tiering.uploader.errors import MetadataSilent, NotFollowed
from tiering.uploader.metadata import Metadata


class Contended:
    """A topic in which other writers come before and behind ours, all of it read back in one go."""

    def __init__(self) -> None:
        self.records = 0
        self.metadata = Metadata(ReferenceTable([new_table()]), self, deadline_s=5.0)
        self.before: list[LogRecord | SegmentRecord] = []
        self.behind: list[LogRecord | SegmentRecord] = []

    def append(self, log: LogId, key: bytes, value: bytes) -> int:
        batch = [*map(pair, self.before), (key, value), *map(pair, self.behind)]
        first, self.records = self.records, self.records + len(batch)
        self.metadata.applied(0, [TopicRecord(first + at, *each) for at, each in enumerate(batch)])
        offset = first + len(self.before)
        self.before, self.behind = [], []
        return offset


def pair(record: LogRecord | SegmentRecord) -> tuple[bytes, bytes]:
    if isinstance(record, LogRecord):
        return log_key(record.log), encode_log(record)
    return segment_key(record.log, record.segment_id), encode_segment(record)


@pytest.fixture
def topic() -> Contended:
    """Our claim of epoch 1, and a copy begun under it."""
    topic = Contended()
    topic.metadata.publish_log(log_record(1, epochs=((1, 0),)))
    topic.metadata.publish(started())
    return topic


def started() -> SegmentRecord:
    return replace(
        segment(1, 0, 10, leader_epoch=1), state=SegmentState.COPY_STARTED, objects=SegmentObjects()
    )


def claim_of_another() -> LogRecord:
    return log_record(2, epochs=((1, 0), (2, 10)), based_on=0, broker_id=2)


def test_a_commit_is_followed_where_nobody_comes_between(topic: Contended) -> None:
    """The offset is our record's own."""
    assert topic.metadata.publish(segment(1, 0, 10, leader_epoch=1)) == 2


def test_a_fenced_commit_is_not_taken_for_the_removal_that_followed_it(topic: Contended) -> None:
    """A new leader claims before our commit, and removes our attempt behind it: its record of the same key
    is followed, ours is not, and nobody may say that the copy was finished."""
    topic.before = [claim_of_another()]
    topic.behind = [replace(started(), state=SegmentState.DELETE_STARTED, leader_epoch=2, broker_id=2)]

    with pytest.raises(NotFollowed, match="fenced"):
        topic.metadata.publish(segment(1, 0, 10, leader_epoch=1))


def test_a_log_record_behind_a_claim_is_not_taken_for_the_one_that_followed_it(topic: Contended) -> None:
    """Ours comes behind another leader's claim, whose writer goes on: the record that stands is not ours."""
    won = claim_of_another()
    topic.before = [won]
    topic.behind = [replace(won, claim_offset=2, based_on=2, log_start=0, event_id="again")]

    with pytest.raises(NotFollowed, match="fenced_log"):
        topic.metadata.publish_log(log_record(1, epochs=((1, 0),), based_on=0, claim_offset=0, event_id="b"))
    view = topic.metadata.view(LOG)
    assert view is not None
    assert view.record_offset == 4


def test_what_the_topic_took_and_never_gives_back_is_an_error_in_time() -> None:
    """The deadline ends the wait. The record may be in the topic, and does not count for us yet."""

    class Silent:
        def append(self, log: LogId, key: bytes, value: bytes) -> int:
            return 7

    metadata = Metadata(ReferenceTable([new_table()]), Silent(), deadline_s=0.05)

    with pytest.raises(MetadataSilent) as silent:
        metadata.publish_log(log_record(1, epochs=((1, 0),)))

    assert (silent.value.offset, silent.value.waited_s) == (7, 0.05)
    assert metadata.view(LOG) is None
