"""Paper 003's demo: 1,000 records of 100 ms by key, 10 at once, against the ideal 10 s; then with kill -9.

`ratio` is ideal to measured, from the first record's start to the last one's end: 1 is perfect, and wanted is
no less than 1 / 1.02. `killed` is one more run that is killed twice on its way: records lost, those handled
again that had been finished, those that had only been begun, and the bound on both that follows from how
often it commits. A key that is overtaken ends the benchmark.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.harness import compare
from seawall.local.broker import LocalCluster
from tests.workers.consumer.killed import demo

RECORDS, WORK_S, AT_ONCE = 1_000, 0.1, 10
IDEAL_S = RECORDS * WORK_S / AT_ONCE


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="seawall-bench-") as name:
        folder = Path(name)
        with LocalCluster(folder / "broker") as broker:

            def run(kills: int) -> Any:
                return demo(broker, folder, records=RECORDS, work_s=WORK_S, at_once=AT_ONCE, kills=kills)

            def killed() -> dict[str, Any]:
                report = run(2)
                return {
                    "killed": {
                        "kills": report.kills,
                        "took_s": round(report.took_s, 2),
                        "lost": report.lost,
                        "repeated_finished": report.repeated_finished,
                        "repeated_running": report.repeated_running,
                        "repeats_bound": report.repeats_bound,
                    }
                }

            compare("workers_demo", "ideal", ours=lambda: run(0).took_s, theirs=lambda: IDEAL_S, more=killed)
