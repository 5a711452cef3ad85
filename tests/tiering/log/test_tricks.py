"""What somebody may have put into a log dir: it is named, and neither waited for nor taken for a segment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.encode.segment import batches, write_segment
from tiering.log.directory import FileKind, read_partition_directory
from tiering.log.verify import Request, verify_partition
from tiering.outcome import Skipped
from tiering.uploader.holder import SegmentHolder, open_segment


def _silent(_: object) -> None: ...


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments of nine offsets; the last is active."""
    path = tmp_path / "orders-0"
    path.mkdir()
    for base in (0, 9):
        write_segment(path, base, batches(base, count=3))
    return path


@pytest.mark.timeout(60)
def test_a_pipe_or_a_folder_with_a_segments_name_is_no_segment(partition: Path) -> None:
    """Neither is opened, which would wait for ever on a pipe; the pipe is reported, the others stand."""
    os.mkfifo(partition / f"{18:020d}.log")
    os.mkfifo(partition / "leader-epoch-checkpoint")
    (partition / f"{27:020d}.log").mkdir()

    listed = read_partition_directory(partition)
    checked = {each.path.name: each for each in verify_partition(partition, Request(), _silent)}

    assert [each.base_offset for each in listed.segments] == [0, 9]
    assert listed.segments[-1].end_offset is None
    for name in (f"{18:020d}.log", "leader-epoch-checkpoint"):
        assert checked[name].kind is FileKind.UNKNOWN
        assert isinstance(checked[name].outcome, Skipped)


@pytest.mark.timeout(60)
def test_what_a_link_leads_to_is_not_copied(partition: Path, tmp_path: Path) -> None:
    """Another log's segment under a link of this log's name is not held, however right its bytes are."""
    other = tmp_path / "payroll-0"
    other.mkdir()
    write_segment(other, 0, batches(0, count=3))
    (partition / f"{0:020d}.log").unlink()
    (partition / f"{0:020d}.log").symlink_to(other / f"{0:020d}.log")
    [first, _] = read_partition_directory(partition).segments

    holder = SegmentHolder()
    held = holder.keep("orders-0", read_partition_directory(partition).segments)
    holder.close()

    assert open_segment(first) is None
    assert held == ()


@pytest.mark.timeout(60)
def test_a_pipe_that_took_a_segments_place_is_not_waited_for(partition: Path) -> None:
    """Listed as a file and replaced since: it counts as gone."""
    [first, _] = read_partition_directory(partition).segments
    first.path.unlink()
    os.mkfifo(first.path)

    assert open_segment(first) is None
