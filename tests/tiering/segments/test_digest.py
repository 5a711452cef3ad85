"""The digest: the sum over the last record of each key, whatever the way there; comparable or not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rules.identity import LogId
from tests.tiering.segments.strategies import LOG, OTHER_LOG, log_record, segment, segment_id
from tests.tiering.segments.topic import ALL_HISTORY, Topic, compacted, new_table
from tiering.outcome import Failed, Inconclusive, Verified
from tiering.segments.codec import encode_segment
from tiering.segments.digest import MODULUS, LogDigest, compare, replaced, summed
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import SegmentState

STARTED, FINISHED, DELETING, DELETED = SegmentState


def _sum(*pairs: tuple[bytes, bytes]) -> int:
    return sum(int.from_bytes(sha256(key + value).digest(), "big") for key, value in pairs) % MODULUS


def _digest(topic: Topic) -> LogDigest:
    found = topic.table.digest(LOG)
    assert found is not None
    return found


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=32, max_size=32)), min_size=1, max_size=30))
def test_many_are_summed_as_one_by_one(groups: list[tuple[int, bytes]]) -> None:
    """The sum by columns, mod 2^256, is the sum by whole numbers."""
    ordered = sorted(groups, key=lambda each: each[0])
    numbers = [number for number, _ in ordered]
    digests = np.frombuffer(b"".join(each for _, each in ordered), np.uint8).reshape(-1, 32)
    begins = np.flatnonzero(np.diff(np.array(numbers), prepend=-1))

    sums = summed(digests, begins)

    expected = dict.fromkeys(numbers, 0)
    for number, each in ordered:
        expected[number] = replaced(expected[number], None, each)
    assert sums == list(expected.values())


def test_it_is_the_sum_over_the_last_record_of_each_key() -> None:
    """Started and fenced copies count, deleted ones and what is superseded do not; so does the log's own."""
    topic = Topic()
    topic.claim(log_record(5, epochs=((0, 0),)))
    one, two, three = (
        segment(number, 100 * number, 100 * number + 100, epochs=((0, 100 * number),), leader_epoch=5)
        for number in (1, 2, 3)
    )
    topic.copy(one, two)
    topic.append(replace(three, state=STARTED))
    topic.append(replace(segment(4, 0, 9), leader_epoch=0))  # fenced
    topic.append(replace(two, state=DELETING), replace(two, state=DELETED))

    last = {record.key: record.value or b"" for record in topic.records}
    del last[segment_key(LOG, segment_id(2))]
    assert _digest(topic).digest == _sum(*last.items())
    assert topic.table.members(LOG) == tuple(
        (key.decode(), sha256(key + value).hexdigest()) for key, value in sorted(last.items())
    )


def test_after_compaction_it_is_the_same() -> None:
    """A table that replays what compaction left has the digest of one that saw everything."""
    topic = Topic()
    topic.claim(log_record(0))
    for number in range(5):
        topic.copy(segment(number, 10 * number, 10 * number + 10))
    topic.append(segment(2, 20, 30, state=DELETING), segment(2, 20, 30, state=DELETED))
    topic.append_raw(segment_key(LOG, segment_id(2)), None)
    topic.claim(log_record(0, log_start=3))
    fresh = new_table(complete_from=len(topic.records))

    fresh.apply_many(compacted(topic.records))

    found = fresh.digest(LOG)
    assert found is not None
    assert (found.digest, found.offset) == (_digest(topic).digest, _digest(topic).offset)
    assert not found.comparable, "it has seen nothing behind the end that it began at"


def test_an_unreadable_record_counts_unless_it_says_that_it_is_deleted() -> None:
    """`kind` and `state` keep their meaning, so that an older reader sums up what a newer one does."""
    topic = Topic()
    topic.claim(log_record(0))
    without = _digest(topic).digest
    newer = b'{"kind":"segment","min_reader":9,"state":"%s","version":9,"~seal":""}'
    key = segment_key(LOG, segment_id(1))

    topic.append_raw(key, newer % b"COPY_FINISHED")
    live = _digest(topic).digest
    topic.append_raw(key, newer % b"DELETE_FINISHED")

    assert live == (without + _sum((key, newer % b"COPY_FINISHED"))) % MODULUS
    assert _digest(topic).digest == without


def test_logs_do_not_mix() -> None:
    """Each log has a digest of its own, at the offset of its own last record."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.append_raw(log_key(OTHER_LOG), b"?")

    other = topic.table.digest(OTHER_LOG)

    assert _digest(topic).offset == 0
    assert other is not None
    assert (other.offset, other.digest) == (1, _sum((log_key(OTHER_LOG), b"?")))
    assert topic.table.digest(LogId("another", LOG.topic_id, LOG.partition)) is None
    assert topic.table.members(LOG._replace(partition=77)) == ()


def _said(**fields: int) -> LogDigest:
    return replace(LogDigest(log=LOG, offset=9, digest=5, complete_from=3), **fields)  # type: ignore[arg-type]


def test_only_what_can_be_compared_is() -> None:
    """The same offset, and past the end that each began its replay at; else nothing is said."""
    assert compare(_said(), _said(complete_from=9)) == Verified()
    assert isinstance(compare(_said(), _said(digest=6)), Failed)
    assert isinstance(compare(_said(), _said(offset=10)), Inconclusive)
    assert isinstance(compare(_said(), _said(digest=6, complete_from=10)), Inconclusive)
    assert isinstance(compare(_said(complete_from=10), _said()), Inconclusive)
    assert isinstance(compare(_said(), replace(_said(), log=OTHER_LOG)), Inconclusive)
    assert _said().hex() == f"{5:064x}"


def test_a_digest_in_the_past_is_not_reproduced_after_compaction() -> None:
    """The reason for the rule above: at an older offset a fresh table has lost what an old one had."""
    topic = Topic()
    topic.claim(log_record(0))
    topic.copy(segment(1, 0, 10))
    then = _digest(topic)
    topic.append(segment(1, 0, 10, state=DELETING))
    fresh = new_table(complete_from=ALL_HISTORY)

    fresh.apply_many([each for each in compacted(topic.records) if each.offset <= then.offset])

    found = fresh.digest(LOG)
    assert found is not None
    assert found.digest != then.digest
    assert isinstance(compare(then, found), Inconclusive)


def test_it_names_the_bytes_not_their_meaning() -> None:
    """The same record with other bytes is another record: META-02 asks for one content per id."""
    key = segment_key(LOG, segment_id(1))
    value = encode_segment(segment(1, 0, 10))

    assert _sum((key, value)) != _sum((key, value.replace(b"orders", b"0rders")))
