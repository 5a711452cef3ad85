"""Why a log directory was not restored. Of each it is true that the broker's files are as they were."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from backup.errors import BackupError


@dataclass(kw_only=True, eq=False)
class LogDirRestoreError(BackupError):
    """{directory} was not restored"""

    exit_code: ClassVar[int] = 65

    directory: Path


@dataclass(kw_only=True, eq=False)
class BrokerRuns(LogDirRestoreError):
    """{directory} belongs to a broker that is running: its lock is held

    Stop every broker that the plan names, then restore.
    """


@dataclass(kw_only=True, eq=False)
class NotCleanlyStopped(LogDirRestoreError):
    """{directory} has no .kafka_cleanshutdown: its broker was killed, or runs on another host

    Start the broker, let it recover its logs, stop it in order (SIGTERM), and restore then.
    """


@dataclass(kw_only=True, eq=False)
class ForeignDirectory(LogDirRestoreError):
    """{directory} is not what the plan is for: its {what} is {found}, and the plan's is {expected}"""

    what: str
    found: str
    expected: str


@dataclass(kw_only=True, eq=False)
class NoReplica(LogDirRestoreError):
    """{directory} holds no directory of {log}: there is nothing to put the prefix before

    A replica that is not there is copied from the leader when its broker starts.
    """

    log: str


@dataclass(kw_only=True, eq=False)
class Unreadable(LogDirRestoreError):
    """{directory} cannot be understood: {why}"""

    why: str


@dataclass(kw_only=True, eq=False)
class DoesNotJoin(LogDirRestoreError):
    """{directory} begins at offset {first}, and what can be put back does not join on: {why}

    An offline restore leaves no hole and no overlap. Restore to the tier, or to a topic.
    """

    first: int
    why: str


@dataclass(kw_only=True, eq=False)
class Cleaned(LogDirRestoreError):
    """{directory} was compacted by its broker, which cleaned it up to offset {cleaned_to}

    The tier holds no compacted log: what it has of this one is older than what the cleaner made of it, and
    would bring back records that were superseded or deleted. Restore to a topic.
    """

    cleaned_to: int


@dataclass(kw_only=True, eq=False)
class OtherHistory(LogDirRestoreError):
    """{directory} is of another history than what would be put back: {why}"""

    why: str


@dataclass(kw_only=True, eq=False)
class DiskTooSmall(LogDirRestoreError):
    """{directory} lacks room: {wanted_bytes} bytes are wanted and {free_bytes} are free"""

    wanted_bytes: int
    free_bytes: int


@dataclass(kw_only=True, eq=False)
class SegmentUnfit(LogDirRestoreError):
    """{directory}: the copy at offset {base_offset} ({key}) is not what its record says: {why}"""

    base_offset: int
    key: str
    why: str


@dataclass(kw_only=True, eq=False)
class WouldBeDeleted(LogDirRestoreError):
    """what is put back into {directory} would be deleted again: {why}

    Set the topic's retention first (--set-retention does, and says how to set it back).
    """

    why: str


@dataclass(kw_only=True, eq=False)
class OtherRestore(LogDirRestoreError):
    """{directory} holds an unfinished restore of another plan, {found}

    Finish that one, or undo it, before this one ({expected}).
    """

    found: str
    expected: str


@dataclass(kw_only=True, eq=False)
class NothingToUndo(LogDirRestoreError):
    """{directory} holds no restore that could be undone"""


@dataclass(kw_only=True, eq=False)
class NotChecked(LogDirRestoreError):
    """{directory} does not say that the range would be kept: {why}

    While the cluster is up, `seawall backup restore-logdir PLAN` asks it, and writes that file.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class ReplicaLeftOut(LogDirRestoreError):
    """{directory} was not restored: {why}"""

    why: str


@dataclass(kw_only=True, eq=False)
class NotRestoredAfterStart(LogDirRestoreError):
    """{directory}: after the start the log is not as planned: {why}"""

    why: str
