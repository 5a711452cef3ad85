"""Segments: what a scan counts, and each defect as its own kind at its own byte."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.record_batch import CODECS, encode_batch, encode_control_batch
from tests.encode.segment import T0_MS, batches, plain_records, write_segment
from tiering.log.defects import DefectKind
from tiering.log.errors import Malformed
from tiering.log.segment import Compaction, Depth, SegmentScan, base_offset_of, iter_batches, scan_segment

Bytes = Callable[[list[bytes]], list[bytes]]


def scan_of(folder: Path, content: list[bytes], *, base_offset: int = 100, **how: object) -> SegmentScan:
    path = write_segment(folder, base_offset, content)
    return scan_segment(path, **how)  # type: ignore[arg-type]


def three_batches() -> list[bytes]:
    """Offsets 100 to 109, three to a batch, epochs 4, 4, 5."""
    return [*batches(100, count=2, leader_epoch=4), *batches(106, count=1, leader_epoch=5)]


@pytest.mark.parametrize("depth", list(Depth))
def test_a_good_segment_is_counted_in_full(tmp_path: Path, depth: Depth) -> None:
    """Counts, offsets, epochs, codecs and the latest time are those of the batches in the file."""
    content = [
        *batches(100, count=2, leader_epoch=4, codec="zstd"),
        encode_batch(plain_records(106, 2), leader_epoch=5, producer_id=1, attributes=0x10),
        encode_control_batch(108, commit=True, producer_id=1, timestamp_ms=T0_MS, leader_epoch=5),
    ]

    scan = scan_of(tmp_path, content, depth=depth)

    assert scan.defect is None
    assert (scan.base_offset, scan.first_offset, scan.data_end) == (100, 100, 109)
    assert (scan.batch_count, scan.record_count) == (4, 9)
    assert (scan.control_batch_count, scan.transactional_batch_count) == (1, 2)
    assert scan.max_timestamp_ms == T0_MS + 107
    assert scan.epochs == [(4, 100), (5, 106)]
    assert scan.codecs == {"zstd": 2, "none": 2}
    assert scan.valid_bytes == scan.size_bytes == sum(map(len, content))
    assert (scan.missing_offsets, scan.holes) == (0, [])


def test_an_empty_segment_holds_nothing_and_has_no_defect(tmp_path: Path) -> None:
    """A file of no bytes ends where it begins; whether that is a hole, its neighbours decide."""
    scan = scan_of(tmp_path, [])

    assert (scan.defect, scan.batch_count, scan.data_end, scan.first_offset) == (None, 0, 100, None)


def test_counts_do_not_depend_on_how_batches_fall_into_blocks(tmp_path: Path) -> None:
    """Ten thousand batches, more than one block of columns holds, are counted as the few are."""
    scan = scan_of(tmp_path, batches(0, count=10_000, records_each=1), base_offset=0)

    assert (scan.defect, scan.batch_count, scan.data_end) == (None, 10_000, 10_000)
    assert scan.epochs == [(0, 0)]


def overwrite(at: int, content: bytes) -> Callable[[bytes], bytes]:
    return lambda batch: batch[:at] + content + batch[at + len(content) :]


def flip(at: int) -> Callable[[bytes], bytes]:
    return lambda batch: batch[:at] + bytes([batch[at] ^ 0xFF]) + batch[at + 1 :]


SECOND_BATCH_FAULTS = {
    "flipped_payload": (flip(70), DefectKind.CRC_MISMATCH),
    "flipped_crc": (flip(17), DefectKind.CRC_MISMATCH),
    "length_too_small": (overwrite(8, struct.pack(">i", 48)), DefectKind.WRONG_LENGTH),
    "length_negative": (overwrite(8, struct.pack(">i", -1)), DefectKind.WRONG_LENGTH),
    "length_a_byte_short": (
        lambda b: overwrite(8, struct.pack(">i", len(b) - 13))(b),
        DefectKind.WRONG_LENGTH,
    ),
    "length_a_byte_long": (
        lambda b: overwrite(8, struct.pack(">i", len(b) - 11))(b),
        DefectKind.WRONG_LENGTH,
    ),
    "length_past_the_file": (overwrite(8, struct.pack(">i", 2**30)), DefectKind.WRONG_LENGTH),
    "old_magic": (overwrite(16, b"\1"), DefectKind.UNSUPPORTED_MAGIC),
    "offset_goes_back": (overwrite(0, struct.pack(">q", 102)), DefectKind.OFFSET_BACK),
    "offset_negative": (overwrite(0, struct.pack(">q", -5)), DefectKind.OFFSET_BACK),
    "offset_leaps": (overwrite(0, struct.pack(">q", 104)), DefectKind.HOLE),
    "offset_beyond_the_segment": (overwrite(0, struct.pack(">q", 2**40)), DefectKind.OFFSET_BEYOND),
    "epoch_goes_back": (overwrite(12, struct.pack(">i", 3)), DefectKind.EPOCH_BACK),
}


@pytest.mark.parametrize("fault", sorted(SECOND_BATCH_FAULTS))
@pytest.mark.parametrize("depth", list(Depth))
def test_each_fault_is_its_own_defect_at_its_own_byte(tmp_path: Path, fault: str, depth: Depth) -> None:
    """The second batch broken in one way gives that kind, at the second batch, after one good batch."""
    mutate, kind = SECOND_BATCH_FAULTS[fault]
    content = three_batches()
    content[1] = mutate(content[1])

    scan = scan_of(tmp_path, content, depth=depth)

    assert scan.defect is not None
    assert (scan.defect.kind, scan.defect.position) == (kind, len(content[0]))
    assert (scan.batch_count, scan.data_end, scan.valid_bytes) == (1, 103, len(content[0]))


SECOND_BATCH_LIES = {
    "count_too_high": ({"record_count": 4, "last_offset_delta": 3}, DefectKind.RECORD_COUNT),
    "count_too_low": ({"record_count": 2}, DefectKind.RECORD_COUNT),
    "last_offset_too_high": ({"last_offset_delta": 9}, DefectKind.LAST_OFFSET_DELTA),
    "last_offset_too_low": ({"last_offset_delta": 1}, DefectKind.LAST_OFFSET_DELTA),
    "max_timestamp_too_high": ({"max_timestamp_ms": T0_MS + 10**9}, DefectKind.MAX_TIMESTAMP),
    "max_timestamp_too_low": ({"max_timestamp_ms": T0_MS}, DefectKind.MAX_TIMESTAMP),
    "no_such_codec": ({"attributes": 0x07}, DefectKind.UNKNOWN_ATTRIBUTES),
    "no_such_attribute": ({"attributes": 0x100}, DefectKind.UNKNOWN_ATTRIBUTES),
    "payload_is_not_records": ({"payload": b"\xff" * 40}, DefectKind.BAD_RECORD),
    "payload_is_not_compressed": ({"attributes": 0x04}, DefectKind.BAD_RECORD),
}


@pytest.mark.parametrize("lie", sorted(SECOND_BATCH_LIES))
def test_a_header_that_lies_under_a_good_crc_is_told(tmp_path: Path, lie: str) -> None:
    """Bytes that are what somebody wrote, and a header that is not what the records are: its own kind."""
    fields, kind = SECOND_BATCH_LIES[lie]
    content = batches(100, count=3)
    content[1] = encode_batch(plain_records(103, 3), **fields)  # type: ignore[arg-type]

    scan = scan_of(tmp_path, content, depth=Depth.RECORDS)

    assert scan.defect is not None
    assert (scan.defect.kind, scan.defect.position) == (kind, len(content[0]))


def test_records_that_step_back_inside_a_batch_are_told(tmp_path: Path) -> None:
    """Record offsets rise within a batch; one that repeats is OFFSET_BACK."""
    records = plain_records(100, 3)
    content = [encode_batch([records[0], records[1], records[1]], last_offset_delta=2)]

    scan = scan_of(tmp_path, content, depth=Depth.RECORDS)

    assert scan.defect is not None
    assert scan.defect.kind is DefectKind.OFFSET_BACK


@pytest.mark.parametrize("cut_bytes", [1, 16, 17, 60, 61, 62])
def test_a_torn_tail_is_told_from_every_other_break(tmp_path: Path, cut_bytes: int) -> None:
    """A file that ends inside its last batch is torn there, however little of the batch is left."""
    whole = three_batches()
    torn = batches(109, count=1, leader_epoch=5)[0][:cut_bytes]

    scan = scan_of(tmp_path, [*whole, torn])

    assert scan.defect is not None
    assert (scan.defect.kind, scan.defect.position) == (DefectKind.TORN_TAIL, sum(map(len, whole)))
    assert scan.data_end == 109


def test_a_tail_of_zeros_is_torn(tmp_path: Path) -> None:
    """Zeros to the end are what a pre-allocated file has after a crash, not a batch of magic 0."""
    scan = scan_of(tmp_path, [*three_batches(), b"\0" * 5000])

    assert scan.defect is not None
    assert scan.defect.kind is DefectKind.TORN_TAIL
    assert "zeros" in scan.defect.detail


@pytest.mark.parametrize("size_bytes", [14, 26, 60, 200])
def test_an_old_message_is_unsupported_whatever_its_length(tmp_path: Path, size_bytes: int) -> None:
    """A magic-1 message, also one shorter than a v2 header, is named unsupported and not misread."""
    old = struct.pack(">qiIbb", 100, size_bytes, 0x1234, 1, 0) + b"\1" * (size_bytes - 6)

    scan = scan_of(tmp_path, [old, *three_batches()])

    assert scan.defect is not None
    assert scan.defect.kind is DefectKind.UNSUPPORTED_MAGIC
    assert "magic 1" in scan.defect.detail


def test_offsets_below_the_name_are_told(tmp_path: Path) -> None:
    """A first batch below the base offset in the file's name is OFFSET_BACK at byte 0."""
    scan = scan_of(tmp_path, batches(99, count=1))

    assert scan.defect is not None
    assert (scan.defect.kind, scan.defect.position) == (DefectKind.OFFSET_BACK, 0)


def test_offsets_in_the_next_segment_are_told(tmp_path: Path) -> None:
    """A batch that reaches the next segment's base is OFFSET_BEYOND."""
    scan = scan_of(tmp_path, batches(100, count=2), limit_offset=105)

    assert scan.defect is not None
    assert scan.defect.kind is DefectKind.OFFSET_BEYOND
    assert scan.data_end == 103


@pytest.mark.parametrize("depth", list(Depth))
def test_holes_are_a_defect_only_where_the_log_was_never_compacted(tmp_path: Path, depth: Depth) -> None:
    """The same bytes are broken on a log never compacted, and counted as holes on one that was."""
    sparse = plain_records(110, 5)
    content = [
        *batches(102, count=1),
        encode_batch([sparse[0], sparse[3]], last_offset_delta=4),
        encode_batch([], base_offset=120, last_offset_delta=9, base_timestamp_ms=-1),
    ]

    never = scan_of(tmp_path, content, depth=depth)
    possible = scan_of(tmp_path, content, depth=depth, compaction=Compaction.POSSIBLE)

    assert never.defect is not None
    assert (never.defect.kind, never.defect.offset, never.defect.position) == (DefectKind.HOLE, 100, 0)
    assert possible.defect is None
    assert possible.holes == [(100, 102), (105, 110), (110, 115), (115, 120), (120, 130)]
    assert possible.missing_offsets == 2 + 5 + 3 + 5 + 10
    assert possible.data_end == 130


def test_a_flipped_byte_anywhere_is_some_defect(tmp_path: Path) -> None:
    """Invert any byte of a segment: the scan finds it, but for the epoch of the last batch.

    The epoch lies outside the CRC; a higher one is betrayed by the batch after it, and the last batch has
    none. The leader-epoch checkpoint is what it must be held against.
    """
    content = b"".join(three_batches())
    last_batch_at = len(content) - len(three_batches()[2])
    path = write_segment(tmp_path, 100, [content])

    missed = []
    with path.open("r+b", buffering=0) as file:
        for at in range(len(content)):
            os.pwrite(file.fileno(), bytes([content[at] ^ 0xFF]), at)
            if scan_segment(path).defect is None:
                missed.append(at - last_batch_at)
            os.pwrite(file.fileno(), content[at : at + 1], at)

    # An inverted first byte of the epoch makes it negative, which is a step back.
    assert missed == [13, 14, 15]


@given(
    cuts=st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=12),
    codec=st.sampled_from(sorted(CODECS)),
    broken=st.integers(min_value=0),
)
def test_the_first_of_two_defects_is_the_one_reported(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], codec: str, broken: int
) -> None:
    """Whichever batch is broken, all before it are counted and a later defect does not hide it."""
    content, offset = [], 0
    for count in cuts:
        content.append(encode_batch(plain_records(offset, count), codec=codec))
        offset += count
    at = broken % len(content)
    spoiled = [*content[:at], flip(-1 % len(content[at]))(content[at]), *content[at + 1 :], b"torn"]

    scan = scan_of(tmp_path_factory.mktemp("segment"), spoiled, base_offset=0)

    assert scan.defect is not None
    assert (scan.defect.kind, scan.defect.position) == (DefectKind.CRC_MISMATCH, sum(map(len, content[:at])))
    assert (scan.batch_count, scan.record_count) == (at, sum(cuts[:at]))


def test_iteration_gives_each_batch_and_its_records(tmp_path: Path) -> None:
    """Batches come in file order with their position, and their records can be read on the way."""
    content = three_batches()
    path = write_segment(tmp_path, 100, content)

    with path.open("rb") as file:
        seen = [
            (b.position, b.header.base_offset, b.crc_matches(), len(list(b.records())))
            for b in iter_batches(file.fileno())
        ]

    first, second = len(content[0]), len(content[0]) + len(content[1])
    assert seen == [(0, 100, True, 3), (first, 103, True, 3), (second, 106, True, 3)]


def test_iteration_ends_in_a_typed_error_where_the_file_breaks(tmp_path: Path) -> None:
    """A broken chain is raised with its byte and its kind, after the batches before it."""
    path = write_segment(tmp_path, 100, [*three_batches(), b"\0" * 10])

    with path.open("rb") as file:
        reading = iter_batches(file.fileno())
        assert [next(reading).header.base_offset for _ in range(3)] == [100, 103, 106]
        with pytest.raises(Malformed) as caught:
            next(reading)

    assert caught.value.what == "torn_tail"


def test_base_offsets_come_from_names_only_of_segments() -> None:
    """A suffix that Kafka adds does not change the base offset; any other name is refused."""
    assert base_offset_of("00000000000000004928.log") == 4928
    assert base_offset_of("00000000000000004928.log.deleted") == 4928
    with pytest.raises(Malformed):
        base_offset_of("4928.log")


def test_progress_adds_up_to_the_file(tmp_path: Path) -> None:
    """The bytes told to the progress bar are those of the file."""
    told: list[int] = []

    scan = scan_of(tmp_path, batches(100, count=200), on_progress=told.append)

    assert sum(told) == scan.size_bytes


def test_a_disk_error_is_a_defect_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk refuses a read the segment is UNREADABLE, and what was read before is kept."""
    monkeypatch.setattr("tiering.log.windows.WINDOW_BYTES", 4096)

    def refuse(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", refuse)
    scan = scan_of(tmp_path, batches(100, count=2))

    assert scan.defect is not None
    assert (scan.defect.kind, scan.defect.detail) == (DefectKind.UNREADABLE, "Input/output error")
