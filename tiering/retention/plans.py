"""What is about to be done to a log's tier, in words: what a dry run prints, one line an item.

Owns the words. Refuses to decide: the act is `remote.next_act`'s, and a run does a prefix of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rules.identity import LogId
from tiering.retention.expiry import Advance
from tiering.retention.reasons import Keep
from tiering.retention.remote import Act, ForgetLog, RecordTopicGone, Remove
from tiering.segments.records import SegmentId


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The next act of one log, and what may be forgotten besides. What follows is decided when it is done."""

    log: LogId
    topic: str
    act: Act
    forgotten: tuple[SegmentId, ...] = ()

    @property
    def removes(self) -> bool:
        """Whether carrying it out takes away any object."""
        return isinstance(self.act, Remove)

    def lines(self) -> Iterator[str]:
        yield f"{self.topic}-{self.log.partition} ({self.log.topic_id}): {self._headline()}"
        match self.act:
            case Advance(freed=freed, then=then):
                for each in freed:
                    span = f"[{each.base_offset}, {each.end_offset})"
                    yield f"  frees {span} {each.size_bytes} bytes, by {each.by.value}: {each.segment_id}"
                yield f"  then: {_said(then)}"
            case Remove(copies=copies, then=then):
                for copy in copies:
                    span = f"[{copy.base_offset}, {copy.end_offset})"
                    yield f"  removes {span} {copy.size_bytes} bytes: {copy.segment_id}"
                if then is not None:
                    yield f"  then: {_said(then)}"
            case _:
                pass
        for segment_id in self.forgotten:
            yield f"  forgets {segment_id}, which nobody can put back any more"

    def _headline(self) -> str:
        match self.act:
            case Advance(old_start=old, new_start=new):
                return f"the start moves from {old} to {new}"
            case Remove(copies=copies, cause=cause):
                size_bytes = sum(copy.size_bytes for copy in copies)
                return f"{len(copies)} segments, {size_bytes} bytes go ({cause.value})"
            case RecordTopicGone():
                return "the topic's deletion is put on record"
            case ForgetLog():
                return "nothing is left of the deleted topic's log but its record, which goes"
            case Keep() as kept:
                return f"keep: {_said(kept)}"


def _said(kept: Keep) -> str:
    return f"{kept.reason.value}: {kept.detail}"
