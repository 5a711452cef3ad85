"""What keeps a hold from being placed, or from being released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rules.identity import LogId
from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class HoldError(StatedError):
    """a hold was neither placed nor released"""

    exit_code: ClassVar[int] = 63


@dataclass(kw_only=True, eq=False)
class HoldOvertaken(HoldError):
    """{log}: others wrote the log's record {attempts} times while hold {hold_id} was to be written

    Its agents are at work on it. Try again.
    """

    log: LogId
    hold_id: str
    attempts: int


@dataclass(kw_only=True, eq=False)
class NoSuchHold(HoldError):
    """no hold {hold_id} stands; `seawall hold list` shows those that do"""

    hold_id: str


@dataclass(kw_only=True, eq=False)
class NothingToHold(HoldError):
    """of {what} nothing can be held: {why}"""

    what: str
    why: str
