"""Keys of the metadata topic, and the partition that they lead to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.segments.strategies import LOG, LOG_IDS, segment_id
from tiering.segments.keys import RecordKey, log_key, metadata_partition, murmur2, parse_key, segment_key
from tiering.segments.records import LogId, SegmentId

# From Kafka's own UtilsTest, as unsigned.
KAFKAS_OWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@given(LOG_IDS, st.uuids())
def test_a_key_says_what_it_was_made_of(log: LogId, identity: object) -> None:
    """Both kinds of key are read back."""
    name = SegmentId(str(identity))

    assert parse_key(log_key(log)) == RecordKey(log.topic_id, log.partition, None)
    assert parse_key(segment_key(log, name)) == RecordKey(log.topic_id, log.partition, name)


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"foo",
        log_key(LOG)[:-1],
        log_key(LOG) + b":",
        log_key(LOG)[:-1] + b"03",
        log_key(LOG)[:-1] + b"2147483648",
        log_key(LOG) + b"\n",
        log_key(LOG)[1:],
        b"B" * 22 + b":1",  # bits beyond the 16 bytes
        segment_key(LOG, segment_id(1)).upper(),
        segment_key(LOG, segment_id(1)) + b":1",
    ],
)
def test_no_other_spelling_is_a_key(key: bytes) -> None:
    """One log or segment, one key."""
    assert parse_key(key) is None


def test_the_hash_is_kafkas() -> None:
    """Kafka's published vectors."""
    for text, wanted in KAFKAS_OWN.items():
        assert murmur2(text) == wanted & 0xFFFFFFFF


@given(LOG_IDS, st.integers(1, 1000))
def test_a_log_has_one_partition(log: LogId, count: int) -> None:
    """It is within the topic, and depends on the log alone."""
    partition = metadata_partition(log, count)

    assert 0 <= partition < count
    assert partition == metadata_partition(log._replace(cluster_id="another"), count)
