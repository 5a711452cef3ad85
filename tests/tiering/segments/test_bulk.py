"""Many records of the past at once, against the same one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiering.segments.histories import histories
from tests.tiering.segments.model import Said
from tests.tiering.segments.strategies import LOG, log_record, segment
from tests.tiering.segments.topic import Topic, new_table
from tiering.segments import bulk_fold
from tiering.segments.codec import encode_segment
from tiering.segments.records import SegmentState
from tiering.segments.table import PartitionTable, TopicRecord

SEGMENTS = 600


def _all_of(table: PartitionTable) -> dict[str, object]:
    views = {log: table.view(log) for log in table.logs()}
    return {
        "position": table.position,
        "digests": {log: table.digest(log) for log in views},
        "members": {log: table.members(log) for log in views},
        "segments": {log: list(view.segments()) for log, view in views.items() if view},
        "flags": {log: (view.shadowed(), view.unreadable()) for log, view in views.items() if view},
    }


@pytest.mark.slow
@given(histories(), st.integers(0, 20), st.integers(0, 20))
@settings(max_examples=200, deadline=None)
def test_it_comes_to_the_same_as_one_by_one(history: list[Said], asked_at: int, cut: int) -> None:
    """Whatever stands in the topic, in whatever batches, and whether digests were asked for meanwhile."""
    records = [TopicRecord(said.offset, said.key, said.value) for said in history]
    single, bulk = new_table(complete_from=1 << 40), new_table(complete_from=1 << 40)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bulk_fold, "WORTH_IT_RECORDS", 1)
        found = bulk.apply_many(records[:cut])
        if asked_at < cut:
            bulk.digest(LOG)
        found += bulk.apply_many(records[cut:])
    said = [each for record in records for each in single.apply(*record)]

    assert _all_of(bulk) == _all_of(single)
    assert len(found) == len(said)


def _copies() -> list[TopicRecord]:
    topic = Topic()
    topic.claim(log_record(0))
    for number in range(SEGMENTS):
        topic.append(segment(number + 1, number, number + 1))
    return topic.records


@pytest.mark.parametrize("state", [SegmentState.DELETE_STARTED, None])
def test_a_digest_that_was_not_made_yet_gives_way_to_the_next_record(state: SegmentState | None) -> None:
    """A record, or a tombstone, of a segment whose first one came with thousands: its digest alone counts,
    asked for before or after."""
    records = _copies()
    value = None if state is None else encode_segment(replace(segment(1, 0, 1), state=state))
    changed = TopicRecord(len(records), records[1].key, value)
    late, early, single = (new_table(complete_from=1 << 40) for _ in range(3))
    late.apply_many(records)
    early.apply_many(records)
    assert late.state.has_undigested
    assert early.digest(LOG) is not None

    for table in (late, early):
        table.apply(*changed)
    for record in (*records, changed):
        single.apply(*record)

    assert _all_of(late) == _all_of(early) == _all_of(single)
    assert not late.state.has_undigested
