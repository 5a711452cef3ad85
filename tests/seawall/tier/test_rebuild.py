"""A lost topic filled from copies alone: the table that follows it serves every copy again."""

from __future__ import annotations

from dataclasses import replace

from rules.identity import LogId, ObjectRef
from seawall.tier.rebuild import Disagreeing, as_it_lies, fill, log_record_of
from tests.tiering.orphans.world import TOPIC, World
from tests.tiering.segments.strategies import LOG, segment
from tiering.outcome import Inconclusive
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.frontier import Stop, frontier
from tiering.segments.keys import log_key, segment_key
from tiering.segments.rebuild import Retold
from tiering.segments.records import LogRecord, SegmentRecord
from tiering.segments.table import PartitionTable


def told(*copies: SegmentRecord) -> LogRecord | Disagreeing:
    return log_record_of(copies, event_id="rebuilt", now_ms=1)


def test_every_copy_counts_again_under_the_new_claim() -> None:
    """Copies of three epochs: written before the claim, none is fenced, and the frontier is where it was."""
    copies = (
        segment(1, 0, 5, epochs=((0, 0),)),
        segment(2, 5, 9, epochs=((0, 5), (2, 7))),
        segment(3, 9, 12, epochs=((2, 9), (4, 11))),
    )
    record = told(*copies)
    assert isinstance(record, LogRecord)
    table = PartitionTable(TOPIC, 0, complete_from=4)
    for offset, copy in enumerate(copies):
        assert table.apply(offset, segment_key(LOG, copy.segment_id), encode_segment(copy)) == []
    assert table.apply(3, log_key(LOG), encode_log(record)) == []

    view = table.view(LOG)
    assert view is not None
    found = frontier(view)
    assert not isinstance(found, Inconclusive)
    assert (found.start, found.offset, found.stop) == (0, 12, Stop.END)
    assert record.claim_epoch == 4
    assert [tuple(each) for each in record.leader_epochs] == [(0, 0), (2, 7), (4, 11)]


def test_copies_of_two_histories_get_no_record() -> None:
    """After an unclean election two leaders wrote the same offsets: nobody here may choose between them."""
    ours = segment(1, 0, 9, epochs=((0, 0), (3, 5)))
    theirs = segment(2, 5, 9, epochs=((1, 5),))

    found = told(ours, theirs)

    assert isinstance(found, Disagreeing)


def test_a_start_that_was_lost_begins_at_the_first_copy() -> None:
    """What was removed below is not waited for."""
    record = told(segment(2, 40, 50), replace(segment(1, 30, 40)))

    assert isinstance(record, LogRecord)
    assert (record.log_start, record.first_tiered_offset) == (30, 30)


def retold(copy: SegmentRecord) -> Retold:
    return Retold(
        record=copy, key=segment_key(LOG, copy.segment_id), value=encode_segment(copy), absent=("something",)
    )


def test_copies_are_written_before_the_claim_that_would_fence_them() -> None:
    """The table that reads what was written follows every record, and has its frontier at the end."""
    written: list[tuple[bytes, bytes]] = []

    def append(log: LogId, key: bytes, value: bytes) -> None:
        assert log == LOG
        written.append((key, value))

    copies = [segment(1, 0, 5, epochs=((0, 0),)), segment(2, 5, 9, epochs=((3, 5),))]
    assert fill(map(retold, copies), append, now_ms=1) == ()

    table = PartitionTable(TOPIC, 0, complete_from=len(written))
    assert [table.apply(at, key, value) for at, (key, value) in enumerate(written)] == [[], [], []]
    view = table.view(LOG)
    assert view is not None
    found = frontier(view)
    assert not isinstance(found, Inconclusive)
    assert found.offset == 9


def test_a_restored_copy_is_told_under_the_versions_that_lie_there() -> None:
    """The same size and checksum under other versions is the copy; nothing, or other bytes, is not."""
    world = World()
    world.claim()
    for _ in world.upload(0):
        pass
    [committed] = world.committed().values()
    log = committed.objects.log
    assert log is not None
    world.store.mark_deleted(log.key)
    assert as_it_lies(retold(committed), world.store.head) is None
    world.store.copy_version(log)

    found = as_it_lies(retold(committed), world.store.head)

    assert found is not None
    now = found.record.objects.log
    assert isinstance(now, ObjectRef)
    assert now.version_id != log.version_id
    assert now == log._replace(version_id=world.store.head(log.key).version_id)
    other = replace(committed.objects, log=log._replace(checksum="another"))
    assert as_it_lies(retold(replace(committed, objects=other)), world.store.head) is None
