"""`judge_on.py MASTER TABLES AS_OF_MS...`: runs of the audit on a Spark cluster, in a process of their own.

Each step is said on standard output as it begins, and the end of each run as JSON.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from audit_engine.run.one_log import canonical
from audit_engine.run.spark import AuditRun, Means
from rules.machine import Terms
from seawall.spark import spark_session

NOW_MS = 1_900_000_000_000


def main(master: str, root: str, *moments_ms: str) -> None:
    settings = {
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "700m",
        "spark.task.maxFailures": "8",
        "spark.sql.shuffle.partitions": "4",
    }
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session(Path(folder), master=master, settings=settings)
        means = Means(
            terms=Terms(),
            now_ms=lambda: NOW_MS,
            version="test",
            has_gate=False,
            at=lambda step: print(f"step {step}", flush=True),  # noqa: T201  what the test waits for
        )
        for each in moments_ms:
            summary = AuditRun(spark, root, means).next(int(each))
            told = {"content_hash": summary.content_hash, "verdicts": dict(summary.verdicts)}
            print(canonical(told), flush=True)  # noqa: T201
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
