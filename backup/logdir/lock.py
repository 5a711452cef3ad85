"""The lock of a log dir, as Kafka takes it: fcntl's record lock on `.lock`.

`flock` succeeds while a broker runs, and that the file exists proves nothing: both measured (KAFKA_FACTS 20).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backup.logdir.errors import BrokerRuns

LOCK = ".lock"


@contextmanager
def locked(log_dir: Path) -> Iterator[None]:
    """Hold the log dir: no broker starts on it meanwhile. Raises BrokerRuns.

    The file is left, as Kafka leaves its own at a kill. Removing it would free a name that another may hold.
    """
    descriptor = os.open(log_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise BrokerRuns(directory=log_dir) from None
        yield
    finally:
        os.close(descriptor)
