"""A restore of one log dir, killed before each step, refused for each reason, and undone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backup.errors import PieceUnreadable
from backup.logdir.apply import SPARE_BYTES, check, restore, undo
from backup.logdir.errors import (
    BrokerRuns,
    Cleaned,
    DiskTooSmall,
    DoesNotJoin,
    ForeignDirectory,
    LogDirRestoreError,
    NotCleanlyStopped,
    NothingToUndo,
    OtherHistory,
    OtherRestore,
    SegmentUnfit,
)
from backup.logdir.journal import work_folder
from backup.logdir.orchestrate import log_start_of
from backup.logdir.side_files import epochs_text, offsets_text
from backup.plan import Piece
from tests.backup.logdir.disk import WANTED, Disk, log_of
from tests.tiering.segments.strategies import LOG
from tiering.log.checkpoints import (
    CLEANER_OFFSETS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    EpochStart,
    TopicPartition,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tiering.log.index import offset_index_defects, time_index_defects
from tiering.store.errors import Denied

BATCHES = 24
FIRST = 14  # the first batch that the disk still has
BOUNDS = ((0, 6), (4, 11), (9, 17))  # copies by two leaders, the last one beyond the join


class Killed(Exception):
    """Thrown where a process would end."""


def lost(folder: Path, entry: int | None = None) -> tuple[Disk, tuple[Piece, ...]]:
    disk = Disk(folder=folder, log=log_of(BATCHES), first=FIRST, cuts=(19,), entry=entry).make()
    return disk, disk.copies(*BOUNDS)


def killing(at: int) -> Callable[[str], None]:
    """Ends it before its `at`-th step."""
    steps = iter(range(1, 10_000))

    def step(what: str) -> None:
        if next(steps) == at:
            raise Killed(what)

    return step


def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process cleans nothing up."""
    monkeypatch.setattr("backup.logdir.apply.shutil.rmtree", lambda *_, **__: None)


def test_the_directory_is_whole_again(tmp_path: Path) -> None:
    """Bytes, indexes within their files, epochs as they began, the other partitions' entries as they were."""
    disk, pieces = lost(tmp_path, entry=disk_entry())
    done = restore(disk.log_dir, disk.asked(pieces), disk.pieces, workers=1)
    assert disk.content()[0] == 0
    assert (done.log_start, done.files, done.was_done) == (0, 3, False)
    epochs = read_leader_epoch_checkpoint((disk.directory / LEADER_EPOCHS).read_bytes()).epochs
    assert [tuple(each) for each in epochs] == list(disk.log.epochs())
    entries = read_offset_checkpoint((disk.log_dir / LOG_START_OFFSETS).read_bytes()).offsets
    assert entries == {TopicPartition("other", 0): 5}
    assert log_start_of(disk.log_dir, WANTED) == 0
    files = sorted(disk.directory.glob("*.log"))
    for path, behind in pairwise(files[:4]):
        base, end = int(path.stem), int(behind.stem)
        index, times = path.with_suffix(".index").read_bytes(), path.with_suffix(".timeindex").read_bytes()
        sizes = {"base_offset": base, "end_offset": end}
        assert not list(offset_index_defects(index, log_size_bytes=path.stat().st_size, **sizes))
        assert not list(time_index_defects(times, **sizes))


def disk_entry() -> int:
    """A log start inside the first segment that is left, as DeleteRecords leaves it."""
    return log_of(BATCHES).batches[FIRST].start + 1


@pytest.mark.parametrize("first", [0, 4, 9, 12])
@pytest.mark.parametrize("bounds", [BOUNDS, BOUNDS[:2]])
def test_epochs_of_files_that_the_broker_has_not_removed_yet_are_told_again(
    tmp_path: Path, first: int, bounds: tuple[tuple[int, int], ...]
) -> None:
    """The log's start moved a moment ago and took the epochs before it along, the files stand: whether all of
    them, some or one do, and whether the tier has copies of them, the history is whole again; and undone."""
    log = log_of(BATCHES)
    disk = Disk(folder=tmp_path, log=log, first=first, cuts=(13, 19), entry=log.batches[16].start + 1).make()
    before = disk.state()
    pieces = disk.copies(*bounds, (9, 12))
    restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    epochs = read_leader_epoch_checkpoint((disk.directory / LEADER_EPOCHS).read_bytes()).epochs
    assert [tuple(each) for each in epochs] == list(log.epochs())
    assert (disk.content()[0], log_start_of(disk.log_dir, WANTED)) == (0, 0)
    undo(disk.log_dir, WANTED)
    assert disk.state() == before


def _segment_lost(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    (disk.directory / f"{disk.log.batches[6].start:020d}.log").unlink()
    return pieces


def _byte_flipped(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    path = disk.directory / f"{disk.log.batches[6].start:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return pieces


def _other_epoch_in_a_copy(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    record = replace(pieces[0].record, leader_epochs=(EpochStart(1, 0),))
    return (replace(pieces[0], record=record), *pieces[1:])


@pytest.mark.parametrize(
    ("spoil", "error", "said"),
    [
        (_segment_lost, DoesNotJoin, "segment at 0 is good up to 18 only: nothing is in it up to 34"),
        (_byte_flipped, DoesNotJoin, "segment at 18 is good up to 31 only"),
        (_other_epoch_in_a_copy, OtherHistory, "at 0 the copies have epoch 1"),
    ],
)
def test_a_file_that_stands_below_the_start_must_be_whole_and_of_the_copies_history(
    tmp_path: Path,
    spoil: Callable[[Disk, tuple[Piece, ...]], tuple[Piece, ...]],
    error: type[LogDirRestoreError],
    said: str,
) -> None:
    """Nobody was going to read it again, so that nobody noticed: refused, and nothing is changed."""
    log = log_of(BATCHES)
    disk = Disk(folder=tmp_path, log=log, first=0, cuts=(6, 12), entry=log.batches[16].start).make()
    pieces = spoil(disk, disk.copies(*BOUNDS))
    before = disk.state()
    with pytest.raises(error, match=said):
        restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    assert (disk.state(), work_folder(disk.directory).exists()) == (before, False)


def test_killed_before_any_step_it_ends_in_the_same_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kill leaves a log without a hole, before the first move the very same; then resumed, undone."""
    disk, pieces = lost(tmp_path / "whole")
    before = disk.state()
    restore(disk.log_dir, disk.asked(pieces), disk.pieces, workers=1)
    whole = disk.state()
    at = 0
    while True:
        at += 1
        disk, pieces = lost(tmp_path / str(at))
        asked = disk.asked(pieces)
        try:
            with monkeypatch.context() as patched:
                kept(patched)
                restore(disk.log_dir, asked, disk.pieces, workers=1, step=killing(at))
        except Killed as killed:
            disk.content()
            if str(killed).startswith(("make", "stage", "say what will")):
                assert disk.state() == before
            restore(disk.log_dir, asked, disk.pieces, workers=1)
            assert disk.state() == whole
            undo(disk.log_dir, WANTED)
            assert (disk.state(), work_folder(disk.directory).exists()) == (before, False)
            continue
        break
    assert at > 15


def test_undone_from_any_step_it_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the undoing itself was killed, and where it is restored again instead."""
    for at in range(2, 18, 3):
        disk, pieces = lost(tmp_path / str(at))
        before, asked = disk.state(), disk.asked(pieces)
        with monkeypatch.context() as patched:
            kept(patched)
            with pytest.raises(Killed):
                restore(disk.log_dir, asked, disk.pieces, workers=1, step=killing(at))
            with pytest.raises(Killed):
                undo(disk.log_dir, WANTED, step=killing(1 + at % 5 if at > 5 else 1))
        disk.content()
        if at % 2:
            undo(disk.log_dir, WANTED)
            assert disk.state() == before
        else:
            restore(disk.log_dir, asked, disk.pieces, workers=1)
            assert disk.content()[0] == 0
    with pytest.raises(NothingToUndo):
        undo(lost(tmp_path / "fresh")[0].log_dir, WANTED)


def _versions_gone(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    key = pieces[1].log_object.key
    disk.tier.store.kept.objects[key].clear()
    return pieces


def _flipped(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    ref = pieces[1].log_object
    content = bytearray(disk.tier.content(ref))
    content[-3] ^= 1
    disk.tier.tamper(ref, bytes(content))
    return pieces


def _denied(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    disk.tier.store.refuse("read", Denied)
    return pieces


def _other_record(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    record = replace(pieces[1].record, batch_count=99)
    return (pieces[0], replace(pieces[1], record=record), pieces[2])


def _gap(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    return pieces[0], pieces[2]


def _short(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    return pieces[:2]


def _other_epochs(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    epochs = [EpochStart(1, disk.log.batches[FIRST].start)]
    (disk.directory / LEADER_EPOCHS).write_bytes(epochs_text(epochs))
    return pieces


def _killed_broker(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    (disk.log_dir / ".kafka_cleanshutdown").unlink()
    return pieces


def _other_topic(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    (disk.directory / "partition.metadata").write_text("version: 0\ntopic_id: 3cVtEW_RTm2TSqxDBnRsEA\n")
    return pieces


def _other_cluster(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    path = disk.log_dir / "meta.properties"
    path.write_text(path.read_text().replace(LOG.cluster_id, "another"))
    return pieces


def _other_broker(disk: Disk, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    path = disk.log_dir / "meta.properties"
    path.write_text(path.read_text().replace("node.id=1", "node.id=2"))
    return pieces


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (_versions_gone, PieceUnreadable),
        (_flipped, (PieceUnreadable, SegmentUnfit)),
        (_denied, Denied),
        (_other_record, SegmentUnfit),
        (_gap, DoesNotJoin),
        (_short, DoesNotJoin),
        (_other_epochs, OtherHistory),
        (_killed_broker, NotCleanlyStopped),
        (_other_topic, ForeignDirectory),
        (_other_cluster, ForeignDirectory),
        (_other_broker, ForeignDirectory),
    ],
)
def test_what_is_not_right_is_refused_and_changes_nothing(
    tmp_path: Path,
    spoil: Callable[[Disk, tuple[Piece, ...]], tuple[Piece, ...]],
    error: type[LogDirRestoreError | Denied],
) -> None:
    """Each its own error; nothing staged is left behind."""
    disk, pieces = lost(tmp_path)
    pieces = spoil(disk, pieces)
    before = disk.state()
    with pytest.raises(error):
        restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    assert (disk.state(), work_folder(disk.directory).exists()) == (before, False)


def test_a_log_dir_that_another_process_has_locked_is_refused(tmp_path: Path) -> None:
    """As a broker holds it: with a record lock, which flock would not see."""
    disk, pieces = lost(tmp_path)
    holding = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(disk.log_dir / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(BrokerRuns):
            restore(disk.log_dir, disk.asked(pieces), disk.pieces)
        holder.communicate()
    restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    assert disk.content()[0] == 0


def test_another_plan_does_not_go_on_with_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one plan has begun another refuses to touch; what one has done another may follow."""
    disk, pieces = lost(tmp_path)
    with monkeypatch.context() as patched:
        kept(patched)
        with pytest.raises(Killed):
            restore(disk.log_dir, disk.asked(pieces[1:], 12), disk.pieces, workers=1, step=killing(6))
    with pytest.raises(OtherRestore):
        restore(disk.log_dir, disk.asked(pieces, plan_id="another"), disk.pieces)
    restore(disk.log_dir, disk.asked(pieces[1:], 12), disk.pieces)
    restore(disk.log_dir, disk.asked(pieces, plan_id="another"), disk.pieces)
    assert disk.content()[0] == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little more than what is kept free on it."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    at = tmp_path / "small"
    at.mkdir()
    size = SPARE_BYTES + 4 * 1024 * 1024
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def test_a_disk_that_fills_up_half_way_is_left_as_it_was(small_disk: Path) -> None:
    """Too small from the beginning, and filled by somebody else while segments are being fetched."""
    disk, pieces = lost(small_disk)
    before, filling = disk.state(), small_disk / "somebody-elses"

    def fill(what: str) -> None:
        if what.startswith("stage") and not filling.exists():
            with filling.open("wb") as file, contextlib.suppress(OSError):
                while True:  # until the disk has no more
                    os.write(file.fileno(), b"\0" * 4096)

    with pytest.raises(DiskTooSmall):
        restore(disk.log_dir, disk.asked(pieces), disk.pieces, workers=1, step=fill)
    assert filling.exists()
    assert (disk.state(), work_folder(disk.directory).exists()) == (before, False)
    with pytest.raises(DiskTooSmall):
        restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    filling.unlink()
    restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    assert disk.content()[0] == 0


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_copies_that_hold_the_range_put_it_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Copies cut anywhere, overlapping or not, any join: the same bytes; with a hole it is refused."""
    log = log_of(16)
    first = data.draw(st.integers(1, len(log.batches) - 1), label="first batch on disk")
    disk = Disk(folder=tmp_path_factory.mktemp("disk"), log=log, first=first).make()
    spans = st.tuples(st.integers(0, len(log.batches) - 1), st.integers(1, 8)).map(
        lambda span: (span[0], min(span[0] + span[1], len(log.batches)))
    )
    bounds = data.draw(st.lists(spans, min_size=1, max_size=8), label="copies")
    pieces, before = disk.copies(*bounds), disk.state()
    held = {batch for begin, end in bounds for batch in range(begin, end)}
    if held >= set(range(first)):
        restore(disk.log_dir, disk.asked(pieces), disk.pieces)
        assert disk.content()[0] == 0
        undo(disk.log_dir, WANTED)
    else:
        with pytest.raises(DoesNotJoin):
            restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    assert disk.state() == before


def test_a_replica_that_was_compacted_is_refused(tmp_path: Path) -> None:
    """Its broker's cleaner has an entry for it: by whatever policy now, nothing older is put before it."""
    disk, pieces = lost(tmp_path)
    entries = {TopicPartition("orders", LOG.partition): 40, TopicPartition("other", 0): 7}
    (disk.log_dir / CLEANER_OFFSETS).write_bytes(offsets_text(entries))
    before = disk.state()

    for refused in (restore, lambda log_dir, asked, _: check(log_dir, asked)):
        with pytest.raises(Cleaned, match="up to offset 40"):
            refused(disk.log_dir, disk.asked(pieces), disk.pieces)
    assert (disk.state(), work_folder(disk.directory).exists()) == (before, False)

    (disk.log_dir / CLEANER_OFFSETS).write_bytes(offsets_text({TopicPartition("other", 0): 7}))
    restore(disk.log_dir, disk.asked(pieces), disk.pieces)
    (disk.log_dir / CLEANER_OFFSETS).write_bytes(offsets_text(entries))
    undo(disk.log_dir, WANTED)  # which takes away only what was put there
    assert {name: found for name, found in disk.state().items() if name != CLEANER_OFFSETS} == {
        name: found for name, found in before.items() if name != CLEANER_OFFSETS
    }
