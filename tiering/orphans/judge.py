"""What each attempt in the bucket or in the table is: referenced, in flight, an orphan, or not to be told.

    the log's table is behind, empty, unreadable, contended   kept        nobody knows enough of the log
    a hold is on its offsets                                  kept
    followed   COPY_FINISHED                                  referenced  readers may come for it
    fenced     COPY_*, behind a later claim                   orphan      it counts for no reader, ever (T6)
    followed   COPY_STARTED, of a claim below the highest     orphan      its commit would be fenced (T6)
    refused    nothing legal was ever said of it              orphan      past the grace
    followed   COPY_STARTED, of the highest claim             orphan      past the grace: see below
    followed   DELETE_STARTED                                 orphan      past the grace: the removal died
    any        DELETE_FINISHED, and something is there        orphan      past the grace: a restore puts its
                                                                          objects back before it says so
    no record  with a .json                                   unconfirmed
    no record  without one                                    orphan      past the grace
    not a key of ours                                         foreign

What is younger than its grace is in flight. Its age is that of the youngest thing known of it: an object or
an upload, dated by the store, or a record, dated by its writer. `now_ms` is the store's time.

Why an attempt of the highest claim may go at all while its uploader might still live: a removal says
DELETE_STARTED first, and behind that no commit of the attempt is followed; should the commit come first, the
removal is the one that is refused, since it names other objects (`lifecycle`). The grace spares work; no data
hangs on it.

Why an attempt without a record never was a copy: its COPY_STARTED is in the topic, read back, before its
first byte is sent; so *the listing must be older than the table* that is asked about it. A topic that was
lost and made again has no record either, of anything: there each committed copy still has its .json, and such
are reported and never removed.

Owns these verdicts. Refuses to look at a bucket or a topic; who acts on them is `clean`.

Invariant: what a table that is caught up follows as COPY_FINISHED is never an orphan, nor is anything of a
log that is doubted, held or unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from rules.identity import LogId
from tiering.orphans.listing import Attempt
from tiering.retention.facts import DOUBTS, TierFacts, facts_of
from tiering.segments.records import INT64_MAX, SegmentId, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.table import PartitionTable
from tiering.segments.view import SegmentSummary
from tiering.store.keys import ObjectKind

GRACE_MS = 24 * 3_600_000


class Verdict(str, Enum):
    """Stable, for programs."""

    REFERENCED = "referenced"
    IN_FLIGHT = "in_flight"
    ORPHAN = "orphan"
    UNCONFIRMED = "unconfirmed"
    KEPT = "kept"


class Reason(str, Enum):
    """Why it is what it is: the proof of an orphan. Stable, for programs."""

    COMMITTED = "committed"
    FENCED = "fenced"
    ABANDONED = "abandoned"
    REFUSED = "refused"
    STALLED = "stalled"
    HALF_REMOVED = "half_removed"
    REMOVED = "removed"
    UNRECORDED = "unrecorded"
    JSON_WITHOUT_RECORD = "json_without_record"
    LOG_DOUBTED = "log_doubted"
    HELD = "held"
    MISNAMED = "misnamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that a table says of one log at one moment."""

    facts: TierFacts
    segments: Mapping[SegmentId, SegmentSummary]
    said_at_ms: Mapping[SegmentId, int]  # when the record of what is not committed was written

    @property
    def doubt(self) -> str | None:
        return next((detail for doubt in DOUBTS if (detail := doubt(self.facts))), None)

    @property
    def highest_epoch(self) -> int:
        return self.facts.claim.epoch if self.facts.claim is not None else -1

    def hold_on(self, start: int, end: int) -> str | None:
        """The reason of a hold on any offset of `[start, end)`."""
        record = self.facts.record
        for hold in record.holds if record is not None else ():
            if hold.start_offset < end and (hold.end_offset is None or hold.end_offset > start):
                return f"hold {hold.hold_id}: {hold.reason}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One attempt, and what it is. `segment` is the table's word on it, if it has one."""

    attempt: Attempt
    segment: SegmentSummary | None
    verdict: Verdict
    reason: Reason
    detail: str

    @property
    def is_orphan(self) -> bool:
        return self.verdict is Verdict.ORPHAN


def known_of(log: LogId, table: PartitionTable, *, end_offset: int) -> Known:
    """What a table says of a log, given where the topic's partition ended just before."""
    view = table.view(log)
    segments = {} if view is None else {each.segment_id: each for each in view.segments()}
    records = (table.segment(log, each) for each, said in segments.items() if not _is_committed(said))
    return Known(
        facts=facts_of(log, view, applied_to=table.position, end_offset=end_offset),
        segments=segments,
        said_at_ms={each.segment_id: each.occurred_at_ms for each in records if each is not None},
    )


def judge_log(known: Known, found: Iterable[Attempt], *, now_ms: int, grace_ms: int) -> Iterator[Judged]:
    """Every attempt of one log that was found in the bucket, and those of the table that may need an end."""
    there = {each.segment_id: each for each in found}
    log = known.facts.log
    for segment in known.segments.values():
        is_over = segment.state is SegmentState.DELETE_FINISHED and segment.standing is Standing.FOLLOWED
        if segment.segment_id not in there and not is_over and not _is_committed(segment):
            there[segment.segment_id] = Attempt(
                log=log, base_offset=segment.base_offset, segment_id=segment.segment_id
            )
    for attempt in sorted(there.values(), key=lambda each: (each.base_offset, each.segment_id)):
        yield judge(known, attempt, now_ms=now_ms, grace_ms=grace_ms)


def judge(known: Known, attempt: Attempt, *, now_ms: int, grace_ms: int) -> Judged:
    """One attempt. `attempt` is from a listing that is older than the table; `now_ms` is the store's time."""
    segment = known.segments.get(attempt.segment_id)

    def judged(verdict: Verdict, reason: Reason, detail: str) -> Judged:
        return Judged(attempt=attempt, segment=segment, verdict=verdict, reason=reason, detail=detail)

    if (doubt := known.doubt) is not None:
        return judged(Verdict.KEPT, Reason.LOG_DOUBTED, doubt)
    if segment is not None and segment.base_offset != attempt.base_offset:
        detail = f"the record of this id says base offset {segment.base_offset}"
        return judged(Verdict.KEPT, Reason.MISNAMED, detail)
    if segment is not None and _is_committed(segment):
        return judged(Verdict.REFERENCED, Reason.COMMITTED, f"COPY_FINISHED at {segment.metadata_offset}")
    end_offset = segment.end_offset if segment is not None else INT64_MAX
    if (hold := known.hold_on(attempt.base_offset, end_offset)) is not None:
        return judged(Verdict.KEPT, Reason.HELD, hold)
    reason, needs_grace, detail = _cause(known, attempt, segment)
    if reason is Reason.JSON_WITHOUT_RECORD:
        return judged(Verdict.UNCONFIRMED, reason, detail)
    age_ms = now_ms - _youngest_ms(known, attempt)
    if needs_grace and age_ms < grace_ms:
        return judged(Verdict.IN_FLIGHT, reason, f"{detail}; {max(age_ms, 0) // 1000} s old")
    return judged(Verdict.ORPHAN, reason, detail)


def _is_committed(segment: SegmentSummary) -> bool:
    return segment.standing is Standing.FOLLOWED and segment.state is SegmentState.COPY_FINISHED


def _cause(known: Known, attempt: Attempt, segment: SegmentSummary | None) -> tuple[Reason, bool, str]:
    """Why it counts for nothing, whether that needs a grace, and the proof in words."""
    if segment is None:
        if attempt.has(ObjectKind.JSON):
            detail = "its .json says that it was whole, and the topic has no record of it"
            return Reason.JSON_WITHOUT_RECORD, True, detail
        detail = "the topic has no record of it, and without a .json it never was whole"
        return Reason.UNRECORDED, True, detail
    highest = known.highest_epoch
    said = f"{segment.state.value} of epoch {segment.leader_epoch} at {segment.metadata_offset}"
    if segment.state is SegmentState.DELETE_FINISHED:
        return Reason.REMOVED, True, f"{said}, and something is there again"
    if segment.state is SegmentState.DELETE_STARTED:
        return Reason.HALF_REMOVED, True, f"{said}, never finished"
    if segment.standing is Standing.FENCED:
        return Reason.FENCED, False, f"{said}, behind a claim of a later epoch: it counts for no reader"
    if segment.standing is Standing.REFUSED:
        return Reason.REFUSED, True, f"{said} is not followed"
    if segment.leader_epoch < highest:
        detail = f"{said}; epoch {highest} has claimed the log: its commit would be fenced"
        return Reason.ABANDONED, False, detail
    return Reason.STALLED, True, f"{said}, never finished"


def _youngest_ms(known: Known, attempt: Attempt) -> int:
    moments = (attempt.touched_ms, known.said_at_ms.get(attempt.segment_id))
    return max(moment for moment in moments if moment is not None)
