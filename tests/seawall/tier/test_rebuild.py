"""A lost topic filled from copies alone: the table that follows it serves every copy again."""

from __future__ import annotations

from dataclasses import replace

from seawall.tier.rebuild import Disagreeing, log_record_of
from tests.tiering.orphans.world import TOPIC
from tests.tiering.segments.strategies import LOG, segment
from tiering.outcome import Inconclusive
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.frontier import Stop, frontier
from tiering.segments.keys import log_key, segment_key
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
