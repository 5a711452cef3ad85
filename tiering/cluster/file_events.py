"""Tells that files appeared, went or were renamed in log dirs: inotify of the Linux kernel, nothing else.

    struct inotify_event    int32 watch, uint32 mask, uint32 cookie, uint32 length, then the name, zero-padded

A hint and no more: `Lookout` says when to survey the log dirs again, `log_dirs` then looks at what is there.
An event that was lost, on a full queue or a directory that could not be watched, costs time until the next
rescan, which comes whether there were events or not.

Why not watchdog, the package for this: brokers run on Linux, and this needs three calls of libc. It starts
three threads and an unbounded queue of paths, where a descriptor to wait on and a yes or no are enough, and
its newest release for Python 3.10 drops the kernel's word that the queue ran over.

Owns the inotify descriptor. Watches only directory entries: IN_MODIFY would come with every produced batch.

Invariant: after `follow`, whatever appears, goes or is renamed in a followed directory makes `wait` true.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

IN_MOVED_FROM = 0x40
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
IN_DELETE = 0x200
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
IN_ONLYDIR = 0x0100_0000
IN_ISDIR = 0x4000_0000
_ENTRIES = IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ONLYDIR

_EVENT = struct.Struct("iIII")
READ_BYTES = 64 * 1024  # some thousand events; the rest stays in the kernel's queue
BURST_S = 0.05  # a roll makes four files: one survey for all of them
RESCAN_S = 5.0
RESCAN_WITHOUT_EVENTS_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotWatched:
    """A directory whose events will not come, and why: only rescans see what happens in it."""

    path: Path
    reason: str


class FileEvents:
    """One inotify descriptor. Raises OSError from the constructor where the system has none to give."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise OSError(errno.ENOSYS, "this system has no inotify")
        self._descriptor = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._roots: frozenset[int] = frozenset()
        self._watches: frozenset[int] = frozenset()

    def follow(self, log_dirs: Iterable[Path], partitions: Iterable[Path]) -> tuple[NotWatched, ...]:
        """Watch these directories, and no others. Asking again for one that is watched changes nothing."""
        refused: list[NotWatched] = []
        roots = frozenset(self._watch(path, refused) for path in log_dirs)
        wanted = roots | {self._watch(path, refused) for path in partitions}
        for gone in self._watches - wanted:
            self._libc.inotify_rm_watch(self._descriptor, gone)  # fails if its directory was removed: as well
        self._roots, self._watches = roots, wanted - {-1}
        return tuple(refused)

    def wait(self, timeout_s: float) -> bool:
        """True as soon as an entry of a followed directory came, went or changed its name."""
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        if not poller.poll(max(0, round(timeout_s * 1000))):
            return False
        try:
            return self._matters(os.read(self._descriptor, READ_BYTES))
        except BlockingIOError:
            return False

    def close(self) -> None:
        os.close(self._descriptor)

    def _watch(self, path: Path, refused: list[NotWatched]) -> int:
        # For a directory that is watched already the kernel answers with the watch it has.
        watch: int = self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), _ENTRIES)
        if watch < 0:
            number = ctypes.get_errno()
            full = number == errno.ENOSPC
            reason = "fs.inotify.max_user_watches is used up" if full else os.strerror(number)
            refused.append(NotWatched(path=path, reason=reason))
        return watch

    def _matters(self, events: bytes) -> bool:
        position, matters = 0, False
        while position < len(events):
            watch, mask, _, length = _EVENT.unpack_from(events, position)
            position += _EVENT.size + length
            # A log dir's own files are its checkpoints, renamed into place every few seconds.
            routine = mask & IN_IGNORED or (watch in self._roots and not mask & IN_ISDIR)
            matters = matters or bool(mask & IN_Q_OVERFLOW) or not routine
        return matters

    def _checked(self, answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return answer


class Look(str, Enum):
    """Why to survey the log dirs now, or that there is no need."""

    EVENT = "event"
    RESCAN = "rescan"
    NOT_YET = "not_yet"


class Lookout:
    """Says when to look: at an event, and at the latest `rescan_s` after the last look."""

    def __init__(
        self,
        events: FileEvents | None,
        *,
        monotonic_s: Callable[[], float],
        wait_s: Callable[[float], object],
        rescan_s: float | None = None,
    ) -> None:
        """`wait_s` passes time where there are no events to wait for; it may return early."""
        self._events = events
        self._monotonic_s = monotonic_s
        self._wait_s = wait_s
        by_default = RESCAN_WITHOUT_EVENTS_S if events is None else RESCAN_S
        self._rescan_s = by_default if rescan_s is None else rescan_s
        self._rescan_at_s = monotonic_s()

    def wait(self, timeout_s: float) -> Look:
        """Wait for a reason to look, for `timeout_s` at most. The first one is given at once."""
        left_s = self._rescan_at_s - self._monotonic_s()
        if left_s > 0 and self._happens(min(left_s, timeout_s)):
            self._rescan_at_s = self._monotonic_s() + self._rescan_s
            return Look.EVENT
        if self._monotonic_s() < self._rescan_at_s:
            return Look.NOT_YET
        self._rescan_at_s = self._monotonic_s() + self._rescan_s
        return Look.RESCAN

    def _happens(self, timeout_s: float) -> bool:
        if self._events is None:
            self._wait_s(timeout_s)
            return False
        happened = self._events.wait(timeout_s)
        if happened:
            last_s = self._monotonic_s() + BURST_S
            while (left_s := last_s - self._monotonic_s()) > 0 and self._events.wait(left_s):
                pass
        return happened
