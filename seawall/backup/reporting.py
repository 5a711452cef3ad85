"""Writes the signed report of a restore.

Owns which key it is signed with: the operator's, else this host's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backup.report import signed
from seawall.backup.keys import report_key
from seawall.cli.backup.options import BACKUP
from seawall.tier.scrub import state_folder


def write_report(
    file: Path, members: Mapping[str, Any], sign_with: Path | None, state_dir: Path | None
) -> None:
    """All of it, where the operator wants it."""
    folder = state_folder(state_dir, members["cluster_id"], os.environ, BACKUP)
    file.write_text(signed(members, report_key(sign_with, folder)), encoding="ascii")
