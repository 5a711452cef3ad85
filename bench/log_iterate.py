"""Read every record of 1 GiB, uncompressed and zstd: against DumpLogSegments --deep-iteration.

Both decompress and parse every record, and print a line a record to /dev/null: the same work a user asks of
them. Peak memory is that of our process.
"""

from __future__ import annotations

import sys

from bench import segments
from bench.harness import compare, run
from bench.kafka_tools import dump_log_segments


def main() -> None:
    for codec in ("none", "zstd"):
        _compare(codec)


def _compare(codec: str) -> None:
    path = segments.segment(codec)
    peaks: list[int] = []

    def ours() -> float:
        ran = run([sys.executable, "-m", "seawall", "log", "dump", "--records", path])
        peaks.append(ran.peak_bytes)
        return ran.wall_s

    compare(
        f"log_iterate_{codec}",
        "DumpLogSegments --deep-iteration",
        ours=ours,
        theirs=lambda: dump_log_segments(path, "--deep-iteration").wall_s,
        more=lambda: {"peak_memory_mib": round(max(peaks) / 2**20, 1)},
    )
