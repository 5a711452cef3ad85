"""Scans one large segment in parts, a process each, where that gives exactly what one scan gives.

Bringing a segment from the page cache costs more than its CRCs, and the interpreter's lock keeps threads from
sharing the rest. So the file is cut where a batch seems to begin: a guess, by a header whose CRC fits. The
guess is proven by the part before it, which must end, whole and clean, at that very byte.

Owns the cut, the proof at each seam and the sum of clean parts. Refuses everything else: a defect in any
part, a seam that does not hold, a process that was killed or could not be started all lead to one scan from
the beginning, which alone says what is wrong and where. Refuses to fork beside any other thread of this
process.

Invariant: what is returned equals `scan_segment`, or is `scan_segment`.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from tiering.log.batch import HEADER_BYTES, read_header
from tiering.log.defects import find_next_batch
from tiering.log.segment import (
    HOLES_KEPT_MAX,
    OFFSETS_MAX,
    Compaction,
    Depth,
    Progress,
    SegmentScan,
    base_offset_of,
    rereading,
    scan_segment,
    scan_steps,
)
from tiering.log.windows import read_windows

PART_BYTES_MIN = 32 * 1024 * 1024  # read in a few times the time that a process takes to start
PARTS_MAX = 4  # by then memory is what is waited for
PART_WINDOW_BYTES = 512 * 1024  # half of a core's cache: nothing is read ahead, so nothing else is in it
SEAM_LOOKS_BYTES = (128 * 1024, 4 * 1024 * 1024)  # some batches of 16 KiB; some of a broker's largest

_TASKS = Path("/proc/self/task")

Work: TypeAlias = Callable[[], SegmentScan]
Run: TypeAlias = Callable[[Sequence[Work]], "list[SegmentScan] | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """Where a batch seems to begin, and at which offset."""

    position: int
    offset: int


def scan_segment_in_parts(
    path: Path,
    *,
    depth: Depth = Depth.BATCHES,
    compaction: Compaction = Compaction.NEVER,
    limit_offset: int | None = None,
    on_progress: Progress = lambda _: None,
) -> SegmentScan:
    """`scan_segment`, by several processes where the segment is large and this process has one thread."""
    told_bytes = 0

    def tell(step_bytes: int) -> None:
        nonlocal told_bytes
        told_bytes += step_bytes
        on_progress(step_bytes)

    parts = min(len(os.sched_getaffinity(0)), PARTS_MAX) if is_only_thread() else 1
    if parts > 1:
        found = scan_parts(
            path,
            parts=parts,
            run=run_forked,
            depth=depth,
            compaction=compaction,
            limit_offset=limit_offset,
            part_bytes_min=PART_BYTES_MIN,
            on_progress=tell,
        )
        if found is not None:
            on_progress(found.valid_bytes - told_bytes)
            return found

    def tell_rest(step_bytes: int) -> None:  # what the parts told is not told twice
        nonlocal told_bytes
        skipped_bytes = min(told_bytes, step_bytes)
        told_bytes -= skipped_bytes
        on_progress(step_bytes - skipped_bytes)

    return scan_segment(
        path, depth=depth, compaction=compaction, limit_offset=limit_offset, on_progress=tell_rest
    )


def scan_parts(
    path: Path,
    *,
    parts: int,
    run: Run,
    depth: Depth = Depth.BATCHES,
    compaction: Compaction = Compaction.NEVER,
    limit_offset: int | None = None,
    part_bytes_min: int,
    on_progress: Progress = lambda _: None,
) -> SegmentScan | None:
    """The sum of clean parts that are proven to be the whole; None where one scan must tell.

    `on_progress` is told of the first part, which this process is taken to read itself.
    """
    base_offset = base_offset_of(path.name)
    limit = base_offset + OFFSETS_MAX if limit_offset is None else limit_offset
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size_bytes = os.fstat(descriptor).st_size
        seams = find_seams(descriptor, size_bytes, parts=min(parts, size_bytes // part_bytes_min))
        if not seams:
            return None

        def part(begin: Seam, end: int) -> Work:
            def work() -> SegmentScan:
                return scan_steps(
                    read_windows(
                        descriptor,
                        start=begin.position,
                        end=end,
                        window_bytes=PART_WINDOW_BYTES,
                        readers=0,
                    ),
                    size_bytes=size_bytes,
                    reread=rereading(descriptor),
                    base_offset=begin.offset,
                    depth=depth,
                    compaction=compaction,
                    limit_offset=limit,
                    on_progress=on_progress if begin.position == 0 else lambda _: None,
                )

            return work

        begins = [Seam(position=0, offset=base_offset), *seams]
        ends = [seam.position for seam in seams] + [size_bytes]
        scans = run([part(begin, end) for begin, end in zip(begins, ends, strict=True)])
    finally:
        os.close(descriptor)
    if scans is None:
        return None
    return joined(scans, ends, may_have_holes=compaction is Compaction.POSSIBLE)


def find_seams(descriptor: int, size_bytes: int, *, parts: int) -> list[Seam]:
    """Where to cut into about equal parts: past each even cut, where the next batch seems to begin."""
    seams: list[Seam] = []
    for number in range(1, parts):
        about = max(
            size_bytes * number // parts - HEADER_BYTES, 0
        )  # the first batch of `head` is passed over
        for looked_bytes in SEAM_LOOKS_BYTES:
            head = os.pread(descriptor, looked_bytes, about)
            at = find_next_batch(head)
            if at is not None:
                if seams and about + at <= seams[-1].position:
                    break
                seams.append(Seam(position=about + at, offset=read_header(head, at).base_offset))
                break
    return seams


def joined(scans: Sequence[SegmentScan], ends: Sequence[int], *, may_have_holes: bool) -> SegmentScan | None:
    """What one scan would have said, of parts without a defect that end where they should; else None."""
    if any(scan.defect is not None or scan.valid_bytes != end for scan, end in zip(scans, ends, strict=True)):
        return None
    for before, after in pairwise(scans):
        if after.first_offset is None or after.first_offset < before.data_end:
            return None
        if after.first_offset != after.base_offset:  # the file has changed since it was cut
            return None
        if after.first_offset > before.data_end and not may_have_holes:
            return None
        if _first_epoch(after) < _last_epoch(before):
            return None
    whole, *rest = scans
    for scan in rest:
        assert scan.first_offset is not None
        if scan.first_offset > whole.data_end:
            whole.missing_offsets += scan.first_offset - whole.data_end
            whole.holes.append((whole.data_end, scan.first_offset))
        last_epoch = _last_epoch(whole)
        whole.epochs += [start for start in scan.epochs if start[0] != last_epoch]
        whole.holes = [*whole.holes, *scan.holes][:HOLES_KEPT_MAX]
        whole.missing_offsets += scan.missing_offsets
        whole.batch_count += scan.batch_count
        whole.record_count += scan.record_count
        whole.control_batch_count += scan.control_batch_count
        whole.transactional_batch_count += scan.transactional_batch_count
        whole.max_timestamp_ms = max(whole.max_timestamp_ms, scan.max_timestamp_ms)
        for codec, batches in scan.codecs.items():
            whole.codecs[codec] = whole.codecs.get(codec, 0) + batches
        whole.data_end, whole.valid_bytes = scan.data_end, scan.valid_bytes
    return whole


def _first_epoch(scan: SegmentScan) -> int:
    starts_there = scan.epochs and scan.epochs[0][1] == scan.first_offset
    return scan.epochs[0][0] if starts_there else -1


def _last_epoch(scan: SegmentScan) -> int:
    return scan.epochs[-1][0] if scan.epochs else -1


def is_only_thread() -> bool:
    """Whether this process is sure to have one thread, native ones counted: only then a fork is safe."""
    try:
        return len(list(_TASKS.iterdir())) == 1
    except OSError:  # no Linux, or no /proc
        return False


def run_forked(works: Sequence[Work]) -> list[SegmentScan] | None:
    """The first here, each other in a process of its own; None where one of them did not come to its end."""
    own, *others = works
    children: list[_Child] = []
    try:
        for work in others:
            children.append(_Child(work))
        scans = [own()]
        for child in children:
            scan = child.result() if scans[-1].defect is None else None
            if scan is None:
                return None
            scans.append(scan)
    except OSError:  # no process to be had, or no pipe
        return None
    finally:
        for child in children:
            child.end()
    return scans


class _Child:
    """A process that does one piece of work and says what came of it, whole or not at all."""

    def __init__(self, work: Work) -> None:
        self._results, answer = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self._results)
            os.close(answer)
            raise
        if self.pid == 0:
            _work_and_exit(work, answer)
        os.close(answer)
        self._has_ended = False

    def result(self) -> SegmentScan | None:
        """What it found; None where it was killed or failed."""
        said = bytearray()
        while step := os.read(self._results, 65536):
            said += step
        _, status = os.waitpid(self.pid, 0)
        self._has_ended = True
        if os.waitstatus_to_exitcode(status) != 0 or not said:
            return None
        found: SegmentScan = pickle.loads(said)
        return found

    def end(self) -> None:
        """It is not there any more after this."""
        os.close(self._results)
        if not self._has_ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _work_and_exit(work: Work, answer: int) -> None:
    """Never returns: what the parent has open, buffered or registered at its exit is the parent's alone."""
    status = 1
    try:
        said = pickle.dumps(work())
        while said:
            said = said[os.write(answer, said) :]
        status = 0
    finally:
        os._exit(status)
