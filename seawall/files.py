"""Files that others read while we write them."""

from __future__ import annotations

import os
from pathlib import Path


def replace_whole(file: Path, text: str) -> None:
    """Whoever reads the file meanwhile reads the old one or the new one."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as writing:
            writing.write(text)
            writing.flush()
            os.fsync(writing.fileno())
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
