"""Verify 1 GiB of batches of 16 KiB: against Kafka's DumpLogSegments, and against nothing but a CRC.

DumpLogSegments checks each batch's CRC and prints a line a batch. It is measured twice: as a user runs it,
start of the interpreter or JVM included, and net of that start, which is measured in the same round on a
segment of one batch. The last peer is one call of the crc32c package over the same file in the page cache:
the least that any verification could do.
"""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import crc32c

from bench import segments
from bench.harness import compare, run, timed
from bench.kafka_tools import dump_log_segments
from tiering.log.segment import scan_segment


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
        ours=lambda: timed(lambda: _scan(path)),
        theirs=lambda: timed(lambda: _one_call(path)),
        rounds=15,
    )


def _seawall(path: Path) -> float:
    return run([sys.executable, "-m", "seawall", "log", "verify", path]).wall_s


def _scan(path: Path) -> None:
    scan = scan_segment(path)
    assert scan.defect is None
    assert scan.valid_bytes == path.stat().st_size


def _one_call(path: Path) -> None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        crc32c.crc32c(mapped)
