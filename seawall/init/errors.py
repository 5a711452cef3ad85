"""What keeps `seawall init` from writing its files. A cluster that does not answer is a ClusterError."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class InitError(SeawallError):
    """the files cannot be written to {folder}"""

    exit_code: ClassVar[int] = 60

    folder: Path


@dataclass(kw_only=True, eq=False)
class FilesExist(InitError):
    """{folder} has {files} already; nothing was overwritten

    Give another folder with --out, or --force to write over these files.
    """

    files: str


@dataclass(kw_only=True, eq=False)
class SettingsInUse(InitError):
    """{path} is the settings file of this very run, and is not overwritten, not even by --force

    It may hold what is nowhere else, such as a password. Give another folder with --out.
    """

    path: Path
