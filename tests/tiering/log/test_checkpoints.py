"""The checkpoints: Kafka's own files, blank ones, and every line that Kafka would not write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.log.kafka_json import vectors
from tiering.log.checkpoints import (
    LOG_START_OFFSETS,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tiering.log.errors import MalformedLine

FILES = vectors("files", "files")
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=30)
OFFSETS = st.integers(0, 2**63 - 1)
INT32S = st.integers(0, 2**31 - 1)


def checkpoint(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode()


@pytest.mark.parametrize("file", [file for file in FILES if file["kind"] == "offset_checkpoint"])
def test_kafkas_offset_checkpoint_is_read(file: dict[str, Any]) -> None:
    """The same offsets as Kafka reads back; the file it made and never wrote is blank."""
    raw = bytes.fromhex(file["closed_hex"])

    read = read_offset_checkpoint(raw)

    assert {(topic, partition): offset for topic, partition, offset in file["entries"]} == read.offsets
    assert read.blank == (raw == b"")


@pytest.mark.parametrize("file", [file for file in FILES if file["kind"] == "leader_epoch_checkpoint"])
def test_kafkas_leader_epoch_checkpoint_is_read(file: dict[str, Any]) -> None:
    """The same epochs as Kafka reads back; the file it made and never wrote is blank."""
    raw = bytes.fromhex(file["closed_hex"])

    read = read_leader_epoch_checkpoint(raw)

    assert [list(epoch) for epoch in read.epochs] == file["entries"]
    assert read.blank == (raw == b"")


@given(st.dictionaries(st.tuples(TOPICS, INT32S), OFFSETS, max_size=8))
def test_offsets_survive_writing_and_reading(offsets: dict[tuple[str, int], int]) -> None:
    """Offsets written as Kafka writes them are read as the same values."""
    raw = checkpoint(*(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()))

    assert read_offset_checkpoint(raw).offsets == offsets


@given(
    st.lists(st.tuples(INT32S, OFFSETS), max_size=8, unique_by=(lambda e: e[0], lambda e: e[1])),
    OFFSETS,
)
def test_epochs_survive_and_are_found_by_offset(entries: list[tuple[int, int]], wanted: int) -> None:
    """Epochs come back in order, and an offset is in the last one that starts at or below it."""
    epochs = sorted(epoch for epoch, _ in entries)
    starts = sorted(start for _, start in entries)
    rising = list(zip(epochs, starts, strict=True))

    read = read_leader_epoch_checkpoint(checkpoint(*(f"{epoch} {start}" for epoch, start in rising)))

    assert list(read.epochs) == rising
    assert read.epoch_of(wanted) == max((epoch for epoch, start in rising if start <= wanted), default=None)


@pytest.mark.parametrize(
    ("raw", "line", "why"),
    [
        (b"\n", 1, "says ''"),
        (b"1\n0\n", 1, "says '1'"),
        (b"0\n", 2, "missing"),
        (b"0\nmany\n", 2, "'many'"),
        (b"0\n-1\n", 2, "'-1'"),
        (b"0\n1\n", 2, "counts 1 entries, but 0 follow"),
        (b"0\n0\norders 0 5\n", 2, "counts 0 entries, but 1 follow"),
        (b"0\n1\norders 0 10", 3, "cut off"),
        (b"0\n1\n\xff\xfe 0 10\n", 3, "utf-8"),
        (checkpoint("orders 0"), 3, "not 'topic partition offset'"),
        (checkpoint("orders 0 5 9"), 3, "not 'topic partition offset'"),
        (checkpoint(" 0 5"), 3, "no topic"),
        (checkpoint("orders x 5"), 3, "'x' for its partition"),
        (checkpoint("orders 0 -5"), 3, "'-5' for its offset"),
        (checkpoint("orders 0 +5"), 3, "'+5' for its offset"),
        (checkpoint("orders 0 05"), 3, "'05' for its offset"),
        (checkpoint("orders 0 \u0665"), 3, "for its offset"),
        (checkpoint("orders 0 9223372036854775808"), 3, "over 9223372036854775807"),
        (checkpoint("orders 0 " + "9" * 5000), 3, "over 9223372036854775807"),
        (checkpoint("orders 2147483648 5"), 3, "over 2147483647"),
        (checkpoint("orders 0 5", "orders 0 6"), 4, "second time"),
    ],
)
def test_a_line_that_kafka_does_not_write_is_named(raw: bytes, line: int, why: str) -> None:
    """The error has the line's number and says what is wrong with it; nothing of the file is believed."""
    with pytest.raises(MalformedLine, match=LOG_START_OFFSETS) as caught:
        read_offset_checkpoint(raw, LOG_START_OFFSETS)

    assert caught.value.line == line
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "line"),
    [
        (["0 0", "0 5"], 4),
        (["2 0", "1 5"], 4),
        (["0 0", "1 5", "2 5"], 5),
        (["0 9", "1 5"], 4),
        (["0"], 3),
        (["0 0 0"], 3),
        (["2147483648 0"], 3),
    ],
)
def test_epochs_that_do_not_rise_are_refused(entries: list[str], line: int) -> None:
    """Epochs and their starts rise together; a history that does not is no lineage."""
    with pytest.raises(MalformedLine) as caught:
        read_leader_epoch_checkpoint(checkpoint(*entries))

    assert caught.value.line == line


def test_the_byte_position_is_that_of_the_line() -> None:
    """The error also says where the line starts, for whoever looks with a byte editor."""
    with pytest.raises(MalformedLine) as caught:
        read_offset_checkpoint(checkpoint("orders 0 5", "orders zero 6"))

    assert caught.value.position == len(b"0\n2\norders 0 5\n")
