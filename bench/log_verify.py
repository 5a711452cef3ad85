"""Verify 1 GiB of batches of 16 KiB: against Kafka's DumpLogSegments, and against nothing but a CRC.

DumpLogSegments checks each batch's CRC and prints a line a batch. It is measured twice: as a user runs it,
start of the interpreter or JVM included, and net of that start, which is measured in the same round on a
segment of one batch. The last peer is one call of the crc32c package over the same file in the page cache:
the least that one core could do. Against it stands what `seawall log verify` calls, in its process and those
that it forks. Both are timed inside of a process of their own, without its start.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

from bench import segments
from bench.harness import compare, run, timed
from bench.kafka_tools import dump_log_segments


def main() -> None:
    path, tiny = segments.segment("none"), segments.one_batch("none")
    compare(
        "log_verify",
        "DumpLogSegments, whole process",
        ours=lambda: _seawall(path),
        theirs=lambda: dump_log_segments(path).wall_s,
    )
    compare(
        "log_verify",
        "DumpLogSegments, net of start-up",
        ours=lambda: _seawall(path) - _seawall(tiny),
        theirs=lambda: dump_log_segments(path).wall_s - dump_log_segments(tiny).wall_s,
    )
    compare(
        "log_verify",
        "crc32c, one call",
        ours=lambda: _inside("scan", path),
        theirs=lambda: _inside("one-call", path),
        rounds=15,
    )


def _seawall(path: Path) -> float:
    return run([sys.executable, "-m", "seawall", "log", "verify", path]).wall_s


def _inside(what: str, path: Path) -> float:
    """The seconds that a new process took for it."""
    asked = [sys.executable, "-m", "bench.log_verify", what, str(path)]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # as the verb has it: nothing forks beside threads
    return float(subprocess.run(asked, check=True, stdout=subprocess.PIPE, env=env).stdout)


def _scan(path: Path) -> float:
    from tiering.log.split import is_only_thread, scan_segment_in_parts

    assert is_only_thread()
    scans = []
    took_s = timed(lambda: scans.append(scan_segment_in_parts(path)))
    assert scans[0].defect is None
    assert scans[0].valid_bytes == path.stat().st_size
    return took_s


def _one_call(path: Path) -> float:
    import crc32c

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return timed(lambda: crc32c.crc32c(mapped))


if __name__ == "__main__":
    print({"scan": _scan, "one-call": _one_call}[sys.argv[1]](Path(sys.argv[2])))  # noqa: T201 its answer
