"""What keeps a log's retention from being decided or carried out; each leaves the log as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rules.identity import LogId
from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class RetentionError(StatedError):
    """nothing was trimmed or expired"""

    exit_code: ClassVar[int] = 33


@dataclass(kw_only=True, eq=False)
class MetadataEndUnknown(RetentionError):
    """where partition {partition} of the metadata topic ends is not known: {why}

    Nothing is removed on the word of a table that may be behind: what it has not read may be a hold.
    """

    partition: int
    why: str


@dataclass(kw_only=True, eq=False)
class ReplicaGone(RetentionError):
    """{log}: its directory is not on this host any more, or is another topic's"""

    log: LogId
