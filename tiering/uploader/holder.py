"""Keeps closed segments open until they are committed, so that nobody's unlink can take them first.

An agent beside a broker cannot stop the broker's own retention. A file whose name is gone lives on while a
descriptor is open: rename to `.deleted`, unlink and a broker's restart (which unlinks `.deleted` at load)
leave it readable here. What this costs is disk space that Kafka believes to be free, so it is bounded by
count and by bytes, and counted.

Owns the descriptors. Refuses a segment over the limits rather than growing past them: the oldest of a log
come first, as those are what retention takes first. Decides nothing about copying.

Invariant: a held segment was closed when it was opened and has not changed its size since; one that a
truncation cut off the log's end, or replaced by another file of the same name, is let go, as its bytes are no
longer the log's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from tiering.log.directory import FileKind, Segment

SIDE_KINDS = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLimits:
    """How much may be held over all logs. Descriptors are four a segment at most: mind `ulimit -n`."""

    count_max: int = 200
    bytes_max: int = 20 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSegment:
    """An open segment. `descriptors` has the `.log` as FileKind.SEGMENT, and those side files that exist."""

    base_offset: int
    end_offset: int
    size_bytes: int
    path: Path  # where it stood when it was opened
    descriptors: Mapping[FileKind, int]

    @property
    def log_descriptor(self) -> int:
        return self.descriptors[FileKind.SEGMENT]

    def is_unlinked(self) -> bool:
        """Whether its name is gone: from here on it is our descriptor that keeps its bytes on disk."""
        return os.fstat(self.log_descriptor).st_nlink == 0

    def has_changed(self) -> bool:
        return os.fstat(self.log_descriptor).st_size != self.size_bytes

    def is_still(self, path: Path) -> bool:
        """Whether the path names this very file, or nothing: a truncation may put another in its place."""
        try:
            there = path.stat()
        except FileNotFoundError:
            return True  # on its way out since it was listed
        return os.path.samestat(there, os.fstat(self.log_descriptor))

    def close(self) -> None:
        for descriptor in self.descriptors.values():
            os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldTotals:
    """For metrics. `pinned_bytes` are on disk only because we hold them."""

    count: int
    size_bytes: int
    pinned_bytes: int
    refused_count: int  # wanted by the last look at each log, and over the limits


@dataclass(slots=True)
class _Held:
    segments: dict[int, HeldSegment] = field(default_factory=dict)  # by base offset
    refused_count: int = 0


class SegmentHolder:
    """The held segments of all logs."""

    def __init__(self, limits: HoldLimits | None = None) -> None:
        self._limits = limits or HoldLimits()
        self._logs: dict[str, _Held] = {}
        self._size_bytes = 0
        self._lock = RLock()

    def keep(
        self, log: str, segments: Iterable[Segment], *, above: int | None = None
    ) -> tuple[HeldSegment, ...]:
        """Bring what is held of `log` up to date with a listing of its live segments; what is held now.

        `segments` are all that the directory lists, the active one included. `above`: the frontier, where it
        is known. What ends at or below it is committed, may stay on the disk for days, and is not held.
        """
        with self._lock:
            held = self._logs.setdefault(log, _Held())
            self._let_go_of_changed(held, sorted(segments, key=lambda segment: segment.base_offset))
            if above is not None:
                self.release(log, below=above)
            return self.keep_more(log, segments, above=above)

    def keep_more(
        self, log: str, segments: Iterable[Segment], *, above: int | None = None
    ) -> tuple[HeldSegment, ...]:
        """Open what is not held yet, and let go of nothing: some of it is being read."""
        with self._lock:
            held = self._logs.setdefault(log, _Held())
            held.refused_count = 0
            for segment in sorted(segments, key=lambda segment: segment.base_offset):
                if segment.end_offset is None or segment.base_offset in held.segments:
                    continue
                if above is not None and segment.end_offset <= above:
                    continue
                if not self._has_room(segment.size_bytes):
                    held.refused_count += 1
                    continue
                opened = open_segment(segment)
                if opened is not None:
                    held.segments[segment.base_offset] = opened
                    self._size_bytes += opened.size_bytes
            return self.held(log)

    def held(self, log: str) -> tuple[HeldSegment, ...]:
        """What is held of a log, by base offset."""
        with self._lock:
            held = self._logs.get(log, _Held())
            return tuple(held.segments[base] for base in sorted(held.segments))

    def release(self, log: str, *, below: int) -> None:
        """Let go of the segments that end at or below an offset: they are committed."""
        with self._lock:
            held = self._logs.get(log, _Held())
            for base, segment in list(held.segments.items()):
                if segment.end_offset <= below:
                    self._let_go(held, base)

    def forget(self, log: str, base_offset: int) -> None:
        """Let go of one segment: its bytes are not the log's any more. A listing may bring the file back."""
        with self._lock:
            held = self._logs.get(log, _Held())
            if base_offset in held.segments:
                self._let_go(held, base_offset)

    def drop(self, log: str) -> None:
        """Let go of a whole log: it is no longer led from here, or no longer tiered."""
        with self._lock:
            held = self._logs.pop(log, _Held())
            for base in list(held.segments):
                self._let_go(held, base)

    def totals(self) -> HoldTotals:
        with self._lock:
            every = [segment for held in self._logs.values() for segment in held.segments.values()]
            return HoldTotals(
                count=len(every),
                size_bytes=self._size_bytes,
                pinned_bytes=sum(segment.size_bytes for segment in every if segment.is_unlinked()),
                refused_count=sum(held.refused_count for held in self._logs.values()),
            )

    def close(self) -> None:
        with self._lock:
            for log in list(self._logs):
                self.drop(log)

    def _let_go_of_changed(self, held: _Held, listed: list[Segment]) -> None:
        """Keep what is listed as it was, and what went from the front; nothing that went from the end."""
        by_base = {segment.base_offset: segment for segment in listed}
        first_base = listed[0].base_offset if listed else None
        for base, segment in list(held.segments.items()):
            now = by_base.get(base)
            as_it_was = (
                now is not None
                and now.end_offset == segment.end_offset
                and not segment.has_changed()
                and segment.is_still(now.path)
            )
            from_the_front = now is None and first_base is not None and segment.end_offset <= first_base
            if not (as_it_was or from_the_front):
                self._let_go(held, base)

    def _has_room(self, size_bytes: int) -> bool:
        count = sum(len(held.segments) for held in self._logs.values())
        return count < self._limits.count_max and self._size_bytes + size_bytes <= self._limits.bytes_max

    def _let_go(self, held: _Held, base: int) -> None:
        segment = held.segments.pop(base)
        self._size_bytes -= segment.size_bytes
        segment.close()


def open_segment(segment: Segment) -> HeldSegment | None:
    """Open a closed segment and its side files; None when it went meanwhile, under any of its names."""
    assert segment.end_offset is not None, "the active segment is never held, and never copied"
    descriptors: dict[FileKind, int] = {}
    with contextlib.ExitStack() as undo:
        for kind, path in _files(segment):
            descriptor = _open_file(path)
            if descriptor is not None:
                descriptors[kind] = descriptor
                undo.callback(os.close, descriptor)
        if FileKind.SEGMENT not in descriptors:
            return None
        size_bytes = os.fstat(descriptors[FileKind.SEGMENT]).st_size
        if size_bytes != segment.size_bytes:
            return None  # not the file that was listed: the next listing will say what it is
        undo.pop_all()
    return HeldSegment(
        base_offset=segment.base_offset,
        end_offset=segment.end_offset,
        size_bytes=size_bytes,
        path=segment.path,
        descriptors=descriptors,
    )


def _files(segment: Segment) -> Iterator[tuple[FileKind, Path]]:
    yield FileKind.SEGMENT, segment.path
    for kind in SIDE_KINDS:
        yield kind, segment.side_file(kind)
    # The state of producers at a segment's end stands under the next segment's base.
    snapshot = segment.path.with_name(f"{segment.end_offset:020d}.snapshot")
    yield FileKind.PRODUCER_SNAPSHOT, snapshot


def _open_file(path: Path) -> int | None:
    """Open it, or what Kafka renamed it to on the way out.

    Only a file that lies there itself: what a link leads to could be another log's, or not ours to read.
    """
    for name in (path, path.with_name(path.name + ".deleted")):
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        except OSError as failed:
            if failed.errno == errno.ELOOP:
                continue
            raise
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    return None
