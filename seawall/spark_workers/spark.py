"""The process that Python workers are forks of: `python -m seawall.spark_workers.spark pyspark.worker`.

Spark puts its own pyspark before all else, as a zip, and a jar of thousands of classes. Each task has Python
look anew at what may have changed of what can be imported, and their tables of contents are then read again,
the zip's once for each of its packages: 130 ms of processor before the first row. The pyspark that is
installed here is the same.

And what is imported before the fork is neither imported by each worker, nor looked through by the collector
behind each task.

A worker whose task was ended, as Spark has all that it asked for, finds nobody to write to: it ends without
the traceback that would stand among what a verb says.

Owns the paths that workers import from. Changes nothing of what a worker does for its task.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path[:] = [each for each in sys.path if not _is_of_spark(each)]
    for each in [*filter(_is_of_spark, sys.path_importer_cache)]:
        del sys.path_importer_cache[each]
    from pyspark import daemon

    import audit_engine.run.groups.spark  # noqa: F401  # what nearly all of our tasks run

    gc.collect()
    gc.freeze()
    daemon.worker = _while_listened_to(daemon.worker)
    daemon.manager()  # type: ignore[no-untyped-call]


def _while_listened_to(work: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """The same for as long as somebody is at the other end."""

    def worker(socket: Any, authenticated: bool) -> int:
        try:
            return work(socket, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1  # not to be used again

    return worker


def _is_of_spark(path: str) -> bool:
    name = Path(path).name
    return name == "pyspark.zip" or name.endswith((".jar", "-src.zip"))


if __name__ == "__main__":
    main()
