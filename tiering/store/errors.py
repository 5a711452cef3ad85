"""What can come of asking an object store for something.

The class says whether another attempt is worth it (`again`); the fields say which bucket, key and operation.
An adapter translates its SDK's errors into these once. `attempts` is filled in by whoever retried.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from tiering.errors import StatedError


class Again(Enum):
    """Whether the same request may be sent once more, and how soon."""

    NEVER = "never"  # the answer would be the same
    SOON = "soon"
    LATER = "later"  # the store asks for less


@dataclass(kw_only=True, eq=False)
class StoreError(StatedError):
    """{operation} of {key!r} in bucket {bucket} failed: {why}"""

    exit_code: ClassVar[int] = 30
    again: ClassVar[Again] = Again.NEVER

    bucket: str
    key: str  # of a listing, its prefix
    operation: str
    why: str
    attempts: int = 1


@dataclass(kw_only=True, eq=False)
class Unavailable(StoreError):
    """{operation} of {key!r} in bucket {bucket}: no whole answer came ({why}; attempts: {attempts})

    The store may have done what it was asked for all the same.
    """

    again: ClassVar[Again] = Again.SOON


@dataclass(kw_only=True, eq=False)
class Transient(StoreError):
    """{operation} of {key!r} in bucket {bucket}: the store failed for now ({why}; attempts: {attempts})"""

    again: ClassVar[Again] = Again.SOON


@dataclass(kw_only=True, eq=False)
class Throttled(StoreError):
    """{operation} of {key!r} in bucket {bucket}: the store asks for less ({why}; attempts: {attempts})"""

    again: ClassVar[Again] = Again.LATER


@dataclass(kw_only=True, eq=False)
class DeadlinePassed(StoreError):
    """{operation} of {key!r} in bucket {bucket} did not end within {why} (attempts: {attempts})"""

    again: ClassVar[Again] = Again.SOON


@dataclass(kw_only=True, eq=False)
class ChecksumRefused(StoreError):
    """{operation} of {key!r} in bucket {bucket}: other bytes came than were sent ({why}; {attempts} attempts)

    The store computed another checksum than the one sent along, and kept nothing.
    """

    again: ClassVar[Again] = Again.SOON


@dataclass(kw_only=True, eq=False)
class Denied(StoreError):
    """{operation} of {key!r} in bucket {bucket} is not allowed: {why}

    Check that the credentials are the right ones, and what they allow on this prefix.
    """


@dataclass(kw_only=True, eq=False)
class Missing(StoreError):
    """{operation}: there is no {key!r} in bucket {bucket} ({why})"""


@dataclass(kw_only=True, eq=False)
class AlreadyExists(StoreError):
    """{operation}: {key!r} in bucket {bucket} is there already, and is never overwritten ({why})"""


@dataclass(kw_only=True, eq=False)
class Rejected(StoreError):
    """{operation} of {key!r} in bucket {bucket}: the store does not accept the request: {why}"""


@dataclass(kw_only=True, eq=False)
class Unsupported(StoreError):
    """{operation} of {key!r} in bucket {bucket}: the bucket or the store has no such feature: {why}"""


@dataclass(kw_only=True, eq=False)
class NotVersioned(StoreError):
    """{operation} of {key!r}: bucket {bucket} keeps no versions ({why})

    Seawall writes and deletes only where a delete can be undone. Enable versioning on the bucket.
    """


@dataclass(kw_only=True, eq=False)
class StoredDiffers(StoreError):
    """{operation} of {key!r} in bucket {bucket}: what was read back is not what was sent: {why}

    The object is not referenced by anything, and is left for `seawall tier orphans`.
    """


@dataclass(kw_only=True, eq=False)
class DefectInSegment(StoreError):
    """{key!r} was not stored in bucket {bucket}: the segment is damaged on this disk: {why}"""
