"""Reads policy.toml. Whatever is wrong with it is told with the file's name, all of it at once."""

from __future__ import annotations

import sys
from pathlib import Path

from rules.policy import Policy, PolicyRefused, read_policy
from seawall.policy.errors import PolicyFileRefused, PolicyFileUnreadable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]  # mypy runs on newer ones too

# A table for each of 20,000 topics is 5 MB.
FILE_BYTES_MAX = 64 * 2**20


def read_file(path: Path) -> Policy:
    """PolicyFileUnreadable if it is no TOML at all, PolicyFileRefused if it is no policy."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes > FILE_BYTES_MAX:
            raise PolicyFileUnreadable(path=path, why=f"{size_bytes} bytes are more than {FILE_BYTES_MAX}")
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else None
        raise PolicyFileUnreadable(path=path, why=why or str(failure)) from failure
    try:
        return read_policy(tree)
    except PolicyRefused as refused:
        raise PolicyFileRefused.for_refusal(path, refused) from refused
