"""The root of what the shell itself can report. Each part of it adds its own family beside its code."""

from __future__ import annotations

from typing import ClassVar

from tiering.errors import StatedError


class SeawallError(StatedError):
    """{what}"""

    exit_code: ClassVar[int] = 10
