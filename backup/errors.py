"""What can keep something from being had back. Each family has its exit code in docs/EXIT_CODES.md.

BackupError      the root
PlanUnusable     the file is no plan, or not as it was written
PlanOutdated     the world is not as it was when the plan was made
CannotRestore    as things are, the plan cannot be carried out
PieceUnreadable  bytes that should be had back are not those on record
MarkerTakenForObject  the store does not put a version back over a marker
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rules.identity import LogId
from tiering.errors import StatedError
from tiering.store.errors import AlreadyExists


class BackupError(StatedError):
    """nothing was restored"""

    exit_code: ClassVar[int] = 64


@dataclass(kw_only=True, eq=False)
class PlanUnusable(BackupError):
    """{path} is no plan that can be carried out: {why}

    A plan is carried out as it was written, or not at all. Make another with `seawall backup plan`.
    """

    exit_code: ClassVar[int] = 66

    path: str
    why: str


@dataclass(kw_only=True, eq=False)
class PlanEdited(PlanUnusable):
    """{path} is not as `seawall backup plan` wrote it: {why}

    A plan is carried out as it was written, or not at all. Make another with `seawall backup plan`.
    """


@dataclass(kw_only=True, eq=False)
class PlanOutdated(BackupError):
    """plan {plan_hash} does not fit any more: {what} {why}

    Nothing was changed. Look with `seawall backup show`, and make another plan.
    """

    exit_code: ClassVar[int] = 67

    plan_hash: str
    what: str  # bucket, log or policy
    why: str


@dataclass(kw_only=True, eq=False)
class CannotRestore(BackupError):
    """log {log.topic_id}:{log.partition} cannot be restored: {why}"""

    exit_code: ClassVar[int] = 68

    log: LogId
    why: str


@dataclass(kw_only=True, eq=False)
class NothingToRestore(CannotRestore):
    """of log {log.topic_id}:{log.partition} there is nothing to put back: {why}"""


@dataclass(kw_only=True, eq=False)
class GapInTheMiddle(CannotRestore):
    """of log {log.topic_id}:{log.partition} of what would be restored [{start}, {end}) is lost: {why}

    What lies before it could not be read over the gap. Plan it again with --pass-gaps, which puts the gap on
    record so that readers are told of it, or from offset {end} on.
    """

    start: int
    end: int


@dataclass(kw_only=True, eq=False)
class WrongCluster(CannotRestore):
    """log {log.topic_id}:{log.partition} is of cluster {planned}, and this is {found}: nothing was changed"""

    planned: str
    found: str


@dataclass(kw_only=True, eq=False)
class BucketUnfit(CannotRestore):
    """log {log.topic_id}:{log.partition} cannot be restored in bucket {bucket}: {why}"""

    bucket: str


@dataclass(kw_only=True, eq=False)
class OverlapsLive(CannotRestore):
    """log {log.topic_id}:{log.partition}: [{start}, {end}) would be written over something live: {why}"""

    start: int
    end: int


@dataclass(kw_only=True, eq=False)
class MarkerTakenForObject(AlreadyExists):
    """{operation}: {key!r} in bucket {bucket} is under a delete marker, which this store takes for an object

    It was told to put the version back only where nothing is, and refused ({why}); S3 does it over a marker,
    versitygw does not. What was put back is under markers again. Seawall never copies where a live object
    could be covered, so that nothing can be restored to the tier in this store. The versions are there: plan
    with --target topic or --target log_directory, which read them where they are.
    """


@dataclass(kw_only=True, eq=False)
class PieceUnreadable(BackupError):
    """{key}, version {version_id}, is not what is on record: {why}"""

    exit_code: ClassVar[int] = 69

    key: str
    version_id: str | None
    why: str
