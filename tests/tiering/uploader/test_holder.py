"""Held segments: no unlink takes them, no limit is passed, nothing cut off the log's end stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.encode.segment import batches, write_segment
from tiering.log.directory import FileKind, Segment, read_partition_directory
from tiering.uploader.holder import HoldLimits, SegmentHolder


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Four segments of nine offsets; the last is active."""
    path = tmp_path / "orders-0"
    path.mkdir()
    for base in (0, 9, 18, 27):
        write_segment(path, base, batches(base, count=3))
        (path / f"{base:020d}.index").write_bytes(b"")
    return path


@pytest.fixture
def holder() -> Iterator[SegmentHolder]:
    held = SegmentHolder()
    yield held
    held.close()


def listed(partition: Path) -> tuple[Segment, ...]:
    return read_partition_directory(partition).segments


def bases(holder: SegmentHolder) -> list[int]:
    return [segment.base_offset for segment in holder.held("orders-0")]


def test_closed_segments_are_held_the_active_one_is_not(partition: Path, holder: SegmentHolder) -> None:
    """All but the last segment of a listing are open, with the side files that exist."""
    held = holder.keep("orders-0", listed(partition))

    assert [(s.base_offset, s.end_offset) for s in held] == [(0, 9), (9, 18), (18, 27)]
    assert set(held[0].descriptors) == {FileKind.SEGMENT, FileKind.OFFSET_INDEX}


def test_an_unlinked_segment_stays_readable_and_is_counted(partition: Path, holder: SegmentHolder) -> None:
    """Retention takes the name, not the bytes; what we pin on disk is a number."""
    path = partition / f"{0:020d}.log"
    content = path.read_bytes()
    holder.keep("orders-0", listed(partition))

    path.rename(path.with_name(path.name + ".deleted"))
    path.with_name(path.name + ".deleted").unlink()
    [first, *_] = holder.keep("orders-0", listed(partition))

    assert os.pread(first.log_descriptor, len(content) + 1, 0) == content
    assert first.is_unlinked()
    assert holder.totals().pinned_bytes == len(content)


def test_a_segment_already_renamed_is_held_under_its_other_name(
    partition: Path, holder: SegmentHolder
) -> None:
    """Between the listing and the open Kafka may have renamed the file to `.deleted`."""
    segments = listed(partition)
    path = partition / f"{0:020d}.log"
    path.rename(path.with_name(path.name + ".deleted"))

    holder.keep("orders-0", segments)

    assert bases(holder) == [0, 9, 18]


def test_what_went_meanwhile_is_not_held(partition: Path, holder: SegmentHolder) -> None:
    """A file that is gone under both names is left out, without an error."""
    segments = listed(partition)
    (partition / f"{9:020d}.log").unlink()

    holder.keep("orders-0", segments)

    assert bases(holder) == [0, 18]


def test_a_truncated_end_is_let_go(partition: Path, holder: SegmentHolder) -> None:
    """After a truncation into the second segment, neither it nor what followed is the log's any more."""
    holder.keep("orders-0", listed(partition))
    for base in (18, 27):
        (partition / f"{base:020d}.log").unlink()
    os.truncate(partition / f"{9:020d}.log", 80)

    holder.keep("orders-0", listed(partition))

    assert bases(holder) == [0]


def test_a_file_cut_in_place_is_let_go(partition: Path, holder: SegmentHolder) -> None:
    """A held segment that is no longer as long as it was is not what was closed."""
    holder.keep("orders-0", listed(partition))
    path = partition / f"{9:020d}.log"
    os.truncate(path, 80)

    holder.keep("orders-0", listed(partition))

    assert 9 in bases(holder)  # opened anew, as it is now
    assert holder.held("orders-0")[1].size_bytes == 80


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (HoldLimits(count_max=2), [0, 9]),
        (HoldLimits(bytes_max=500), [0]),
        (HoldLimits(count_max=0), []),
    ],
)
def test_limits_are_kept_and_the_oldest_come_first(
    partition: Path, limits: HoldLimits, expected: list[int]
) -> None:
    """What does not fit is refused and counted; the oldest are what retention takes first."""
    holder = SegmentHolder(limits)

    holder.keep("orders-0", listed(partition))

    assert bases(holder) == expected
    assert holder.totals().refused_count == 3 - len(expected)
    assert holder.totals().size_bytes <= limits.bytes_max
    holder.close()


def test_release_makes_room(partition: Path) -> None:
    """Committed segments are let go, and the next ones are held in their place."""
    holder = SegmentHolder(HoldLimits(count_max=1))
    holder.keep("orders-0", listed(partition))

    holder.release("orders-0", below=9)
    (partition / f"{0:020d}.log").unlink()
    holder.keep("orders-0", listed(partition))

    assert bases(holder) == [9]
    holder.close()


def test_what_is_committed_takes_no_room(partition: Path) -> None:
    """Segments below the frontier may lie on the disk for days: they are neither opened nor kept open. The
    room is for what is to be copied, and the one that the frontier lies in."""
    holder = SegmentHolder(HoldLimits(count_max=1))

    holder.keep("orders-0", listed(partition), above=9)
    assert bases(holder) == [9]
    holder.keep("orders-0", listed(partition), above=20)
    assert bases(holder) == [18]
    holder.keep_more("orders-0", listed(partition), above=27)
    assert bases(holder) == [18]  # it may be being read
    holder.keep("orders-0", listed(partition), above=27)
    assert bases(holder) == []
    assert holder.totals().refused_count == 0
    holder.close()


def test_closing_gives_every_descriptor_back(partition: Path) -> None:
    """No descriptor of a held file is left open after close."""
    before = _open_descriptors()
    holder = SegmentHolder()

    holder.keep("orders-0", listed(partition))
    during = _open_descriptors()
    holder.close()

    assert during == before + 6
    assert _open_descriptors() == before
    assert holder.totals().count == 0


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
