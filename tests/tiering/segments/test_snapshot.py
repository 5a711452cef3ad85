"""Going on from a snapshot comes to what a replay from nothing comes to, or the snapshot is discarded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiering.segments.histories import histories
from tests.tiering.segments.model import Said
from tests.tiering.segments.strategies import LOG, OTHER_LOG, log_record, segment
from tests.tiering.segments.topic import TOPIC, Topic, compacted, new_table
from tiering.segments.frontier import frontier
from tiering.segments.records import SegmentState
from tiering.segments.snapshot import (
    CHECK_BYTES,
    Discarded,
    Why,
    load,
    path_of,
    restore,
    save,
    snapshot_of,
)
from tiering.segments.snapshot_columns import HEADER
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, TopicRecord
from tiering.segments.topic import SegmentsTopic
from tiering.segments.values import CHUNK_BYTES

pytestmark = pytest.mark.slow

NOW_MS = 1_800_000_000_000
AGE_MAX_MS = 1000
NO_WAIT = settings(
    max_examples=60, deadline=None, suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large)
)


def _load(folder: Path, *, end: int = 1000, now_ms: int = NOW_MS) -> PartitionTable | Discarded:
    return load(folder, TOPIC, 0, end=end, now_ms=now_ms, age_max_ms=AGE_MAX_MS)


def _resumed(folder: Path, *, end: int = 1000) -> PartitionTable:
    found = _load(folder, end=end)
    assert isinstance(found, PartitionTable), found
    return found


def _why(folder: Path, **more: int) -> Why:
    found = _load(folder, **more)
    assert isinstance(found, Discarded)
    return found.why


def _some_topic() -> Topic:
    """Copies of several epochs, a deletion, a free row, an orphan, a shadowed key, an unreadable one."""
    topic = Topic()
    topic.claim(log_record(2, epochs=((0, 0), (1, 150), (2, 300))))
    topic.copy(segment(1, 0, 100, leader_epoch=2, epochs=((0, 0),)))
    topic.copy(segment(2, 100, 200, leader_epoch=2, epochs=((0, 100), (1, 150))))
    gone = segment(3, 200, 300, leader_epoch=2, epochs=((1, 200),))
    topic.copy(gone)
    for state in (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED):
        topic.append(replace(gone, state=state))
    topic.append_raw(topic.records[-1].key, None)
    topic.append(replace(segment(4, 200, 300), leader_epoch=1))
    topic.append_raw(topic.records[2].key, b"no record")
    topic.claim(log_record(0, log=OTHER_LOG))
    return topic


def _state_of(table: PartitionTable) -> dict[str, object]:
    """Everything that anybody can ask of a table."""
    views = {log: table.view(log) for log in table.logs()}
    return {
        "position": table.position,
        "size": len(table),
        "digests": {log: found.digest for log in views if (found := table.digest(log)) is not None},
        "members": {log: table.members(log) for log in views},
        "segments": {log: list(view.segments()) for log, view in views.items() if view},
        "records": {log: (view.record, view.record_offset) for log, view in views.items() if view},
        "claims": {log: view.claims for log, view in views.items() if view},
        "shadowed": {log: view.shadowed() for log, view in views.items() if view},
        "unreadable": {log: view.unreadable() for log, view in views.items() if view},
        "values": {
            (log, each.segment_id): table.segment_value(log, each.segment_id)
            for log, view in views.items()
            if view
            for each in view.segments()
        },
    }


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    """Rows, values, claims, flags and digests: whatever can be asked has the same answer."""
    topic = _some_topic()

    save(tmp_path, topic.table, at_end_ms=NOW_MS)

    resumed = _resumed(tmp_path)
    assert _state_of(resumed) == _state_of(topic.table)
    assert resumed.complete_from == 1000


def test_a_table_that_came_back_goes_on_as_any(tmp_path: Path) -> None:
    """Free rows are used again, the array grows, values are packed on behind those that were."""
    topic = _some_topic()
    save(tmp_path, topic.table, at_end_ms=NOW_MS)
    resumed = _resumed(tmp_path, end=len(topic.records))

    for number in range(10, 250):
        topic.copy(segment(number, number, number + 1, leader_epoch=2, epochs=((0, number),)))
    resumed.apply_many(topic.records)

    assert topic.table.state.values.stored_bytes > CHUNK_BYTES
    assert _state_of(resumed) == _state_of(topic.table)
    save(tmp_path, resumed, at_end_ms=NOW_MS)
    assert _state_of(_resumed(tmp_path)) == _state_of(topic.table)


def test_an_empty_table_comes_back(tmp_path: Path) -> None:
    """A partition without a single record, as most are on the first day."""
    save(tmp_path, new_table(), at_end_ms=NOW_MS)

    assert _state_of(_resumed(tmp_path, end=0)) == _state_of(new_table())


def _records(history: list[Said]) -> list[TopicRecord]:
    return [TopicRecord(said.offset, said.key, said.value) for said in history]


def _followed(records: list[TopicRecord], table: PartitionTable) -> PartitionTable:
    table.apply_many(records)
    return table


def _kept_after(records: list[TopicRecord], position: int) -> list[TopicRecord]:
    """What a compaction of the whole topic leaves from `position` on; tombstones are still there."""
    last = {record.key: record for record in records}
    return sorted(record for record in last.values() if record.offset >= position)


@given(histories(max_acts=10), st.integers(0, 12), st.booleans())
@NO_WAIT
def test_going_on_from_a_snapshot_has_the_digest_of_a_full_replay(
    tmp_path_factory: pytest.TempPathFactory, history: list[Said], place: int, is_compacted: bool
) -> None:
    """Whatever stands in the topic, wherever the snapshot was taken, compacted since or not."""
    folder, records = tmp_path_factory.mktemp("snapshot"), _records(history)
    end = len(records)
    save(folder, _followed(records[:place], new_table()), at_end_ms=NOW_MS)
    resumed = _resumed(folder, end=max(end, place))

    _followed(_kept_after(records, resumed.position) if is_compacted else records, resumed)

    replayed = _followed(compacted(records) if is_compacted else records, new_table(complete_from=end))
    ours, theirs = resumed.digest(LOG), replayed.digest(LOG)
    assert (ours.digest if ours else 0) == (theirs.digest if theirs else 0)
    assert resumed.members(LOG) == replayed.members(LOG)


@given(histories(max_acts=12, lawful=True), st.integers(0, 16))
@NO_WAIT
def test_going_on_from_a_snapshot_believes_no_copy_that_is_gone(
    tmp_path_factory: pytest.TempPathFactory, history: list[Said], place: int
) -> None:
    """Compaction takes the steps between: a copy that was finished in the snapshot and is deleted or gone by
    now counts no more, though nobody said so step by step, and the frontier is where a replay has it."""
    folder, records = tmp_path_factory.mktemp("snapshot"), _records(history)
    save(folder, _followed(records[:place], new_table()), at_end_ms=NOW_MS)
    resumed = _resumed(folder, end=max(len(records), place))

    _followed(_kept_after(records, resumed.position), resumed)

    live = _followed(records, new_table())
    ours, theirs = resumed.view(LOG), live.view(LOG)
    if ours is None or theirs is None:
        assert ours is theirs
        return
    assert [each.segment_id for each in ours.segments() if each.state is SegmentState.COPY_FINISHED] == [
        each.segment_id for each in theirs.segments() if each.state is SegmentState.COPY_FINISHED
    ]
    assert frontier(ours) == frontier(theirs)


def _snapshot() -> bytes:
    return snapshot_of(_some_topic().table, at_end_ms=NOW_MS)


SNAPSHOT = _snapshot()


@given(st.integers(0, len(SNAPSHOT) * 8 - 1))
@settings(max_examples=60, deadline=None)
def test_a_flipped_bit_is_noticed(tmp_path_factory: pytest.TempPathFactory, bit: int) -> None:
    """Wherever it is, in the header, the columns, the values or the checksum itself."""
    folder, damaged = tmp_path_factory.mktemp("flipped"), bytearray(SNAPSHOT)
    damaged[bit // 8] ^= 1 << bit % 8
    path_of(folder, 0).write_bytes(damaged)

    assert _why(folder) is Why.DAMAGED


def test_a_file_cut_short_or_made_longer_is_noticed(tmp_path: Path) -> None:
    """Cut at every hundredth byte and at each of the last, or with more behind: never taken for a table."""
    whole = SNAPSHOT
    cuts = [*range(0, len(whole), 100), *range(len(whole) - CHECK_BYTES - 2, len(whole))]
    for damaged in (*(whole[:cut] for cut in cuts), whole + b"\0", bytes(len(whole))):
        path_of(tmp_path, 0).write_bytes(damaged)

        assert _why(tmp_path) is Why.DAMAGED


@pytest.mark.parametrize(
    "other",
    [
        MetadataTopic(cluster_id="another", topic_id=TOPIC.topic_id, partition_count=1),
        MetadataTopic(cluster_id=TOPIC.cluster_id, topic_id="AAAAAAAAAAAAAAAAAAAAAQ", partition_count=1),
        MetadataTopic(cluster_id=TOPIC.cluster_id, topic_id=TOPIC.topic_id, partition_count=2),
    ],
    ids=["cluster", "topic", "partitions"],
)
def test_a_snapshot_of_another_topic_is_discarded(tmp_path: Path, other: MetadataTopic) -> None:
    """A recreated topic, a copied folder, partitions added: none of it is this topic's past."""
    save(tmp_path, PartitionTable(other, 0, complete_from=0), at_end_ms=NOW_MS)

    assert _why(tmp_path) is Why.FOREIGN


def test_a_snapshot_of_another_partition_is_discarded(tmp_path: Path) -> None:
    """A file under the wrong name."""
    two = replace(TOPIC, partition_count=2)
    save(tmp_path, PartitionTable(two, 1, complete_from=0), at_end_ms=NOW_MS)
    path_of(tmp_path, 1).rename(path_of(tmp_path, 0))

    found = load(tmp_path, two, 0, end=0, now_ms=NOW_MS, age_max_ms=AGE_MAX_MS)

    assert isinstance(found, Discarded)
    assert found.why is Why.FOREIGN


def test_a_snapshot_ages(tmp_path: Path) -> None:
    """Good up to half of delete.retention.ms, and not a millisecond longer."""
    save(tmp_path, new_table(), at_end_ms=NOW_MS)

    assert isinstance(_load(tmp_path, now_ms=NOW_MS + AGE_MAX_MS), PartitionTable)
    assert _why(tmp_path, now_ms=NOW_MS + AGE_MAX_MS + 1) is Why.OLD


def test_a_snapshot_of_the_future_is_discarded(tmp_path: Path) -> None:
    """A clock that went back, or a topic that ends before what was read of it."""
    topic = _some_topic()
    save(tmp_path, topic.table, at_end_ms=NOW_MS)

    assert _why(tmp_path, now_ms=NOW_MS - 1) is Why.FUTURE
    assert _why(tmp_path, end=len(topic.records) - 1) is Why.FUTURE


def _changed_header(change: Callable[[dict[str, object]], None]) -> bytes:
    """A snapshot with another header, under a checksum that fits."""
    source = pa.BufferReader(pa.py_buffer(_snapshot()[:-CHECK_BYTES]))
    tables = [pa.ipc.open_stream(source).read_all() for _ in range(3)]
    header = json.loads(tables[0].schema.metadata[HEADER])
    change(header)
    tables[0] = tables[0].replace_schema_metadata({HEADER: json.dumps(header).encode()})
    sink = pa.BufferOutputStream()
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    streams = sink.getvalue().to_pybytes()
    return bytes(streams + sha256(streams).digest())


def test_a_newer_snapshot_is_discarded(tmp_path: Path) -> None:
    """After a downgrade the older Seawall replays."""
    path_of(tmp_path, 0).write_bytes(_changed_header(lambda header: header.update(version=2)))

    assert _why(tmp_path) is Why.TOO_NEW


def test_what_does_not_add_up_is_discarded_under_whatever_checksum(tmp_path: Path) -> None:
    """A header without its fields, or a log's digest that is not its members' sum."""
    topic = _some_topic()
    path_of(tmp_path, 0).write_bytes(_changed_header(dict.clear))
    assert _why(tmp_path) is Why.DAMAGED

    topic.table.state.logs[0].digest += 1
    save(tmp_path, topic.table, at_end_ms=NOW_MS)
    assert _why(tmp_path) is Why.DAMAGED


def test_a_write_that_fails_leaves_the_last_snapshot(tmp_path: Path) -> None:
    """The place is taken only by a whole file; what was written beside is no snapshot."""
    save(tmp_path, _some_topic().table, at_end_ms=NOW_MS)
    path_of(tmp_path, 0).with_suffix(".tmp").mkdir()  # nobody can write here

    with pytest.raises(OSError, match="tmp"):
        save(tmp_path, new_table(), at_end_ms=NOW_MS)

    assert _state_of(_resumed(tmp_path)) == _state_of(_some_topic().table)


def test_what_is_discarded_is_replayed_and_the_rest_goes_on(tmp_path: Path) -> None:
    """`restore` says where to follow each partition from, and why it is not all from snapshots."""
    topic = SegmentsTopic(
        name="segments",
        topic_id=TOPIC.topic_id,
        partition_count=2,
        cluster_id=TOPIC.cluster_id,
        delete_retention_ms=2 * AGE_MAX_MS,
        min_compaction_lag_ms=1000,
    )
    table = PartitionTable(topic.identity, 1, complete_from=0)
    table.skip_to(7)
    save(tmp_path, table, at_end_ms=NOW_MS)

    restored = restore(tmp_path, topic, {0: 3, 1: 9}, now_ms=NOW_MS)

    assert restored.positions == {0: 0, 1: 7}
    assert [(each.partition, each.why) for each in restored.discarded] == [(0, Why.ABSENT)]
    assert [each.complete_from for each in restored.table.partitions()] == [3, 9]
