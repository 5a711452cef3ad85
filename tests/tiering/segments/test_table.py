"""What a table follows, and what it sets aside with a finding: T5 and T6, record by record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tiering.segments.strategies import (
    CLUSTER_ID,
    LOG,
    OTHER_LOG,
    gap,
    log_record,
    objects_of,
    segment,
    segment_id,
)
from tests.tiering.segments.topic import ALL_HISTORY, TOPIC, Topic, compacted, new_table
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.findings import Reason
from tiering.segments.keys import log_key, metadata_partition, segment_key
from tiering.segments.records import Claim, Hold, SegmentRecord, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord

STARTED, FINISHED, DELETING, DELETED = SegmentState


def _reasons(found: object) -> list[Reason]:
    assert isinstance(found, list)
    return [each.reason for each in found]


def _claimed(epoch: int = 5) -> Topic:
    topic = Topic()
    topic.claim(log_record(epoch, epochs=((3, 0),)))
    return topic


def _copy(number: int, base: int, end: int, *, by: int, state: SegmentState = FINISHED) -> SegmentRecord:
    """A segment of epoch 3, copied by a leader of epoch `by`."""
    return segment(number, base, end, epochs=((3, base),), leader_epoch=by, state=state)


def _standing(topic: Topic, number: int) -> Standing:
    [found] = [each for each in topic.view.segments() if each.segment_id == segment_id(number)]
    return found.standing


def test_t6_a_deposed_leader_cannot_commit() -> None:
    """STARTED before the claim, FINISHED behind it: it does not count, and its objects are orphans."""
    topic = _claimed(4)
    topic.append(_copy(1, 0, 100, by=4, state=STARTED))
    topic.claim(log_record(5, epochs=((3, 0),)))

    found = topic.append(_copy(1, 0, 100, by=4))

    assert _reasons(found) == [Reason.FENCED]
    assert topic.frontier.offset == 0
    assert [orphan.segment_id for orphan in topic.view.orphans()] == [segment_id(1)]
    assert topic.view.shadowed() == (segment_key(LOG, segment_id(1)),)


def test_t6_nor_can_it_begin() -> None:
    """A copy that is begun and finished behind the claim is fenced as a whole."""
    topic = _claimed(5)

    for state in (STARTED, FINISHED):
        assert _reasons(topic.append(_copy(1, 0, 100, by=4, state=state))) == [Reason.FENCED]

    assert _standing(topic, 1) is Standing.FENCED
    assert [orphan.segment_id for orphan in topic.view.orphans()] == [segment_id(1)]
    found = topic.table.segment(LOG, segment_id(1))
    assert found is not None
    assert found.objects.log is not None, "whoever cleans up needs to know what was stored"


def test_t6_what_was_committed_before_the_claim_stays() -> None:
    """Only what lies behind the claim is fenced, and only of epochs below it."""
    topic = _claimed(4)
    topic.copy(_copy(1, 0, 100, by=4))
    topic.claim(log_record(5, epochs=((3, 0),)))
    topic.copy(_copy(2, 100, 200, by=5), _copy(3, 200, 300, by=6))

    assert topic.frontier.offset == 300
    assert not topic.findings


def test_t6_a_finished_copy_is_not_undone_by_its_authors_late_retry() -> None:
    """The deposed leader says FINISHED again: ignored, and the right record is to be written again."""
    topic = _claimed(4)
    topic.copy(_copy(1, 0, 100, by=4))
    topic.claim(log_record(5, epochs=((3, 0),)))

    found = topic.append(_copy(1, 0, 100, by=4))

    assert _reasons(found) == [Reason.FENCED]
    assert topic.frontier.offset == 100
    assert not list(topic.view.orphans())
    assert topic.view.shadowed() == (segment_key(LOG, segment_id(1)),)
    topic.append(_copy(1, 0, 100, by=5))
    assert topic.view.shadowed() == ()


def test_t6_the_new_leader_may_adopt_or_remove_what_it_fenced() -> None:
    """Said by the standing leader, FINISHED counts; so does a removal of what was never followed."""
    topic = _claimed(5)
    topic.append(_copy(1, 0, 100, by=4), _copy(2, 100, 200, by=4))

    topic.append(_copy(1, 0, 100, by=5))
    topic.append(_copy(2, 100, 200, by=5, state=DELETING), _copy(2, 100, 200, by=5, state=DELETED))

    assert topic.frontier.offset == 100
    assert not list(topic.view.orphans())


def test_t6_a_deposed_leaders_own_record_of_the_log_is_not_followed() -> None:
    """It would take back the claim, and with it the fence."""
    topic = _claimed(5)

    found = topic.append(log_record(4, epochs=((3, 0),), log_start=50, based_on=0))

    assert _reasons(found) == [Reason.FENCED_LOG]
    assert topic.view.record is not None
    assert topic.view.record.log_start == 0
    assert topic.view.shadowed() == (log_key(LOG),)


def test_t6_the_fence_outlives_compaction() -> None:
    """The claim's own record is compacted away; the log's next record repeats its place, and that fences."""
    topic = _claimed(4)
    topic.claim(log_record(5, epochs=((3, 0),)))
    topic.append(_copy(1, 0, 100, by=4))
    topic.claim(log_record(5, epochs=((3, 0),), log_start=0, gaps=(gap(500, 600),)))
    fresh = new_table(complete_from=ALL_HISTORY)

    left = compacted(topic.records)
    found = [each for record in left for each in fresh.apply(*record)]

    assert [record.offset for record in left] == [2, 3]
    assert _reasons(found) == [Reason.FENCED]
    view = fresh.view(LOG)
    assert view is not None
    assert not len(view.finished.bases)


def test_t6_earlier_claims_are_repeated_as_long_as_they_fence_something() -> None:
    """Epoch 6 fences what comes behind it; what epoch 5 fenced before stays fenced by its own place."""
    topic = _claimed(4)
    topic.claim(log_record(5, epochs=((3, 0),)))
    topic.append(_copy(1, 0, 100, by=4))
    topic.claim(log_record(6, epochs=((3, 0),)))

    assert topic.view.claims == (Claim(4, 0), Claim(5, 1), Claim(6, 3))
    assert topic.view.claims_to_repeat() == (Claim(5, 1),)


@pytest.mark.parametrize("state", [DELETING, DELETED])
def test_t6_a_deposed_leaders_deletion_is_believed(state: SegmentState) -> None:
    """Its objects may be gone whoever removed them, so that they must not be read; and it is said aloud."""
    topic = _claimed(4)
    topic.copy(_copy(1, 0, 100, by=4))
    topic.claim(log_record(5, epochs=((3, 0),), log_start=100))
    if state is DELETED:
        topic.append(_copy(1, 0, 100, by=5, state=DELETING))

    found = topic.append(_copy(1, 0, 100, by=4, state=state))

    assert _reasons(found) == [Reason.STALE_DELETE]
    assert found[0].reason.followed
    assert topic.coverage.find(0) is None


def test_t5_a_deletion_below_the_log_start_is_nothing_special() -> None:
    """A prefix, after the start was moved: no finding, and the frontier stays."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5), _copy(2, 100, 200, by=5))
    topic.claim(log_record(5, epochs=((3, 0),), log_start=100))

    found = topic.append(_copy(1, 0, 100, by=5, state=DELETING))

    assert found == []
    assert topic.frontier.offset == 200


def test_t5_a_deletion_inside_the_log_is_found() -> None:
    """No prefix: followed, as the objects may be gone, and the fall of the frontier is a finding."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5), _copy(2, 100, 200, by=5))

    found = topic.append(_copy(1, 0, 100, by=5, state=DELETING))

    assert _reasons(found) == [Reason.COVERAGE_LOST]
    assert topic.frontier.offset == 0


def test_t5_a_deletion_of_what_another_copy_covers_is_not() -> None:
    """A duplicate after a change of leader may go."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5), _copy(2, 0, 150, by=5))

    assert topic.append(_copy(1, 0, 100, by=5, state=DELETING)) == []
    assert topic.frontier.offset == 150


def test_an_illegal_step_is_refused_and_shadows() -> None:
    """STARTED again after FINISHED: the copy stays, and compaction would keep the wrong record."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))

    found = topic.append(_copy(1, 0, 100, by=5, state=STARTED))

    assert _reasons(found) == [Reason.TRANSITION]
    assert topic.frontier.offset == 100
    assert topic.view.shadowed() == (segment_key(LOG, segment_id(1)),)


def test_a_life_that_begins_in_its_middle_is_refused() -> None:
    """FINISHED that nobody started, where the table would have seen the start: it never counts by itself."""
    topic = _claimed()

    assert _reasons(topic.append(_copy(1, 0, 100, by=5))) == [Reason.TRANSITION]
    assert _reasons(topic.append(_copy(1, 0, 100, by=5))) == [Reason.TRANSITION]
    assert _standing(topic, 1) is Standing.REFUSED
    assert [each.segment_id for each in topic.view.orphans()] == [segment_id(1)]
    topic.append(_copy(1, 0, 100, by=5, state=STARTED), _copy(1, 0, 100, by=5))
    assert topic.frontier.offset == 100


def test_where_compaction_may_have_been_any_state_may_be_the_first() -> None:
    """FINISHED alone is what compaction leaves of a copy."""
    table = new_table(complete_from=2)
    copy = _copy(1, 0, 100, by=5)

    assert table.apply(0, log_key(LOG), encode_log(log_record(5, epochs=((3, 0),)))) == []
    assert table.apply(1, segment_key(LOG, copy.segment_id), encode_segment(copy)) == []
    view = table.view(LOG)
    assert view is not None
    assert len(view.finished.bases) == 1


def test_a_restore_brings_a_deleted_segment_back() -> None:
    """A new generation, with the versions that the restore made; the log start moves back with it."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))
    topic.claim(log_record(5, epochs=((3, 0),), log_start=100))
    topic.append(_copy(1, 0, 100, by=5, state=DELETING), _copy(1, 0, 100, by=5, state=DELETED))
    back = replace(_copy(1, 0, 100, by=5), generation=1)
    back = replace(back, objects=objects_of(back.key_stem, back.size_bytes, version="v2"))

    topic.append(replace(back, state=STARTED), back)
    topic.claim(log_record(5, epochs=((3, 0),), log_start=0, generation=1, keep_until_ms=9))

    assert topic.findings == []
    assert topic.frontier.offset == 100
    assert topic.table.segment(LOG, segment_id(1)) == back


def test_a_tombstone_ends_a_deleted_segment_only() -> None:
    """Of a live one it is refused: unknown means keep."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5), _copy(2, 100, 200, by=5))
    key = segment_key(LOG, segment_id(1))

    assert _reasons(topic.append_raw(key, None)) == [Reason.TOMBSTONE]
    assert topic.frontier.offset == 200
    assert topic.view.shadowed() == (key,)
    topic.append(_copy(1, 0, 100, by=5, state=DELETING), _copy(1, 0, 100, by=5, state=DELETED))
    assert topic.append_raw(key, None) == []
    assert topic.table.segment(LOG, segment_id(1)) is None
    assert len(topic.table) == 1


def test_two_writers_of_a_log_do_not_undo_each_other() -> None:
    """A hold is placed while the leader moves the start: whoever comes second has not seen the first."""
    topic = _claimed()
    hold = Hold(
        hold_id="h1", start_offset=0, end_offset=None, reason="START-02", placed_by="audit", placed_at_ms=1
    )
    held = log_record(5, epochs=((3, 0),), holds=(hold,), claim_offset=0, based_on=0)
    moved = log_record(5, epochs=((3, 0),), log_start=100, claim_offset=0, based_on=0)

    assert topic.append(held) == []
    assert _reasons(topic.append(moved)) == [Reason.LOST_RACE]
    assert topic.view.record is not None
    assert topic.view.record.holds == (hold,)
    assert topic.append(replace(moved, holds=(hold,), based_on=1)) == []
    assert topic.view.record.log_start == 100
    assert topic.view.shadowed() == ()


def test_a_record_based_on_one_that_compaction_took_is_followed() -> None:
    """A fresh table saw only the loser of a race; the next writer had seen the winner."""
    table = new_table(complete_from=ALL_HISTORY)
    loser = log_record(5, epochs=((3, 0),), claim_offset=0, based_on=100)
    following = log_record(5, epochs=((3, 0),), claim_offset=0, based_on=150, log_start=7)

    table.apply(160, log_key(LOG), encode_log(loser))

    assert table.apply(200, log_key(LOG), encode_log(following)) == []
    late = replace(following, based_on=160)
    assert _reasons(table.apply(201, log_key(LOG), encode_log(late))) == [Reason.LOST_RACE]


def test_an_old_race_is_remembered_for_as_long_as_it_takes() -> None:
    """However many records a log had since, being based on one of them is a lost race."""
    topic = _claimed()
    for start in range(1, 40):
        topic.claim(log_record(5, epochs=((3, 0),), log_start=start))
    stale = log_record(5, epochs=((3, 0),), claim_offset=0, based_on=3)

    assert _reasons(topic.append(stale)) == [Reason.LOST_RACE]


def test_the_log_of_a_deleted_topic_is_forgotten_last() -> None:
    """Its tombstone is followed when the topic is deleted and no segment has a record left."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))
    key = segment_key(LOG, segment_id(1))

    assert _reasons(topic.append_raw(log_key(LOG), None)) == [Reason.TOMBSTONE]
    topic.claim(log_record(5, epochs=((3, 0),), topic_deleted_at_ms=9))
    assert _reasons(topic.append_raw(log_key(LOG), None)) == [Reason.TOMBSTONE]
    topic.append(_copy(1, 0, 100, by=5, state=DELETING), _copy(1, 0, 100, by=5, state=DELETED))
    topic.append_raw(key, None)
    topic.claim(log_record(5, epochs=((3, 0),), topic_deleted_at_ms=9))
    assert topic.append_raw(log_key(LOG), None) == []
    assert topic.view.record is None
    digest = topic.table.digest(LOG)
    assert digest is not None
    assert digest.digest == 0


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"orders", b"{}", Reason.FOREIGN_KEY),
        (segment_key(LOG, segment_id(9)), b"{}", Reason.UNREADABLE),
        (log_key(LOG), b"not JSON", Reason.UNREADABLE),
        (segment_key(LOG, segment_id(9)), encode_segment(segment(8, 0, 9)), Reason.UNREADABLE),
        (
            segment_key(LOG, segment_id(9)),
            encode_segment(segment(9, 0, 9, log=LOG._replace(cluster_id="another"))),
            Reason.UNREADABLE,
        ),
        (
            log_key(LOG),
            encode_log(log_record(5, log=LOG._replace(cluster_id="another"))),
            Reason.UNREADABLE,
        ),
        (
            log_key(LOG),
            b'{"kind":"log","version":7,"min_reader":7,"~seal":""}',
            Reason.TOO_NEW,
        ),
    ],
)
def test_what_is_not_ours_to_read_is_a_finding(key: bytes, value: bytes, reason: Reason) -> None:
    """It changes nothing that was followed, and it is never silent."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))

    found = topic.append_raw(key, value)

    assert _reasons(found) == [reason]
    assert found[0].offset == len(topic.records) - 1
    assert topic.frontier.offset == 100


def test_an_unreadable_key_may_be_forgotten_and_may_become_readable() -> None:
    """What nobody understood holds nobody up."""
    topic = _claimed()
    key = segment_key(LOG, segment_id(1))
    topic.append_raw(key, b"?")
    assert topic.view.unreadable() == (key,)

    assert topic.append(_copy(1, 0, 100, by=5)) == []
    assert topic.view.unreadable() == ()
    topic.append_raw(key, b"?")
    assert _reasons(topic.append_raw(key, None)) == [Reason.TOMBSTONE]
    topic.append_raw(segment_key(LOG, segment_id(2)), b"?")
    assert topic.append_raw(segment_key(LOG, segment_id(2)), None) == []


def test_a_record_delivered_again_changes_nothing() -> None:
    """A consumer that was restarted begins a little before where it was."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))
    before = topic.table.digest(LOG)

    for record in topic.records:
        assert topic.table.apply(*record) == []

    assert topic.table.digest(LOG) == before
    assert topic.table.position == len(topic.records)
    assert topic.table.caught_up_to(3)
    assert not topic.table.caught_up_to(4)
    topic.table.skip_to(9)
    assert topic.table.caught_up_to(9)


def test_a_log_of_another_partition_is_not_followed() -> None:
    """The topic's partitions were added to, or somebody partitions in another way: order would be lost."""
    topic = MetadataTopic(cluster_id=CLUSTER_ID, topic_id=TOPIC.topic_id, partition_count=8)
    own = metadata_partition(LOG, 8)
    record = TopicRecord(0, log_key(LOG), encode_log(log_record(5)))
    tables = [PartitionTable(topic, number, complete_from=0) for number in range(8)]

    found = [table.apply(*record) for table in tables]

    wrong = [number for number, each in enumerate(found) if _reasons(each) == [Reason.WRONG_PARTITION]]
    assert wrong == [number for number in range(8) if number != own]
    together = ReferenceTable(tables)
    assert together.of(LOG) is tables[own]
    assert list(together.logs()) == [LOG]
    assert together.view(LOG) is not None
    assert together.view(OTHER_LOG) is None
    assert together.view(LOG._replace(cluster_id="another")) is None


def test_a_view_stays_as_it_was() -> None:
    """What is decided on a view is decided on one moment of the table."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))
    view = topic.view

    topic.copy(_copy(2, 100, 200, by=5))
    topic.append_raw(segment_key(LOG, segment_id(1)), b"?")

    assert view.finished.bases.tolist() == [0]
    assert view.metadata_offset == 2
    assert topic.view.metadata_offset == 5
    assert [each.segment_id for each in view.segments()] == [segment_id(1)]


def test_a_record_is_known_by_where_it_is_followed() -> None:
    """The last one that is; none of what was set aside, or of what nobody wrote."""
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))
    first = topic.table.followed_at(LOG, segment_id(1))
    topic.append(replace(_copy(1, 0, 100, by=5), state=DELETING))
    topic.append(_copy(2, 100, 200, by=4, state=STARTED))

    assert first == topic.table.position - 3
    assert topic.table.followed_at(LOG, segment_id(1)) == topic.table.position - 2
    assert topic.table.followed_at(LOG, segment_id(2)) is None
    assert topic.table.followed_at(LOG, segment_id(3)) is None


def test_rows_are_used_again() -> None:
    """A table does not grow with what was forgotten."""
    topic = _claimed()
    for number in range(200):
        copy = _copy(number, 0, 100, by=5)
        topic.copy(copy)
        topic.append(replace(copy, state=DELETING), replace(copy, state=DELETED))
        topic.append_raw(segment_key(LOG, copy.segment_id), None)

    assert len(topic.table) == 0
    assert len(topic.table.state.store.rows) == 1


def test_values_that_are_superseded_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand retries of one record take the memory of a few, and the record stays what it was."""
    monkeypatch.setattr("tiering.segments.values.WASTE_BYTES", 10_000)
    topic = _claimed()
    topic.copy(_copy(1, 0, 100, by=5))
    for _ in range(1000):
        topic.append(_copy(2, 100, 200, by=5, state=STARTED))

    assert topic.table.state.values.stored_bytes < 100_000
    assert topic.table.segment(LOG, segment_id(1)) == _copy(1, 0, 100, by=5)
    assert topic.table.segment(LOG, segment_id(2)) == _copy(2, 100, 200, by=5, state=STARTED)
