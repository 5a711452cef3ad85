"""What can keep a range of a log from being read back from the tier.

Each error names the log; where an object is at fault, the segment, the object's key and version, and where
in it. A reader raises these, `StoreError` where the store cannot be asked, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rules.identity import LogId
from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class ReadBackError(StatedError):
    """log {log.topic_id}:{log.partition} cannot be read back from the tier"""

    exit_code: ClassVar[int] = 34

    log: LogId


@dataclass(kw_only=True, eq=False)
class ObjectError(ReadBackError):
    """log {log.topic_id}:{log.partition}: {key!r} (version {version_id}) of segment {segment_id} is unfit"""

    segment_id: str
    key: str
    version_id: str | None


@dataclass(kw_only=True, eq=False)
class ObjectDamaged(ObjectError):
    """log {log.topic_id}:{log.partition}, segment {segment_id}: damaged at byte {position} of {key!r}: {why}

    The bytes of version {version_id} were fetched twice, and are not those that were stored. Nothing of the
    batch was given out; whatever came before it was right.
    """

    position: int
    why: str


@dataclass(kw_only=True, eq=False)
class ObjectMissing(ObjectError):
    """log {log.topic_id}:{log.partition}, segment {segment_id}: version {version_id} of {key!r} is not there

    {why}
    """

    exit_code: ClassVar[int] = 36

    why: str


@dataclass(kw_only=True, eq=False)
class VersionUnnamed(ObjectError):
    """log {log.topic_id}:{log.partition}, segment {segment_id}: no version of {key!r} is on record

    Only a named version is read: whatever lies under the key today may be something else.
    """


@dataclass(kw_only=True, eq=False)
class SegmentGone(ReadBackError):
    """log {log.topic_id}:{log.partition}: segment {segment_id} was to be read, and {why}

    The table moved on while it was read from. Take a new view of the log and read again.
    """

    segment_id: str
    why: str


@dataclass(kw_only=True, eq=False)
class RangeNotInTier(ReadBackError):
    """log {log.topic_id}:{log.partition}: [{start}, {end}) is not in the tier, which covers [{first}, {last})

    Below, the log has been cut; at and beyond, the broker has the bytes.
    """

    exit_code: ClassVar[int] = 35

    start: int
    end: int
    first: int
    last: int


@dataclass(kw_only=True, eq=False)
class GapInRange(ReadBackError):
    """log {log.topic_id}:{log.partition}: [{start}, {end}) is lost: on record as a gap, its bytes nowhere"""

    exit_code: ClassVar[int] = 35

    start: int
    end: int
