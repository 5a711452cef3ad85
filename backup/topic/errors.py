"""Why a range was not replayed, or a group not moved. What was committed stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backup.errors import BackupError


@dataclass(kw_only=True, eq=False)
class ReplayError(BackupError):
    """topic {topic}: the replay did not come to its end

    Run it again: it goes on behind the last transaction that was committed.
    """

    exit_code: ClassVar[int] = 71

    topic: str


@dataclass(kw_only=True, eq=False)
class TargetUnfit(ReplayError):
    """topic {topic} cannot take the replay: {why}"""

    why: str


@dataclass(kw_only=True, eq=False)
class WriteFailed(ReplayError):
    """topic {topic}: {what} failed: {why}

    Nothing of its transaction is to be seen. Run it again: it goes on behind the last one that was committed.
    """

    what: str
    why: str


@dataclass(kw_only=True, eq=False)
class WriteRefused(WriteFailed):
    """topic {topic}: {what} is refused: {why}

    It would be refused again. Nothing of its transaction is to be seen.
    """


@dataclass(kw_only=True, eq=False)
class TakenOver(WriteFailed):
    """topic {topic}: another run of the same replay has taken over ({what}: {why})"""


@dataclass(kw_only=True, eq=False)
class GroupError(BackupError):
    """group {group} was not moved"""

    exit_code: ClassVar[int] = 72

    group: str


@dataclass(kw_only=True, eq=False)
class GroupIsActive(GroupError):
    """group {group} was not moved: it has members ({state})

    Stop its consumers: they would write over the positions, and go on from the old ones.
    """

    state: str


@dataclass(kw_only=True, eq=False)
class GroupRefused(GroupError):
    """group {group} was not moved: {why}"""

    why: str
