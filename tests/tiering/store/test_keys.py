"""Keys: written and parsed back to the character; whatever else stands in the bucket is not ours."""

from __future__ import annotations

import base64
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.identity import LogId
from tiering.log.errors import Malformed
from tiering.store.keys import OFFSET_MAX, KeyLayout, ObjectKind, SegmentKey

TOPIC_ID = "vQ2s0Gm7TS2B1cXl3vJb1A"
SEGMENT_ID = "0c6e3f6a-1f2f-4e8e-9d77-2f3b8a7f6c51"
LOG = LogId("MkU3OEVBNTcwNTJENDM2Qg", TOPIC_ID, 7)
KEY = f"seawall/MkU3OEVBNTcwNTJENDM2Qg/{TOPIC_ID}/7/00000000000000012345-{SEGMENT_ID}.log"
LAYOUT = KeyLayout("seawall")

topic_ids = st.binary(min_size=16, max_size=16).map(
    lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")
)
segments = st.builds(
    SegmentKey,
    log=st.builds(
        LogId,
        st.text("abcXYZ019_.-", min_size=1, max_size=30).filter(lambda name: name.strip(".")),
        topic_ids,
        st.integers(0, 2**31 - 1),
    ),
    base_offset=st.integers(0, OFFSET_MAX),
    segment_id=st.uuids().map(str),
)


def test_a_key_is_written_as_designed() -> None:
    """Prefix, cluster, topic id, partition, padded base offset, segment id, kind."""
    segment = SegmentKey(log=LOG, base_offset=12345, segment_id=SEGMENT_ID)

    assert LAYOUT.key(segment, ObjectKind.LOG) == KEY
    assert LAYOUT.parse(KEY) == (segment, ObjectKind.LOG)


@given(
    segment=segments,
    kind=st.sampled_from(ObjectKind),
    prefix=st.sampled_from(["", "seawall", "a/b.c", "0/0/0"]),
)
def test_every_key_parses_back(segment: SegmentKey, kind: ObjectKind, prefix: str) -> None:
    """What was written is what is read, under any prefix, and each object of a segment has its own key."""
    layout = KeyLayout(prefix)

    key = layout.key(segment, kind)

    assert layout.parse(key) == (segment, kind)
    assert key.startswith(layout.log_prefix(segment.log))
    assert key == f"{layout.stem(segment)}.{kind.value}"


@pytest.mark.slow
@given(text=st.text(max_size=80) | st.from_regex(r"seawall/[a-z.]{1,3}/.{22}/[0-9]{1,3}/.{57}\.log"))
def test_what_is_not_ours_is_none(text: str) -> None:
    """Any text is parsed without an error; if it is taken for ours, it is what we would have written."""
    found = LAYOUT.parse(text)

    assert found is None or LAYOUT.key(*found) == text


@pytest.mark.parametrize(
    "key",
    [
        KEY.replace("seawall/", "other/"),
        KEY.replace("seawall/", "seawall//"),
        KEY.replace("/7/", "/07/"),
        KEY.replace("/7/", "/-1/"),
        KEY.replace("/7/", "/2147483648/"),
        KEY.replace("00000000000000012345", "12345"),
        KEY.replace("00000000000000012345", "99999999999999999999"),
        KEY.replace("00000000000000012345", "0000000000000001234\u0665"),
        KEY.replace(SEGMENT_ID, SEGMENT_ID.upper()),
        KEY.replace(TOPIC_ID, TOPIC_ID[:-1] + "B"),  # bits that 16 bytes do not have
        KEY.replace("MkU3OEVBNTcwNTJENDM2Qg", ".."),
        KEY.replace(".log", ".index"),
        KEY + "\n",
        KEY + ".tmp",
        KEY.removeprefix("seawall/"),
        "",
    ],
)
def test_near_misses_are_not_ours(key: str) -> None:
    """One character off is another program's object."""
    assert LAYOUT.parse(key) is None


@pytest.mark.parametrize(
    ("log", "base_offset", "segment_id"),
    [
        (LogId("a/b", TOPIC_ID, 0), 0, SEGMENT_ID),
        (LogId("..", TOPIC_ID, 0), 0, SEGMENT_ID),
        (LogId("", TOPIC_ID, 0), 0, SEGMENT_ID),
        (LogId("c", "orders", 0), 0, SEGMENT_ID),
        (LogId("c", TOPIC_ID, -1), 0, SEGMENT_ID),
        (LogId("c", TOPIC_ID, 0), -1, SEGMENT_ID),
        (LogId("c", TOPIC_ID, 0), OFFSET_MAX + 1, SEGMENT_ID),
        (LogId("c", TOPIC_ID, 0), 0, "1"),
    ],
)
def test_what_no_key_can_hold_is_refused(log: LogId, base_offset: int, segment_id: str) -> None:
    """Nothing is written that could not be parsed back."""
    with pytest.raises(Malformed):
        LAYOUT.key(SegmentKey(log=log, base_offset=base_offset, segment_id=segment_id), ObjectKind.AUX)


def test_a_key_that_s3_would_refuse_is_refused_here() -> None:
    """S3's limit is 1024 bytes."""
    layout = KeyLayout("p" * 960)

    with pytest.raises(Malformed, match="1024"):
        layout.key(SegmentKey(log=LOG, base_offset=0, segment_id=str(uuid.uuid4())), ObjectKind.LOG)


@given(first=segments, second=segments)
def test_the_prefix_of_a_log_is_no_other_logs(first: SegmentKey, second: SegmentKey) -> None:
    """Listing one log's prefix gives that log's keys and no other's: partition 1 is not partition 10."""
    neighbour = second.log._replace(partition=first.log.partition * 10 % 2**31)
    others = SegmentKey(log=neighbour, base_offset=second.base_offset, segment_id=second.segment_id)

    key = LAYOUT.key(others, ObjectKind.LOG)

    assert key.startswith(LAYOUT.log_prefix(first.log)) == (neighbour == first.log)
