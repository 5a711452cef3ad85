"""What can go wrong with the servers that Seawall starts on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class LocalServerError(SeawallError):
    """{name} failed"""

    exit_code: ClassVar[int] = 14

    name: str


@dataclass(kw_only=True, eq=False)
class ServerDied(LocalServerError):
    """{name} ended by itself with status {status}

    Its log is {log}, and ends:
    {last_lines}
    """

    status: int
    log: Path
    last_lines: str


@dataclass(kw_only=True, eq=False)
class ServerNotReady(LocalServerError):
    """{name} was not ready after {deadline_s} s: {wanted}

    Its log is {log}, and ends:
    {last_lines}
    """

    deadline_s: float
    wanted: str
    log: Path
    last_lines: str


@dataclass(kw_only=True, eq=False)
class ServerNotRunning(LocalServerError):
    """{name} is not running, so it cannot be asked to {act}"""

    act: str


@dataclass(kw_only=True, eq=False)
class ConditionNotMet(LocalServerError):
    """{name}: not within {deadline_s} s: {wanted}"""

    deadline_s: float
    wanted: str


@dataclass(kw_only=True, eq=False)
class ExtraMissing(LocalServerError):
    """{name} needs {package}, which is not installed

    Run: pip install 'seawall[{extra}]'
    """

    package: str
    extra: str
