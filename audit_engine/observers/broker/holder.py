"""Who holds the lock of a broker's log dirs, and whether they have the mark of a clean stop.

Asking who holds a lock (F_GETLK) takes none: the broker does not notice. The kernel gives the holder's
process id; 0 if that is in another container's namespace, where every holder looks like the one before.

Owns the reading, read-only. Invariant: another holder is another process. The same one is the same life of
it, but for that 0: there only a broker that was seen down is known to have started again.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from audit_engine.observers.errors import SourceSilent
from tiering.log.identity_files import META_PROPERTIES

LOCK = ".lock"
MARK = ".kafka_cleanshutdown"
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid


class Sight(NamedTuple):
    """`holder` is None while nobody holds a lock: the broker does not run.

    `is_marked`: each log dir has the mark of a clean stop; None: one of them could not be looked into.
    """

    holder: str | None
    is_marked: bool | None


def look(log_dirs: Sequence[Path]) -> Sight:
    """What all log dirs of one broker tell now. Raises SourceSilent where none can be looked into."""
    there = [path for path in log_dirs if (path / META_PROPERTIES).exists()]
    if not there:
        raise SourceSilent(what=", ".join(map(str, log_dirs)), act="looked into", why="not mounted?")
    try:
        holders = [found for path in there if (found := _holder(path / LOCK)) is not None]
        marks = [(path / MARK).exists() for path in there]
    except OSError as failed:
        raise SourceSilent(
            what=str(failed.filename or LOCK), act="asked for its lock", why=failed.strerror or str(failed)
        ) from failed
    is_marked = None if all(marks) and len(there) < len(log_dirs) else all(marks)
    return Sight(holders[0] if holders else None, is_marked)


def _holder(path: Path) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None  # a clean stop takes it away
    try:
        asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        if kind == fcntl.F_UNLCK:
            return None
        return f"{_boot()}:{pid}:{_began(pid) if pid else ''}"
    finally:
        os.close(descriptor)


def _boot() -> str:
    """The host's present life: after a reboot, process ids begin anew."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _began(pid: int) -> str:
    """When that process began, in the kernel's ticks, so that a process id given again is another process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
