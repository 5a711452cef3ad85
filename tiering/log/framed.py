"""Records of many types in one log: the frame that names the type, and the count of what was not read.

    uvarint  frame version, 1
    uvarint  api key: which message this is
    uvarint  version of the message
    message  to the end of the record's value

The KRaft metadata log and KIP-405's `__remote_log_metadata` are both made of these.

Invariant: an unknown api key, or a version newer than the table, is never guessed at and never an error: it
becomes a `SkippedRecord`, to be counted. Bytes behind a message that was read are an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Protocol, TypeVar

from tiering.log import wire
from tiering.log.errors import Malformed, UnsupportedVersion
from tiering.log.schema import read_message
from tiering.log.wire import Buffer

FRAME_VERSION = 1
API_NUMBER_MAX = 2**15 - 1  # Kafka keeps api keys and versions in an int16

T = TypeVar("T")


class SkipReason(Enum):
    """Why a well-formed record was not read."""

    UNKNOWN_TYPE = "no type of this number is known"
    NEWER_VERSION = "its version is newer than this reader"
    CREDENTIALS = "it holds credentials, which are not read"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """A record that was passed over: whole, but not for this reader."""

    api_key: int
    version: int
    reason: SkipReason


class FramedMessage(Protocol):
    """A message that a frame can announce (its dataclass is its table: see `schema`)."""

    api_key: ClassVar[int]
    versions: ClassVar[range]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands before a message: its type, its version, and where it starts."""

    api_key: int
    version: int
    body_position: int


def read_frame(buffer: Buffer) -> Frame:
    """The frame at the start of a record's value."""
    frame_version, position = wire.read_uvarint(buffer, 0)
    if frame_version != FRAME_VERSION:
        raise UnsupportedVersion(
            position=0, what="record frame", version=frame_version, supported=str(FRAME_VERSION)
        )
    api_key, version_position = wire.read_uvarint(buffer, position)
    version, body_position = wire.read_uvarint(buffer, version_position)
    for what, value, at in (("api key", api_key, position), ("version", version, version_position)):
        if value > API_NUMBER_MAX:
            raise Malformed(position=at, what=what, why=f"is {value}, over {API_NUMBER_MAX}")
    return Frame(api_key=api_key, version=version, body_position=body_position)


def read_framed(
    buffer: Buffer, tables: Mapping[int, type[FramedMessage]], *, withheld: frozenset[int] = frozenset()
) -> Any | SkippedRecord:
    """The message in a frame, by its api key; `withheld` keys are known and not read."""
    frame = read_frame(buffer)
    if frame.api_key in withheld:
        return _skipped(frame, SkipReason.CREDENTIALS)
    message = tables.get(frame.api_key)
    if message is None:
        return _skipped(frame, SkipReason.UNKNOWN_TYPE)
    if frame.version not in message.versions:
        return _skipped(frame, SkipReason.NEWER_VERSION)
    return read_message(message, frame.version, buffer, frame.body_position)


def _skipped(frame: Frame, reason: SkipReason) -> SkippedRecord:
    return SkippedRecord(api_key=frame.api_key, version=frame.version, reason=reason)


@dataclass(slots=True)
class SkipTally:
    """Counts the records passed over while the others go by; nothing is dropped without a number."""

    skipped: Counter[SkippedRecord] = field(default_factory=Counter)

    def sift(self, records: Iterable[T | SkippedRecord]) -> Iterator[T]:
        for record in records:
            if isinstance(record, SkippedRecord):
                self.skipped[record] += 1
            else:
                yield record
