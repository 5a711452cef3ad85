"""Verification of files, partitions and log dirs: one outcome a file, and the hole that no file shows."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.encode.segment import batches, write_segment
from tiering.log.directory import FileKind
from tiering.log.segment import Compaction, Depth, SegmentScan, scan_segment
from tiering.log.verify import Checked, Request, verify_file, verify_log_directory, verify_partition
from tiering.outcome import Failed, Inconclusive, Skipped, Verified


def partition(folder: Path, *bases: int, name: str = "orders-0") -> Path:
    """A partition whose segments hold offsets 0..9, 9..18, ...; only those that start at `bases`."""
    path = folder / name
    path.mkdir(parents=True)
    for base in bases:
        write_segment(path, base, batches(base, count=3))
    return path


def run(path: Path, depth: Depth = Depth.BATCHES, compaction: Compaction | None = None) -> list[Checked]:
    request = Request(depth=depth, compaction=compaction)
    return list(verify_partition(path, request, lambda _: None))


def problems(checked: Checked) -> list[str]:
    assert isinstance(checked.outcome, Failed)
    return [problem.kind for problem in checked.outcome.problems]


def test_a_sound_partition_is_verified_file_by_file(tmp_path: Path) -> None:
    """Each segment of a log without a gap is Verified."""
    outcomes = [checked.outcome for checked in run(partition(tmp_path, 0, 9, 18))]

    assert outcomes == [Verified(), Verified(), Verified()]


def test_a_missing_middle_segment_is_found_in_the_one_before(tmp_path: Path) -> None:
    """Kafka loads such a log without a word; here the segment before the hole fails, with the range."""
    [first, last] = run(partition(tmp_path, 0, 18))

    assert problems(first) == ["hole"]
    assert isinstance(first.outcome, Failed)
    assert first.outcome.problems[0].offset == 9
    assert "[9, 18)" in first.outcome.problems[0].detail
    assert last.outcome == Verified()


def test_the_same_gap_is_no_defect_on_a_log_that_was_compacted(tmp_path: Path) -> None:
    """The gap is counted and shown, and does not fail the segment."""
    [first, _] = run(partition(tmp_path, 0, 18), compaction=Compaction.POSSIBLE)

    assert first.outcome == Verified()
    assert first.scan is not None
    assert (first.scan.missing_offsets, first.scan.holes) == (9, [(9, 18)])


@pytest.mark.parametrize(
    ("name", "checkpoint", "verified"),
    [
        ("orders-0", None, False),
        ("orders-0", "0\n1\norders 1 5\n", False),
        ("orders-0", "0\n1\norders 0 5\n", True),
        ("__consumer_offsets-7", None, True),
    ],
)
def test_compaction_is_inferred_from_the_cleaners_checkpoint(
    tmp_path: Path, name: str, checkpoint: str | None, verified: bool
) -> None:
    """A log that the cleaner knows, or that Kafka compacts by design, may have holes; no other."""
    path = partition(tmp_path, 0, 18, name=name)
    if checkpoint is not None:
        (tmp_path / "cleaner-offset-checkpoint").write_text(checkpoint)

    [first, _] = run(path)

    assert isinstance(first.outcome, Verified) is verified


def test_an_empty_closed_segment_is_a_hole(tmp_path: Path) -> None:
    """A closed segment of no bytes has lost all its records."""
    path = partition(tmp_path, 0, 9, 18)
    write_segment(path, 9, [])

    assert problems(run(path)[1]) == ["hole"]


def test_a_torn_active_segment_is_inconclusive_a_torn_closed_one_failed(tmp_path: Path) -> None:
    """A broker may be writing the last segment at this moment; nobody writes a closed one."""
    path = partition(tmp_path, 0, 9)
    for base in (0, 9):
        segment = path / f"{base:020d}.log"
        segment.write_bytes(segment.read_bytes()[:-5])

    closed, active = run(path)

    assert problems(closed) == ["torn_tail"]
    assert isinstance(active.outcome, Inconclusive)


def test_a_segment_that_reaches_into_the_next_is_failed(tmp_path: Path) -> None:
    """Two files that claim the same offsets are not both right."""
    path = partition(tmp_path, 0, 9)
    write_segment(path, 0, batches(0, count=4))

    assert problems(run(path)[0]) == ["offset_beyond"]


def test_files_on_their_way_out_are_skipped_with_the_reason(tmp_path: Path) -> None:
    """`.deleted` files and whole `-delete` directories are not judged, and say why."""
    path = partition(tmp_path, 0)
    (path / "00000000000000000005.log.deleted").write_bytes(b"rubbish")
    gone = partition(tmp_path, 0, name="orders-1.0123456789abcdef0123456789abcdef-delete")

    marked = run(path)[1].outcome
    [removed] = [checked.outcome for checked in run(gone)]

    assert isinstance(marked, Skipped)
    assert "deleted" in marked.reason
    assert isinstance(removed, Skipped)
    assert "-delete" in removed.reason


def test_side_files_are_checked_and_named(tmp_path: Path) -> None:
    """A broken index, snapshot, epoch file or identity fails on its own; the segment stays Verified."""
    path = partition(tmp_path, 0, 9)
    (path / "00000000000000000000.index").write_bytes(struct.pack(">iiii", 5, 100, 3, 50))
    (path / "00000000000000000009.timeindex").write_bytes(b"\0" * 7)
    (path / "00000000000000000009.snapshot").write_bytes(b"\0\1" + b"\0" * 40)
    (path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n")
    (path / "partition.metadata").write_text("version: 0\n")

    checked = {c.path.name: c for c in run(path)}

    assert checked["00000000000000000000.log"].outcome == Verified()
    assert problems(checked["00000000000000000000.index"]) == ["entry_out_of_order", "entry_out_of_order"]
    assert problems(checked["00000000000000000009.timeindex"]) == ["partial_entry"]
    for name in ("00000000000000000009.snapshot", "leader-epoch-checkpoint", "partition.metadata"):
        assert isinstance(checked[name].outcome, Failed), name


@pytest.mark.parametrize(("target", "fine"), [(0, True), ("second", True), (7, False), (10**6, False)])
def test_index_entries_are_followed_to_their_batch(tmp_path: Path, target: int | str, fine: bool) -> None:
    """At record depth an entry that does not lead to a batch of its offset fails the index."""
    path = partition(tmp_path, 0)
    second_at = len(batches(0, count=1)[0])
    position = second_at if target == "second" else int(target)
    (path / "00000000000000000000.index").write_bytes(struct.pack(">ii", 5, position))

    index = run(path, depth=Depth.RECORDS)[1]

    assert index.kind is FileKind.OFFSET_INDEX
    assert isinstance(index.outcome, Verified) is fine


@pytest.mark.parametrize(("suffix", "entry"), [("index", ">ii"), ("timeindex", ">qi")])
def test_an_entry_that_comes_while_the_active_segment_is_scanned_is_no_defect(
    tmp_path: Path, suffix: str, entry: str
) -> None:
    """A broker writes on: an entry beyond what the scan saw is its newest batch's, and no false alarm; what
    stood beyond the log before that is still one."""
    folder = partition(tmp_path, 0)
    log = folder / f"{0:020d}.log"
    index = log.with_suffix(f".{suffix}")
    beyond = struct.pack(entry, log.stat().st_size, 9) if suffix == "timeindex" else struct.pack(entry, 9, 1)
    index.write_bytes(b"")

    def written_on(path: Path, **asked: Any) -> SegmentScan:
        found = scan_segment(path, **asked)
        index.write_bytes(beyond)
        return found

    request = Request(scan=written_on)
    assert [each.outcome for each in verify_partition(folder, request, lambda _: None)] == [Verified()] * 2
    [_, again] = run(folder)
    assert problems(again) == ["entry_beyond_log"]


def test_every_file_of_a_log_dir_has_one_outcome(tmp_path: Path) -> None:
    """Partitions, checkpoints, identity and strangers: nothing is left out, nothing comes twice."""
    partition(tmp_path, 0, 9)
    partition(tmp_path, 0, name="orders-1")
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 nine\n")
    (tmp_path / "stranger").write_text("?")

    request = Request()
    checked = list(verify_log_directory(tmp_path, request, lambda _: None))

    outcomes = {str(c.path.relative_to(tmp_path)): type(c.outcome).__name__ for c in checked}
    assert outcomes == {
        "meta.properties": "Verified",
        "replication-offset-checkpoint": "Failed",
        "orders-0/00000000000000000000.log": "Verified",
        "orders-0/00000000000000000009.log": "Verified",
        "orders-1/00000000000000000000.log": "Verified",
        "stranger": "Skipped",
    }
    assert len(checked) == len(outcomes)


def test_a_lone_file_is_judged_by_its_neighbours_where_it_has_them(tmp_path: Path) -> None:
    """The same segment fails beside a gap and passes on its own: alone, nobody knows where it should end."""
    path = partition(tmp_path, 0, 18)
    copy = write_segment(tmp_path, 0, batches(0, count=3))

    beside = verify_file(path / "00000000000000000000.log", Request(), lambda _: None)
    alone = verify_file(copy, Request(), lambda _: None)

    assert problems(beside) == ["hole"]
    assert alone.outcome == Verified()


def test_a_torn_copy_is_failed(tmp_path: Path) -> None:
    """Outside a partition directory nobody is writing: a torn tail is damage."""
    copy = write_segment(tmp_path, 0, [batches(0, count=1)[0][:-1]])

    assert problems(verify_file(copy, Request(), lambda _: None)) == ["torn_tail"]


def test_a_kraft_snapshot_is_verified_as_batches(tmp_path: Path) -> None:
    """A snapshot's batches are numbered from 0, whatever the offset in its name."""
    path = partition(tmp_path, 0, name="__cluster_metadata-0")
    good = path / "00000000000000000500-0000000003.checkpoint"
    good.write_bytes(b"".join(batches(0, count=2)))
    bad = path / "00000000000000000900-0000000003.checkpoint"
    bad.write_bytes(b"".join(batches(0, count=2))[:-1] + b"\xff")

    checked = {c.path.name: c for c in run(path)}

    assert checked[good.name].outcome == Verified()
    assert problems(checked[bad.name]) == ["crc_mismatch"]
