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
