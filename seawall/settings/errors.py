"""What can be wrong with settings. A value that could be a secret is never part of a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class SettingsError(SeawallError):
    """the settings cannot be used"""

    exit_code: ClassVar[int] = 11


@dataclass(kw_only=True, eq=False)
class SettingsUnreadable(SettingsError):
    """the settings file {path} cannot be read: {why}"""

    path: str
    why: str


@dataclass(kw_only=True, eq=False)
class SettingsRefused(SettingsError):
    """{lines}"""

    lines: str
    problems: tuple[str, ...]

    @classmethod
    def for_problems(cls, problems: tuple[str, ...]) -> SettingsRefused:
        return cls(lines="\n".join(problems), problems=problems)
