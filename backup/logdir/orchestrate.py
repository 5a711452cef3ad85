"""A restore of every replica of a log: all stopped, all restored, the last leader started first, looked at.

On one host this does it itself, by commands that the operator gives; else `steps` says what to do on which
host, in which order.

Owns the order. Refuses to start any broker on a restore that is not whole: where one replica cannot be
restored, those that were are put back as they were, and then all are started.

Invariant: no replica is up while another is being restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from backup.catalogue.bytes import PieceBytes
from backup.logdir.apply import Restore, Restored, restore, undo
from backup.logdir.errors import (
    NoReplica,
    NothingToUndo,
    NotRestoredAfterStart,
    ReplicaLeftOut,
    Unreadable,
)
from backup.logdir.outage import Outage
from backup.logdir.replica import Wanted, broker_of
from tiering.log.checkpoints import LOG_START_OFFSETS, read_offset_checkpoint
from tiering.log.directory import read_partition_directory
from tiering.log.errors import LogFormatError

Told = Callable[[str], None]


class Brokers(Protocol):
    """The brokers of this host."""

    def stop(self, broker_id: int) -> None:
        """In order, and return when its process is gone."""

    def start(self, broker_id: int) -> None:
        """Return when it is known to be up."""


def places(log_dirs: Sequence[Path], wanted: Wanted) -> dict[int, Path]:
    """By broker, the log dir that holds the log. A broker has it in one of its log dirs."""
    found: dict[int, Path] = {}
    for log_dir in log_dirs:
        _, broker_id = broker_of(log_dir)
        if (log_dir / wanted.directory_name).is_dir():
            if broker_id in found:
                why = f"{found[broker_id]} holds {wanted.directory_name}, too: one of them is being moved"
                raise Unreadable(directory=log_dir, why=why)
            found[broker_id] = log_dir
    if not found:
        named = log_dirs[0] if log_dirs else Path()
        raise NoReplica(directory=named, log=wanted.directory_name)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """All replicas of the log, on this host."""

    asked: Restore
    outage: Outage
    log_dirs: Mapping[int, Path]
    brokers: Brokers

    def missing(self) -> tuple[int, ...]:
        return tuple(each for each in self.outage.brokers if each not in self.log_dirs)


def restore_here(
    here: Here,
    pieces: PieceBytes,
    *,
    tell: Told = lambda _: None,
    on_progress: Callable[[int], None] = lambda _: None,
    workers: int = 4,
) -> list[Restored]:
    """Stop all, restore all, start all. `on_progress` is told bytes, of each replica."""
    if missing := here.missing():
        why = f"no log dir of broker {missing[0]} was named: its replica would undo the restore"
        raise ReplicaLeftOut(directory=next(iter(here.log_dirs.values())), why=why)
    for broker_id in here.outage.stopping:
        tell(f"stopping broker {broker_id}")
        here.brokers.stop(broker_id)
    done: list[Restored] = []
    try:
        for broker_id in here.outage.brokers:
            tell(f"restoring on broker {broker_id}")
            asked = replace(here.asked, wanted=replace(here.asked.wanted, broker_id=broker_id))
            log_dir = here.log_dirs[broker_id]
            done.append(restore(log_dir, asked, pieces, workers=workers, on_progress=on_progress))
    except Exception:
        for each in done:
            tell(f"putting broker {each.broker_id}'s directory back")
            try_undo(here.log_dirs[each.broker_id], here.asked.wanted)
        _start_all(here, tell)
        raise
    _start_all(here, tell)
    return done


def _start_all(here: Here, tell: Told) -> None:
    for broker_id in here.outage.brokers:
        tell(f"starting broker {broker_id}")
        here.brokers.start(broker_id)


def try_undo(log_dir: Path, wanted: Wanted) -> bool:
    """Whether there was anything to undo."""
    try:
        undo(log_dir, replace(wanted, broker_id=None))
    except NothingToUndo:
        return False
    return True


def log_start_of(log_dir: Path, wanted: Wanted) -> int:
    """A replica's log start by its files, its broker running or not (KAFKA_FACTS 9)."""
    directory = log_dir / wanted.directory_name
    if not directory.is_dir():
        raise NoReplica(directory=log_dir, log=wanted.directory_name)
    bases = [each.base_offset for each in read_partition_directory(directory).segments]
    try:
        content = (log_dir / LOG_START_OFFSETS).read_bytes()
    except FileNotFoundError:
        content = b""
    try:
        entry = read_offset_checkpoint(content, LOG_START_OFFSETS).offsets.get(wanted.partition, 0)
    except LogFormatError as broken:
        raise Unreadable(directory=log_dir, why=str(broken)) from broken
    if not bases:
        raise Unreadable(directory=directory, why="it has no segment at all")
    return max(entry, bases[0])


def check_after(
    log_dirs: Mapping[int, Path],
    wanted: Wanted,
    start: int,
    *,
    leader_start: Callable[[], int | None],
    interval_s: float,
    pause: Callable[[float], None],
    tell: Told = lambda _: None,
) -> None:
    """Every replica's log start, twice, a retention check apart. Raises NotRestoredAfterStart.

    `leader_start` asks the leader; None: it does not answer.
    """
    for turn in (1, 2):
        for broker_id, log_dir in sorted(log_dirs.items()):
            found = log_start_of(log_dir, wanted)
            if found != start:
                why = f"on broker {broker_id} it begins at {found}, and should at {start}"
                raise NotRestoredAfterStart(directory=log_dir / wanted.directory_name, why=why)
        said = leader_start()
        if said != start:
            told = "does not answer" if said is None else f"says {said}"
            why = f"its leader {told}, and should say {start}"
            raise NotRestoredAfterStart(directory=next(iter(log_dirs.values())), why=why)
        tell(f"look {turn} of 2: the log begins at {start} on {len(log_dirs)} replicas")
        if turn == 1:
            pause(interval_s)


def steps(outage: Outage, plan: str) -> Iterator[str]:
    """What to do on which host, for replicas on several."""
    restore_it = f"seawall backup restore-logdir {plan} --log-dir DIR --confirm"
    for broker_id in outage.stopping:
        yield f"ssh HOST-OF-{broker_id} sudo systemctl stop kafka    # broker {broker_id}"
    for broker_id in outage.brokers:
        yield f"ssh HOST-OF-{broker_id} {restore_it}    # broker {broker_id}"
    yield "# only if each of them has ended with 0; else on each: the same with --undo in place of --confirm"
    for broker_id in outage.brokers:
        yield f"ssh HOST-OF-{broker_id} sudo systemctl start kafka  # broker {broker_id}, wait until it is up"
    for broker_id in outage.brokers:
        yield f"ssh HOST-OF-{broker_id} seawall backup restore-logdir {plan} --log-dir DIR --check-after"
