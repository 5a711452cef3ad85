"""Words that events share with what is no event: a segment's record, a plan.

They are apart so that who knows these needs to know no event: to make sixty classes of events takes 30 ms, a
tenth of a short verb.

Owns these words, as they are stored. `rules.events` has them too.
"""

from __future__ import annotations

from enum import Enum


class RestoreTarget(str, Enum):
    """Where a range was put back."""

    TIER = "tier"
    LOG_DIRECTORY = "log_directory"
    TOPIC = "topic"


class GapCause(str, Enum):
    """Why the bytes of a range are on no replica, as far as the one who recorded it could tell."""

    RETENTION_OVERTOOK = "retention_overtook"  # the broker's own retention came before the copy
    RECORDS_DELETED = "records_deleted"  # somebody's DeleteRecords went past the frontier
    SEGMENT_MISSING = "segment_missing"  # the files are gone, and nobody asked for it
    SEGMENT_CORRUPT = "segment_corrupt"  # the bytes are there, on every replica, and are not Kafka's
    UNKNOWN = "unknown"


class ScrubOutcome(str, Enum):
    """How the look at one object ended. Only `failed` says anything against it."""

    VERIFIED = "verified"
    FAILED = "failed"
    SKIPPED = "skipped"
    INCONCLUSIVE = "inconclusive"  # such as an error of the store: never "missing"


class ScrubDepth(str, Enum):
    """How closely it was looked at."""

    LISTED = "listed"  # there, in this version, of this size and checksum
    DEEP = "deep"  # each batch read
