"""The key that reports of restores are signed with: the operator's, or one of this host's own.

    <state dir>/report.key     made at the first restore, readable by its owner alone

Owns the file. Refuses a key that is too short to be one.
"""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

from audit_engine.alerts.signing import SECRET_PREFIX, secret_of
from backup.report import ReportUnusable

KEY_NAME = "report.key"
KEY_BYTES = 32


def report_key(given: Path | None, folder: Path) -> bytes:
    """The given file's, else the folder's own, which is made if need be."""
    path = given or folder / KEY_NAME
    if given is None and not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(
                SECRET_PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii") + "\n"
            )
    return key_in(path)


def key_in(path: Path) -> bytes:
    """The secret that a file has."""
    try:
        return secret_of(path.read_text(encoding="ascii"))
    except (ValueError, UnicodeDecodeError) as refused:
        raise ReportUnusable(path=str(path), why=f"the key must be {refused}") from None
