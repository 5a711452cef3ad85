"""What can be wrong before the fleet is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class TopNotInstalled(SeawallError):
    """the live view is drawn by textual, and {missing} is not installed

    Install seawall[top], or say --once for one look without it.
    """

    exit_code: ClassVar[int] = 15

    missing: str
