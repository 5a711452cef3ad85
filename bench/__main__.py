"""`python -m bench [NAME ...]`: run all benchmarks, or those named."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench

NOT_BENCHMARKS = {
    "__main__",
    "audit_evidence",
    "fresh",
    "harness",
    "kafka_tools",
    "parallel_consumer_jars",
    "scaler_model",
    "scaler_record",
    "segments",
}


def main(names: list[str]) -> None:
    known = sorted({m.name for m in pkgutil.iter_modules(bench.__path__)} - NOT_BENCHMARKS)
    unknown = sorted(set(names) - set(known))
    if unknown:
        sys.exit(f"bench: no benchmark {', '.join(unknown)}; there are: {', '.join(known)}")
    for name in names or known:
        importlib.import_module(f"bench.{name}").main()


main(sys.argv[1:])
