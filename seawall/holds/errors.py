"""What keeps a hold from binding Kafka, and a remedy from being done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tiering.holds.errors import HoldError


@dataclass(kw_only=True, eq=False)
class HoldRefused(HoldError):
    """Kafka's own retention of {topic} was neither changed nor put back: {why}"""

    topic: str
    why: str


@dataclass(kw_only=True, eq=False)
class RemedyRefused(HoldError):
    """{what} was not done: {why}"""

    exit_code: ClassVar[int] = 73

    what: str
    why: str
