"""The declared changes in the order in which they were appended, and which of them count.

A topic takes every record that is sent to it; that two people declare at the same time cannot be kept from
happening, only from mattering. So a change names the one that it was compared with, its *base*, and counts
if and only if that one is in force when its turn comes. Of two changes with one base the first counts and the
second is passed over, by every reader alike and for ever.

Owns this fold. What cannot be read here is told from what cannot count: after a record of a newer Seawall the
policy is unknown, not unchanged, until a readable change is based on it.

Invariant: a timeline is a function of the records alone; with the same records, agents, auditors and the
command line hold the same policy to be in force at the same offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from rules.policy.declared import Policy
from rules.policy.record import Base, DeclaredChange, RecordMalformed, RecordTooNew, decode

PASSED_OVER_KEPT = 1_000  # anyone with the right to write to the topic can add more


class Reason(str, Enum):
    """Why a record does not count. The values are stable."""

    MALFORMED = "malformed"
    OTHER_CLUSTER = "other_cluster"  # a mirrored topic: it was declared for somebody else
    OVERTAKEN = "overtaken"  # its base was no longer in force


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    offset: int
    change: DeclaredChange

    @property
    def policy(self) -> Policy:
        return self.change.policy

    @property
    def as_base(self) -> Base:
        return Base(self.offset, self.policy.content_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    offset: int
    reason: Reason
    detail: str
    event_id: str | None  # where it could be read


class PolicyUnknown(Exception):
    """What is in force cannot be told; nothing may be deleted that a policy would have to allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What the records below `next_offset` come to. Of `passed_over`, the latest PASSED_OVER_KEPT."""

    cluster_id: str
    next_offset: int = 0
    applied: tuple[Applied, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    unread: tuple[tuple[int, str], ...] = ()  # offset and reason

    def follow(self, offset: int, value: bytes | None) -> Timeline:
        """With one more record. Offsets rise; they may skip, as those of transactions' markers do."""
        if offset < self.next_offset:
            raise ValueError(f"offset {offset} was followed already: {self.next_offset} is next")
        after = replace(self, next_offset=offset + 1)
        try:
            change = decode(value)
        except RecordTooNew as newer:
            return replace(after, unread=(*self.unread, (offset, str(newer))))
        except RecordMalformed as malformed:
            return after._passing_over(offset, Reason.MALFORMED, str(malformed), None)
        return after._taking(offset, change)

    def _taking(self, offset: int, change: DeclaredChange) -> Timeline:
        if change.cluster_id != self.cluster_id:
            return self._passing_over(offset, Reason.OTHER_CLUSTER, change.cluster_id, change.event_id)
        if not self._is_in_force(change.base):
            return self._passing_over(offset, Reason.OVERTAKEN, _named(change), change.event_id)
        return replace(self, applied=(*self.applied, Applied(offset=offset, change=change)))

    def _is_in_force(self, base: Base | None) -> bool:
        last = self.applied[-1] if self.applied else None
        unread = self.unread[-1][0] if self.unread else -1
        if last is None or last.offset < unread:
            # Only somebody who could read the newer record can have based a change on it.
            if unread >= 0:
                return base is not None and base.offset == unread
            return base is None
        return base == last.as_base

    def _passing_over(self, offset: int, reason: Reason, detail: str, event_id: str | None) -> Timeline:
        found = PassedOver(offset=offset, reason=reason, detail=detail, event_id=event_id)
        return replace(self, passed_over=(*self.passed_over, found)[-PASSED_OVER_KEPT:])

    def in_force(self) -> Applied | None:
        """The last change that counts; None before the first, when only defaults hold."""
        return self.at(self.next_offset - 1)

    def at(self, offset: int) -> Applied | None:
        """What was in force once the record at `offset` was there. PolicyUnknown if that cannot be told."""
        if offset >= self.next_offset:
            raise PolicyUnknown(f"read up to offset {self.next_offset} only, not {offset}")
        last = next((each for each in reversed(self.applied) if each.offset <= offset), None)
        unread = next((each for each in reversed(self.unread) if each[0] <= offset), None)
        if unread is not None and (last is None or last.offset < unread[0]):
            raise PolicyUnknown(f"the change at offset {unread[0]} is of a newer Seawall: {unread[1]}")
        return last

    def find(self, event_id: str) -> Applied | PassedOver | None:
        """What became of a change."""
        every: Iterable[Applied | PassedOver] = (*self.applied, *self.passed_over)
        return next((each for each in every if _event_id(each) == event_id), None)


def _event_id(each: Applied | PassedOver) -> str | None:
    return each.change.event_id if isinstance(each, Applied) else each.event_id


def _named(change: DeclaredChange) -> str:
    return f"{change.change_id} of {change.principal}"
