"""What can be wrong with bytes that should be Kafka's.

A reader raises only these, whatever it is given. `position` is the byte position in the buffer that the
reader was given; callers that know the file add its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class LogFormatError(StatedError):
    """bytes at {position} are not what Kafka writes"""

    exit_code: ClassVar[int] = 20

    position: int


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
