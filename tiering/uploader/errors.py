"""What can end an attempt to copy a segment. Every one of them leaves the frontier where it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rules.identity import LogId
from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class UploadError(StatedError):
    """{log}: the copy was given up"""

    exit_code: ClassVar[int] = 32

    log: LogId


@dataclass(kw_only=True, eq=False)
class NotLeading(UploadError):
    """{log}: this broker leads it no more at epoch {leader_epoch}: {why}

    Nothing is lost: the new leader's agent goes on from the same frontier.
    """

    leader_epoch: int
    why: str


@dataclass(kw_only=True, eq=False)
class NotCommitted(UploadError):
    """{log}: the segment up to {end_offset} may not leave yet: {why}"""

    end_offset: int
    why: str


@dataclass(kw_only=True, eq=False)
class NotFollowed(UploadError):
    """{log}: the metadata topic holds our {state} of segment {segment_id}, and it is not followed: {why}"""

    segment_id: str
    state: str
    why: str


@dataclass(kw_only=True, eq=False)
class SegmentUnfit(UploadError):
    """{log}: the bytes of [{base_offset}, {end_offset}) are not fit to leave the broker: {problem}: {detail}

    Each replica has a file of its own: look at theirs with `seawall log verify` before this one goes.
    """

    base_offset: int
    end_offset: int
    problem: str
    detail: str
    position: int | None


@dataclass(kw_only=True, eq=False)
class SegmentChanged(UploadError):
    """{log}: the segment at {base_offset} changed while it was read: {why}"""

    base_offset: int
    why: str


@dataclass(kw_only=True, eq=False)
class CopyWithoutProgress(UploadError):
    """{log}: the copy of [{base_offset}, {end_offset}) is committed, and the frontier is still at {frontier}

    The metadata topic has a copy that the log's own lineage or an earlier record keeps from counting. It is
    not copied again at once; `seawall tier status` shows what lies at the frontier.
    """

    base_offset: int
    end_offset: int
    frontier: int


@dataclass(kw_only=True, eq=False)
class LineageUnknown(UploadError):
    """{log}: what belongs to it cannot be told below offset {offset}: epoch {epoch} has no known start

    The broker's own history of leader epochs was cut there, the log's record in the metadata topic does not
    know the epoch, and the topic allows unclean elections: one of them may have replaced records that are in
    the tier. Either elect a replica whose `leader-epoch-checkpoint` begins below; or, if no election since
    the last claim was unclean, set unclean.leader.election.enable=false on the topic: the copy then goes on
    by itself. Nothing is copied and nothing is removed until then.
    """

    offset: int
    epoch: int


@dataclass(kw_only=True, eq=False)
class MetadataSilent(UploadError):
    """{log}: our record at offset {offset} of the metadata topic did not come back within {waited_s} s

    Whether it counts is not known. Nothing is done on it; the next look at the log will say.
    """

    offset: int
    segment_id: str
    waited_s: float
