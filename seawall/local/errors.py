"""What can go wrong with the servers that Seawall starts on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class LocalServerError(StatedError):
    """{name} failed"""

    exit_code: ClassVar[int] = 60

    name: str


@dataclass(kw_only=True, eq=False)
class ServerDied(LocalServerError):
    """{name} ended by itself with status {status}

    Its log is {log}, and ends:
    {last_lines}
    """

    exit_code: ClassVar[int] = 61

    status: int
    log: Path
    last_lines: str


@dataclass(kw_only=True, eq=False)
class ServerNotReady(LocalServerError):
    """{name} was not ready after {deadline_s} s: {wanted}

    Its log is {log}, and ends:
    {last_lines}
    """

    exit_code: ClassVar[int] = 62

    deadline_s: float
    wanted: str
    log: Path
    last_lines: str


@dataclass(kw_only=True, eq=False)
class ServerNotRunning(LocalServerError):
    """{name} is not running, so it cannot be asked to {act}"""

    exit_code: ClassVar[int] = 63

    act: str


@dataclass(kw_only=True, eq=False)
class ConditionNotMet(LocalServerError):
    """{name}: not within {deadline_s} s: {wanted}"""

    exit_code: ClassVar[int] = 64

    deadline_s: float
    wanted: str
