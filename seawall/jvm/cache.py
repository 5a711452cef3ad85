"""The cache folder: where it is, and how two set-ups in it take turns.

<cache>/jars/<classpath>-<hash of its lock>/   the jars of one classpath, complete or absent
<cache>/jars/.lock                             held while anything is written here
<cache>/jars/.<classpath>-*/                   a fetch under way, or what a killed one left
<cache>/ivy/                                   Ivy's own cache, written only under the lock
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """SEAWALL_CACHE_DIR, else XDG_CACHE_HOME/seawall, else ~/.cache/seawall."""
    environ = os.environ if environ is None else environ
    own = environ.get("SEAWALL_CACHE_DIR")
    if own:
        return Path(own).expanduser().absolute()
    shared = environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path in these variables is to be ignored.
    root = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return root / "seawall"


@contextmanager
def exclusive(lock: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold `lock` against every other process and thread. The kernel lets go of it when the holder dies."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Closing is not enough: a process forked meanwhile holds the same lock by its own descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)  # the file stays: if it were removed, two could hold "the" lock
