"""What was so at one moment of a log whose whole truth is known: what the judge of `expiry_model` goes by."""

from __future__ import annotations

from dataclasses import dataclass

from tiering.retention.remote import Presence
from tiering.retention.remote_policy import RemotePolicy
from tiering.segments.records import SegmentState

LOG_END = 80
FORK = 40  # from here on a copy of the other lineage has other records
OFFSET_BYTES = tuple(10 + offset * 7 % 11 for offset in range(LOG_END))
Range = tuple[int, int | None]


class Violated(AssertionError):
    """An act that the truth does not allow."""


def check(is_so: bool, wrong: str) -> None:
    if not is_so:
        raise Violated(wrong)


def bytes_of(start: int, end: int) -> int:
    return sum(OFFSET_BYTES[start:end])


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What was so at one moment."""

    holds: tuple[Range, ...]
    keep_until_ms: int | None
    is_led_by_us: bool
    states: dict[str, SegmentState]  # of what is followed
    settled_start: int  # the lowest that the start has been for a grace
    topic_deleted_at_ms: int | None
    pinned: frozenset[str]
    policy: RemotePolicy
    topic: Presence

    def is_held(self, start: int, end: int) -> bool:
        return any(a < end and (b is None or b > start) for a, b in self.holds)
