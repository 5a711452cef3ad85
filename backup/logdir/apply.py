"""The steps of a restore in one log dir, each of which may be the last; and the way back.

    stage   every file fetched, verified and written into the work folder; the log itself is not touched
    commit  files moved in, the highest offsets first and each `.log` behind its side files; then the epoch
            history; then the entry in log-start-offset-checkpoint; the journal says what, and that it is done
    undo    the same backwards

Owns the order, and the lock that is held throughout. Refuses whatever `replica`, `files` and `side_files`
refuse.

Invariant: before the first move the broker's files are untouched, and after each move they are a log that a
broker starts on: one that reaches a segment further back. Taken again after a kill, it ends in the same
directory.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from backup.catalogue.bytes import PieceBytes
from backup.logdir import journal as journals
from backup.logdir.errors import (
    DiskTooSmall,
    DoesNotJoin,
    NothingToUndo,
    OtherHistory,
    OtherRestore,
)
from backup.logdir.files import NewFile, NotCovered, new_files, size_bytes
from backup.logdir.journal import Journal, State, work_folder
from backup.logdir.lock import locked
from backup.logdir.replica import Replica, Wanted, read_replica
from backup.logdir.side_files import EpochsDisagree, epochs_text, merged_epochs, offsets_text, trimmed_epochs
from backup.logdir.stage import Likeness, Stager, sync_folder, write_whole
from backup.logdir.standing import expect_same_history, standing_epochs
from backup.plan import Piece
from tiering.log.checkpoints import (
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    EpochStart,
    TopicPartition,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tiering.segments.lineage import epoch_at
from tiering.store.aux_file import AuxContents
from workers.consumer.tasks import in_order

WORKERS = 4
SPARE_BYTES = 16 * 1024 * 1024  # what a file system needs for names, and a broker to start
_LOG_LAST = (".index", ".timeindex", ".txnindex", ".snapshot", ".log")  # the order within a segment

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What is to be put back: the plan's pieces, and the log start that the log is to have."""

    plan_id: str
    wanted: Wanted
    pieces: Sequence[Piece]
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What came of it in one log dir."""

    directory: Path
    broker_id: int
    log_start: int
    joined_at: int
    files: int
    size_bytes: int
    was_done: bool  # by an earlier run


def _nothing(_: str) -> None:
    return


def restore(
    log_dir: Path,
    asked: Restore,
    pieces: PieceBytes,
    *,
    workers: int = WORKERS,
    on_progress: Callable[[int], None] = lambda _: None,
    step: Step = _nothing,
) -> Restored:
    """Put the range back into one log dir. `step` is told before each change; tests kill there."""
    with locked(log_dir):
        replica = read_replica(log_dir, asked.wanted)
        replica.expect_never_cleaned()
        like = Likeness.of(replica.listing.segments[0].path)
        journal = journals.read(replica.path)
        if journal is not None and journal.plan_id != asked.plan_id and journal.state is not State.DONE:
            raise OtherRestore(directory=replica.path, found=journal.plan_id, expected=asked.plan_id)
        if journal is not None and journal.plan_id == asked.plan_id and journal.state is State.UNDOING:
            _undo(replica, journal, like, step)
            replica, journal = read_replica(log_dir, asked.wanted), None
        is_ours = journal is not None and journal.plan_id == asked.plan_id
        if journal is None or not is_ours or journal.state is State.STAGING:
            if journal is not None and not is_ours:
                shutil.rmtree(work_folder(replica.path))  # an earlier restore, which is done
            journal = _stage(replica, asked, pieces, like, workers, on_progress, step)
        was_done = journal.state is State.DONE
        if not was_done:
            _commit(replica, asked.wanted.partition, journal, like, step)
        return Restored(
            directory=replica.path,
            broker_id=replica.broker_id,
            log_start=journal.log_start,
            joined_at=journal.first_base,
            files=sum(1 for name in journal.files if name.endswith(".log")),
            size_bytes=sum(journal.sizes_bytes),
            was_done=was_done,
        )


def check(log_dir: Path, asked: Restore) -> tuple[NewFile, ...]:
    """Which files would be put back; raises what would refuse them, disk and copies' bytes apart.
    Read-only."""
    with locked(log_dir):
        replica = read_replica(log_dir, asked.wanted)
        replica.expect_never_cleaned()
        return _files(replica, asked)


def undo(log_dir: Path, wanted: Wanted, *, step: Step = _nothing) -> Path:
    """Put the directory back as it was. Raises NothingToUndo."""
    with locked(log_dir):
        replica = read_replica(log_dir, wanted)
        journal = journals.read(replica.path)
        if journal is None:
            if work_folder(replica.path).is_dir():  # killed before it had said anything
                shutil.rmtree(work_folder(replica.path))
                return replica.path
            raise NothingToUndo(directory=replica.path)
        like = Likeness.of(replica.listing.segments[0].path)
        _undo(replica, journal, like, step)
        return replica.path


def _files(replica: Replica, asked: Restore) -> tuple[NewFile, ...]:
    found = new_files(asked.pieces, asked.start, replica.first_base)
    if isinstance(found, NotCovered):
        why = f"no copy holds [{found.start}, {found.end})"
        raise DoesNotJoin(directory=replica.path, first=replica.first_base, why=why)
    return found


def _stage(
    replica: Replica,
    asked: Restore,
    pieces: PieceBytes,
    like: Likeness,
    workers: int,
    on_progress: Callable[[int], None],
    step: Step,
) -> Journal:
    """Everything that is to be moved in, on the disk; and the journal that says so."""
    files = _files(replica, asked)
    folder = work_folder(replica.path)
    free_bytes = _free_bytes(replica.path) + _taken_bytes(folder)
    wanted_bytes = size_bytes(files) + sum(_aux_bytes(each) for each in files) + SPARE_BYTES
    if free_bytes < wanted_bytes:
        raise DiskTooSmall(directory=replica.path, wanted_bytes=wanted_bytes, free_bytes=free_bytes)
    step("make the work folder")
    folder.mkdir(exist_ok=True)
    journal = Journal(
        plan_id=asked.plan_id, state=State.STAGING, log_start=asked.start, first_base=replica.first_base
    )
    stager = Stager(
        directory=replica.path,
        folder=folder,
        pieces=pieces,
        like=like,
        on_progress=on_progress,
    )
    with _given_up(replica, folder):
        journals.write(replica.path, journal, like)
        auxes = _Auxes(files, stager.fetch_aux)

        def stage(file: NewFile) -> None:
            step(f"stage {file.name}")
            stager.stage(file, partial(auxes.of, file))

        # Half of them read what lies beside the segments; the others begin with those, a few at most until
        # it is known that all of it fits.
        readers = max(1, workers // 2)
        fetching = [partial(auxes.fetch, files[at::readers]) for at in range(readers)]
        jobs = [*fetching, *(partial(stage, file) for file in files)]
        with closing(in_order(jobs, lambda job: job(), threads=workers)) as done:
            for _ in islice(done, readers):
                pass
            epochs = _epochs(replica, asked.pieces, files, [auxes.of(file) for file in files])
            for _ in done:
                pass
        names = _names(files, folder, replica.path)
        committing = Journal(
            plan_id=asked.plan_id,
            state=State.COMMITTING,
            log_start=asked.start,
            first_base=replica.first_base,
            files=names,
            sizes_bytes=tuple((folder / name).stat().st_size for name in names),
            epochs_before=_text(replica.path / LEADER_EPOCHS),
            epochs_after=epochs_text(epochs).decode(),
            entry_before=replica.log_starts.get(asked.wanted.partition),
            entry_after=_entry(files, asked, replica.first_base),
        )
        step("say what will be moved")
        journals.write(replica.path, committing, like)
    return committing


class _Auxes:
    """What lies beside the segments, as it comes. Once one of them did not, no other does."""

    def __init__(self, files: Sequence[NewFile], fetch: Callable[[NewFile], AuxContents]) -> None:
        self._fetch = fetch
        self._promised = {file.name: Future[AuxContents]() for file in files}
        self._failed: BaseException | None = None

    def fetch(self, files: Sequence[NewFile]) -> None:
        for file in files:
            promised = self._promised[file.name]
            if self._failed is not None:
                promised.set_exception(self._failed)
                continue
            try:
                promised.set_result(self._fetch(file))
            except BaseException as error:  # noqa: BLE001 raised where it is asked for
                self._failed = error
                promised.set_exception(error)
        if self._failed is not None:
            raise self._failed

    def of(self, file: NewFile) -> AuxContents:
        """Waits for it."""
        return self._promised[file.name].result()


@contextmanager
def _given_up(replica: Replica, folder: Path) -> Iterator[None]:
    """Where staging fails for good nothing of it is left; a kill leaves it for the next run."""
    try:
        yield
    except OSError as refused:
        shutil.rmtree(folder, ignore_errors=True)
        if refused.errno in (errno.ENOSPC, errno.EDQUOT):
            free_bytes = _free_bytes(replica.path)
            raise DiskTooSmall(
                directory=replica.path, wanted_bytes=SPARE_BYTES, free_bytes=free_bytes
            ) from refused
        raise
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _epochs(
    replica: Replica, pieces: Sequence[Piece], files: Sequence[NewFile], auxes: Sequence[AuxContents]
) -> tuple[EpochStart, ...]:
    """The history that is to stand: of the copies, of files that were to go, and of the directory, if they
    are of one log."""
    known = [*(each.leader_epochs for each in auxes), standing_epochs(replica)]
    found = merged_epochs(known, replica.epochs)
    if isinstance(found, EpochsDisagree):
        raise OtherHistory(directory=replica.path, why=found.why)
    for file in files:
        for epoch, start_offset in file.record.leader_epochs:
            if start_offset < file.end_offset and epoch_at(found, start_offset) != epoch:
                why = f"the copy at {file.base_offset} has epoch {epoch} at {start_offset}, the log another"
                raise OtherHistory(directory=replica.path, why=why)
    expect_same_history(replica, pieces, found)
    return found


def _names(files: Sequence[NewFile], folder: Path, directory: Path) -> tuple[str, ...]:
    """What is moved, the highest segment first, so that each move leaves a log without a hole."""
    names: list[str] = []
    for file in reversed(files):
        stems = [file.name] * 3 + [f"{file.end_offset:020d}", file.name]
        of_file = [f"{stem}{suffix}" for stem, suffix in zip(stems, _LOG_LAST, strict=True)]
        names += [name for name in of_file if (folder / name).exists() and not (directory / name).exists()]
    return tuple(names)


def _entry(files: Sequence[NewFile], asked: Restore, first_base: int) -> int | None:
    """The checkpoint's entry: Kafka keeps one only where the log starts inside its first segment."""
    first = files[0].base_offset if files else first_base
    return asked.start if asked.start > first else None


def _commit(
    replica: Replica, partition: TopicPartition, journal: Journal, like: Likeness, step: Step
) -> None:
    folder = work_folder(replica.path)
    for name in journal.files:
        source = folder / name
        if source.exists():
            step(f"move {name}")
            source.replace(replica.path / name)
        elif not (replica.path / name).exists():
            why = f"{name} was staged and is gone: undo, and restore again"
            raise DoesNotJoin(directory=replica.path, first=journal.first_base, why=why)
    sync_folder(replica.path)
    assert journal.epochs_after is not None
    step("put the epochs in")
    write_whole(replica.path / LEADER_EPOCHS, journal.epochs_after.encode(), like)
    sync_folder(replica.path)
    step("set the log start")
    _set_entry(replica, partition, journal.entry_after, like)
    step("say that it is done")
    journals.write(replica.path, journal.at(State.DONE), like)


def _undo(replica: Replica, journal: Journal, like: Likeness, step: Step) -> None:
    folder = work_folder(replica.path)
    partition = TopicPartition(replica.listing.name.topic, replica.listing.name.partition)
    if journal.state is not State.STAGING:
        step("say that it is being undone")
        journals.write(replica.path, journal.at(State.UNDOING), like)
        step("set the log start back")
        _set_entry(replica, partition, journal.entry_before, like)
        step("put the epochs back")
        _epochs_back(replica.path / LEADER_EPOCHS, journal, like)
        for name, was_bytes in reversed(tuple(zip(journal.files, journal.sizes_bytes, strict=True))):
            path = replica.path / name
            if path.exists() and (path.suffix != ".log" or path.stat().st_size == was_bytes):
                step(f"remove {name}")
                path.unlink()
        sync_folder(replica.path)
    step("remove the work folder")
    shutil.rmtree(folder)
    sync_folder(replica.path)


def _epochs_back(path: Path, journal: Journal, like: Likeness) -> None:
    """As they were; where brokers wrote since, what they wrote without what was put before it."""
    found = _text(path)
    if found == journal.epochs_before:
        return
    if journal.epochs_before is None and found == journal.epochs_after:
        path.unlink()
    elif found == journal.epochs_after:
        write_whole(path, (journal.epochs_before or "").encode(), like)
    elif found is not None:
        epochs = read_leader_epoch_checkpoint(found.encode()).epochs
        write_whole(path, epochs_text(trimmed_epochs(epochs, journal.first_base)), like)


def _set_entry(replica: Replica, partition: TopicPartition, offset: int | None, like: Likeness) -> None:
    """One entry of the log dir's checkpoint, the others as they stand now."""
    path = replica.log_dir / LOG_START_OFFSETS
    text = _text(path) or ""
    before = dict(read_offset_checkpoint(text.encode(), LOG_START_OFFSETS).offsets)
    if before.get(partition) == offset:
        return
    after = {named: at for named, at in before.items() if named != partition}
    if offset is not None:
        after[partition] = offset
    write_whole(path, offsets_text(after), like)
    sync_folder(replica.log_dir)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _aux_bytes(file: NewFile) -> int:
    return file.record.objects.aux.size_bytes if file.record.objects.aux is not None else 0


def _free_bytes(directory: Path) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def _taken_bytes(folder: Path) -> int:
    """What an earlier run has staged already."""
    return sum(each.stat().st_size for each in folder.iterdir()) if folder.is_dir() else 0
