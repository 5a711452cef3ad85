"""What can be wrong with segment metadata, and with the topic that holds it.

A reader raises only these, whatever bytes it is given. That a record of the topic is not followed is no error
but a value of `tiering.segments.findings`, since nobody can keep others from writing to a topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class SegmentMetadataError(StatedError):
    """{what} cannot be used as segment metadata"""

    exit_code: ClassVar[int] = 23

    what: str


@dataclass(kw_only=True, eq=False)
class RecordMalformed(SegmentMetadataError):
    """{what}: {why}"""

    why: str


@dataclass(kw_only=True, eq=False)
class RecordTooNew(SegmentMetadataError):
    """{what} is of version {version} and asks for a reader of version {min_reader}; this one has {supported}

    Upgrade this component. Until then it must not act on the log that the record is about.
    """

    version: int
    min_reader: int
    supported: int


@dataclass(kw_only=True, eq=False)
class RecordInvalid(SegmentMetadataError):
    """{what} must not be written: {why}"""

    why: str


@dataclass(kw_only=True, eq=False)
class SegmentsTopicMissing(SegmentMetadataError):
    """there is no topic {what} in this cluster

    The first agent that may tier anything makes it (`seawall agent`). To read another cluster's, name it.
    """


@dataclass(kw_only=True, eq=False)
class SegmentsTopicUnfit(SegmentMetadataError):
    """{what} could lose or mix up what it holds: {why}

    Nothing is tiered, trimmed or deleted before that is put right.
    """

    why: str
    settings: tuple[str, ...]


@dataclass(kw_only=True, eq=False)
class SegmentsTopicSilent(SegmentMetadataError):
    """{what} could not be {act}: {why}

    Nothing follows from that. Check that the cluster is up and that this principal may describe, read and
    write the topic.
    """

    act: str
    why: str


@dataclass(kw_only=True, eq=False)
class FollowingEnded(SegmentMetadataError):
    """what is known of {what} can no longer be carried on: {why}

    Start again, with an empty table and no snapshot.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class AppendRefused(SegmentMetadataError):
    """{what} does not have the record of {key}: {why}

    It is known not to be there; it may be written again.
    """

    key: str
    why: str


@dataclass(kw_only=True, eq=False)
class AppendUncertain(SegmentMetadataError):
    """it is not known whether {what} has the record of {key}: {why}

    It may be there already, or appear yet. Look at the table before anything is done on it.
    """

    key: str
    why: str
