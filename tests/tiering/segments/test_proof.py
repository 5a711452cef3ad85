"""The topic of metadata executed again, and an agent's table held against it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiering.segments.histories import histories
from tests.tiering.segments.strategies import LOG, log_record, segment
from tests.tiering.segments.topic import Topic, new_table
from tiering.segments.keys import segment_key
from tiering.segments.proof import Against, Execution, against, standing
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord
from workers.proof import Divergence, Equal, compared

FEW = settings(
    max_examples=25, deadline=None, suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large)
)


def _topic() -> Topic:
    topic = Topic()
    topic.claim(log_record(2, epochs=((0, 0), (1, 150), (2, 300))))
    topic.copy(segment(1, 0, 100, leader_epoch=2, epochs=((0, 0),)))
    topic.copy(segment(2, 100, 200, leader_epoch=2, epochs=((0, 100), (1, 150))))
    return topic


def _executed(records: list[TopicRecord], end: int = 1 << 40) -> Execution:
    execution = Execution(new_table(), end=end)
    execution.apply_many(records)
    return execution


def _table(*tables: PartitionTable) -> ReferenceTable:
    return ReferenceTable(tables)


def _with_value(record: TopicRecord, value: bytes) -> TopicRecord:
    return record._replace(value=value)


@pytest.mark.slow
@FEW
@given(st.data())
def test_two_executions_are_the_same_and_an_agents_way_stands_where_they_do(
    data: st.DataObject,
) -> None:
    """Any history of agents: a step for each record, and the bulk fold comes to what the single one does."""
    records = [TopicRecord(*each[:3]) for each in data.draw(histories())]
    first, second = _executed(records), _executed(records)
    bulk = new_table()
    bulk.apply_many(records)

    again = compared(first.steps, second.steps)
    stands = compared(standing(_table(first.table)), standing(_table(bulk)))

    assert isinstance(again, Equal)
    assert again.steps == len(records)
    assert isinstance(stands, Equal)


def test_a_record_that_is_otherwise_is_where_it_diverges() -> None:
    """One byte of one value: the first divergent event is that record, and no other before it."""
    records = _topic().records
    changed = list(records)
    changed[3] = _with_value(changed[3], (changed[3].value or b"").replace(b"100", b"101"))

    found = compared(_executed(records).steps, _executed(changed).steps)

    assert isinstance(found, Divergence)
    assert (found.number, found.at) == (3, "0@3")


def test_an_execution_ends_where_it_was_told_to() -> None:
    """What comes in meanwhile is no step."""
    execution = _executed(_topic().records, end=2)

    assert execution.offsets == [0, 1]
    assert execution.table.position == 2


def test_an_agents_table_that_is_the_same_is_equal_and_one_that_is_behind_cannot_be_told() -> None:
    """Whoever stopped two records ago knows a log that went on; compaction may have taken what it saw."""
    records = _topic().records
    rebuilt = _table(_executed(records).table)

    assert against(rebuilt, _executed(records).table) == Against(equal=1, gone_past=0, differs=())
    assert against(rebuilt, _executed(records[:-2]).table) == Against(equal=0, gone_past=1, differs=())


def test_an_agents_table_that_holds_something_else_is_named_with_its_first_record() -> None:
    """A copy that the agent has otherwise: the log, the record's place and key, and both digests of it."""
    topic = _topic()
    other = list(topic.records)
    at = len(other) - 1
    other[at] = _with_value(other[at], (other[at].value or b"").replace(b"200", b"201"))
    live = _executed(other).table

    found = against(_table(_executed(topic.records).table), live)

    [differs] = found.differs
    assert (differs.log, differs.at) == (LOG, f"0@{at}")
    assert differs.key == segment_key(LOG, segment(2, 100, 200).segment_id).decode()
    assert differs.rebuilt != differs.live
    assert replace(found, differs=()) == Against(equal=0, gone_past=0, differs=())
