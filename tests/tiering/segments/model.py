"""What a table must come to, said a second time and as simply as can be: dictionaries, and sets of offsets.

It shares the records' own classes and the rules of `lifecycle` (which has its own tests) with what it
judges, and nothing else: no columns, no seals, no codec, no searching. It is slow, and looks at each offset
by itself.

`Guards` turns single rules off. A property that still holds without a rule does not test it; test_model asks
for a counterexample of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from tiering.segments.lifecycle import Refused, first_record, next_record, tombstone
from tiering.segments.lineage import epoch_at
from tiering.segments.records import Claim, LogRecord, SegmentId, SegmentRecord, SegmentState

STARTED, FINISHED, DELETING, DELETED = SegmentState
COPIES = (STARTED, FINISHED)

Content: TypeAlias = SegmentRecord | LogRecord | None  # None: a value that is no record of ours


class Said(NamedTuple):
    """A record of the topic, and what its value means."""

    offset: int
    key: bytes
    value: bytes | None
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Which rules are in force."""

    fence: bool = True  # T6: what lies behind a later claim does not count
    holes: bool = True  # T2: a hole stops the frontier
    lineage: bool = True  # T2, T6: only what is the log's counts
    gap_epochs: bool = True  # a gap is of the leaders that were, not of those to come
    races: bool = True  # a log's record is based on the last
    lifecycle: bool = True
    all_states: bool = True  # the digest takes in every state, not what is live alone
    finished_only: bool = True  # a copy that is begun is no coverage


@dataclass
class ModelSegment:
    """A segment as the model has it. `record` is None if nothing readable was ever said."""

    record: SegmentRecord | None
    standing: str
    offset: int
    shadowed: bool = False
    unreadable: bool = False


@dataclass
class Model:
    """One log."""

    guards: Guards = Guards()
    complete_from: int = 0
    segments: dict[bytes, ModelSegment] = field(default_factory=dict)
    last: dict[bytes, Said] = field(default_factory=dict)
    record: LogRecord | None = None
    record_offset: int | None = None
    claims: set[Claim] = field(default_factory=set)
    own_seen: set[int] = field(default_factory=set)
    own_shadowed: bool = False

    def take(self, said: Said) -> None:
        self.last[said.key] = said
        if len(said.key) < 60:
            self._take_log(said)
        else:
            self._take_segment(said)

    def _take_log(self, said: Said) -> None:
        record = said.content
        if said.value is None:
            deleted = self.record is not None and self.record.topic_deleted_at_ms is not None
            if deleted and not self.segments:
                self.record = self.record_offset = None
            else:
                self.own_shadowed |= self.record is not None
        elif not isinstance(record, LogRecord):
            self.own_shadowed = True
        else:
            self._take_log_record(said.offset, record)

    def _take_log_record(self, offset: int, record: LogRecord) -> None:
        highest = max((claim.epoch for claim in self.claims), default=-1)
        known = record.based_on in self.own_seen or record.based_on is None
        lost = self.record_offset is not None and record.based_on != self.record_offset and known
        self.own_seen.add(offset)
        if record.claim_epoch < highest or (lost and self.guards.races):
            self.own_shadowed = True
            return
        self.record, self.record_offset, self.own_shadowed = record, offset, False
        self.claims |= set(record.earlier_claims)
        self.claims.add(
            Claim(record.claim_epoch, offset if record.claim_offset is None else record.claim_offset)
        )
        for segment in self.segments.values():
            late = segment.record is not None and self._is_fenced(segment.offset, segment.record)
            if late and segment.standing == "FOLLOWED":
                segment.standing = "FENCED"

    def _is_fenced(self, offset: int, record: SegmentRecord) -> bool:
        if not self.guards.fence or record.state not in COPIES:
            return False
        return any(claim.epoch > record.leader_epoch and claim.offset < offset for claim in self.claims)

    def _take_segment(self, said: Said) -> None:
        before = self.segments.get(said.key)
        if said.value is None:
            self._forget(said.key, before)
        elif not isinstance(said.content, SegmentRecord):
            found = self.segments.setdefault(said.key, ModelSegment(None, "UNREADABLE", said.offset))
            found.shadowed = found.unreadable = True
        elif self._is_fenced(said.offset, said.content):
            self._set_aside(said, said.content, before, "FENCED")
        elif self.guards.lifecycle and not self._is_legal(said, said.content, before):
            self._set_aside(said, said.content, before, "REFUSED")
        else:
            self.segments[said.key] = ModelSegment(said.content, "FOLLOWED", said.offset)

    def _forget(self, key: bytes, before: ModelSegment | None) -> None:
        if before is None:
            return
        ended = before.record is not None and not isinstance(tombstone(before.record), Refused)
        if before.record is None or (ended and not before.unreadable):
            del self.segments[key]
        else:
            before.shadowed = True

    def _is_legal(self, said: Said, record: SegmentRecord, before: ModelSegment | None) -> bool:
        if before is None:
            return said.offset < self.complete_from or not isinstance(first_record(record), Refused)
        if before.record is None:
            return True
        if before.standing == "REFUSED" and record.state in COPIES:
            return not isinstance(first_record(record), Refused)
        return not isinstance(next_record(before.record, record), Refused)

    def _set_aside(
        self, said: Said, record: SegmentRecord, before: ModelSegment | None, standing: str
    ) -> None:
        if before is not None and before.standing == "FOLLOWED":
            before.shadowed = True
        else:
            self.segments[said.key] = ModelSegment(record, standing, said.offset, standing == "REFUSED")

    def digest(self) -> int:
        total = 0
        for said in self.last.values():
            state = said.content.state if isinstance(said.content, SegmentRecord) else None
            live = state == FINISHED if not self.guards.all_states and state else state != DELETED
            if said.value is not None and live:
                total += int.from_bytes(sha256(said.key + said.value).digest(), "big")
        return total % 2**256

    def finished(self) -> Iterator[SegmentRecord]:
        counting = (FINISHED,) if self.guards.finished_only else COPIES
        for segment in self.segments.values():
            if segment.standing == "FOLLOWED" and not segment.unreadable:
                assert segment.record is not None
                if segment.record.state in counting:
                    yield segment.record

    def offsets_of(self, record: SegmentRecord) -> set[int]:
        """The offsets of a copy that are the log's."""
        assert self.record is not None
        mine = range(record.base_offset, record.covered_end)
        if not self.guards.lineage:
            return set(mine)
        first = self.record.leader_epochs[0].start_offset
        same = [
            epoch_at(self.record.leader_epochs, offset) == epoch_at(record.leader_epochs, offset)
            for offset in mine
            if offset >= first
        ]
        agreeing = same.index(False) if False in same else len(same)
        if agreeing == 0 or any(same[agreeing:]):
            return set()
        return {offset for offset in mine if offset < max(first, record.base_offset) + agreeing}

    def gap_offsets(self) -> set[int]:
        assert self.record is not None
        return {
            offset
            for gap in self.record.gaps
            for offset in range(gap.start_offset, gap.end_offset)
            if not self.guards.gap_epochs
            or (epoch_at(self.record.leader_epochs, offset) or 0) <= gap.leader_epoch
        }

    def frontier(self) -> tuple[int, int] | None:
        """Where coverage begins, and the first offset that is not covered."""
        if self.record is None:
            return None
        start = max(self.record.log_start, self.record.first_tiered_offset)
        covered = set().union(self.gap_offsets(), *map(self.offsets_of, self.finished()))
        if not self.guards.holes:
            return start, max([start, *(offset + 1 for offset in covered)])
        end = start
        while end in covered:
            end += 1
        return start, end

    def readers(self, offset: int) -> set[SegmentId]:
        """Which segments may answer for an offset."""
        return {each.segment_id for each in self.finished() if offset in self.offsets_of(each)}
