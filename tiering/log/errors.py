"""What can be wrong with bytes that should be Kafka's.

A reader raises only these, whatever it is given. `position` is the byte position in the buffer that the
reader was given; callers that know the file add its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class LogFormatError(StatedError):
    """bytes at {position} are not what Kafka writes"""

    exit_code: ClassVar[int] = 20

    position: int

    @classmethod
    def kind(cls) -> str:
        """The class's name as reports spell it: `entry_out_of_order`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


@dataclass(kw_only=True, eq=False)
class EndOfBuffer(LogFormatError):
    """{what} at byte {position} needs {wanted_bytes} bytes, but {left_bytes} are left"""

    what: str
    wanted_bytes: int
    left_bytes: int


@dataclass(kw_only=True, eq=False)
class Malformed(LogFormatError):
    """{what} at byte {position}: {why}"""

    what: str
    why: str


@dataclass(kw_only=True, eq=False)
class UnsupportedVersion(LogFormatError):
    """{what} at byte {position} has version {version}, and only {supported} is understood"""

    what: str
    version: int
    supported: str


@dataclass(kw_only=True, eq=False)
class TooLarge(LogFormatError):
    """{what} at byte {position} would take {claimed_bytes} bytes, over the limit of {limit_bytes}"""

    what: str
    claimed_bytes: int
    limit_bytes: int


# Of the files beside a segment: indexes, snapshots and checkpoints.


@dataclass(kw_only=True, eq=False)
class PartialEntry(LogFormatError):
    """{what} of {size_bytes} bytes: the {left_bytes} at byte {position} are no entry of {entry_bytes}"""

    what: str
    size_bytes: int
    entry_bytes: int
    left_bytes: int


@dataclass(kw_only=True, eq=False)
class EntryOutOfOrder(LogFormatError):
    """{what}, entry {entry} at byte {position}: {field} {value} does not come after {previous}

    Kafka writes these entries in rising order and searches them by halving, so that a lookup past this one
    may answer anything. Out of order in all: {count}.
    """

    what: str
    entry: int
    field: str
    value: int
    previous: int
    count: int


@dataclass(kw_only=True, eq=False)
class EntryBeyondLog(LogFormatError):
    """{what}, entry {entry} at byte {position}: {field} {value} lies outside the log, which ends at {end}

    The index is newer than its segment, or belongs to another. Entries like this in all: {count}.
    """

    what: str
    entry: int
    field: str
    value: int
    end: int
    count: int


@dataclass(kw_only=True, eq=False)
class EntriesErased(LogFormatError):
    """{what}, entry {entry} at byte {position} is all zero, and yet {count} entries that are not follow it

    Kafka pre-allocates the tail of an index with zeros; zeros before an entry are a page that never reached
    the disk, or was wiped.
    """

    what: str
    entry: int
    count: int


@dataclass(kw_only=True, eq=False)
class ChecksumMismatch(LogFormatError):
    """{what} at byte {position} says its CRC-32C is {stored:08x}, but its bytes give {computed:08x}"""

    what: str
    stored: int
    computed: int


@dataclass(kw_only=True, eq=False)
class MalformedLine(LogFormatError):
    """line {line} of {what} {why}"""

    what: str
    line: int
    why: str


@dataclass(kw_only=True, eq=False)
class RecordCountMismatch(LogFormatError):
    """the batch header says {claimed_count} records, and its bytes hold {why}"""

    claimed_count: int
    why: str


@dataclass(kw_only=True, eq=False)
class IndexTargetWrong(LogFormatError):
    """offset index, entry {entry} at byte {position} leads offset {offset} to byte {target}, and {why}"""

    entry: int
    offset: int
    target: int
    why: str
