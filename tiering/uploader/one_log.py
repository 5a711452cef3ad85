"""One log in one pass: gathers its facts, takes its steps, one after another.

Owns how each step of `decide` is carried out, and that T1 is asked again at every step. Refuses to go on
after a failure: that ends the log's turn, and `service` says when the next one is.

Invariant: nothing is done before the table has caught up with the topic; facts are gathered fresh for every
step, and nothing is remembered from one to the next but which segments are open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rules.events import DeleteCause, EventSink, GapRecorded, LeadershipClaimed, LogEvent
from rules.identity import LogId
from tiering.cluster.gate import Eligible, LogView, NotLeader, committed_bound, may_leave
from tiering.cluster.host import LocalPartition
from tiering.cluster.interface import (
    LeaderOffsets,
    LeadershipSource,
    OffsetsSource,
    SettingsSource,
    TopicPartition,
    Unknown,
)
from tiering.log.checkpoints import EpochStart
from tiering.outcome import Inconclusive
from tiering.segments.frontier import frontier
from tiering.segments.records import Gap, LogRecord, SegmentRecord
from tiering.uploader.copy import OFF_LINEAGE, Lead, LogAttempts, Ports, copy_segment, remove_segment
from tiering.uploader.decide import (
    Abandon,
    Copy,
    FinishDelete,
    LocalRange,
    LogFacts,
    RecordGap,
    Rewrite,
    Stalled,
    Step,
    UpToDate,
    Wait,
    WriteClaim,
    next_step,
)
from tiering.uploader.errors import (
    CopyWithoutProgress,
    NotCommitted,
    NotLeading,
    SegmentChanged,
    SegmentUnfit,
)
from tiering.uploader.holder import HeldSegment, SegmentHolder, open_segment
from tiering.uploader.log_records import Writer, again, first_claim, next_claim, with_gap
from tiering.uploader.metadata import Metadata
from tiering.uploader.owed import claimed, gap_recorded, owed
from tiering.uploader.status import LogStatus, describe, standing

STEPS_MAX = 10_000  # of one log in one pass: more than segments a log can close meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Whom to ask."""

    leadership: LeadershipSource
    offsets: OffsetsSource
    settings: SettingsSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the logs of one agent share. All of it may be used from several threads.

    `was_told`: whether an earlier run of this agent has told an event, as far as anybody remembers.
    """

    cluster: Cluster
    metadata: Metadata
    holder: SegmentHolder
    ports: Callable[[Lead, LocalPartition], Ports]  # for one log
    sink: EventSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    stopping: Callable[[], bool] = lambda: False
    was_told: Callable[[LogEvent], bool] = lambda _: False


def holder_name(log: LogId) -> str:
    """What a log is called in the holder."""
    return f"{log.topic_id}:{log.partition}"


@dataclass(slots=True, kw_only=True)
class OneLog:
    """One log that this broker is said to lead, as the survey found it."""

    tools: Tools
    broker_id: int
    partition: TopicPartition
    local: LocalPartition
    status: LogStatus
    held: tuple[HeldSegment, ...]

    def advance(self) -> None:
        """Take steps until there is nothing more to do now."""
        if not self.tools.metadata.is_caught_up(self.status.log):
            self.status.state = "unknown"
            self.status.detail = "the table has not yet followed the metadata topic to where it ended"
            return
        for _ in range(STEPS_MAX):
            if self.tools.stopping():
                return
            seen = self.look()
            verdict = committed_bound(seen)
            if not isinstance(verdict, Eligible):
                self.status.state, self.status.detail = standing(verdict)
                return
            assert isinstance(seen.offsets, LeaderOffsets), "nothing is eligible without the leader's word"
            self._tell_what_is_owed()
            step = next_step(self._facts(verdict, seen.offsets))
            describe(self.status, step, self.tools.now_ms())
            if not self._take(verdict, step):
                return

    def look(self) -> LogView:
        """All that T1 goes by, asked now."""
        partition = self.partition
        return LogView(
            broker_id=self.broker_id,
            topic_id=self.local.incarnation.topic_id,
            leadership=self.tools.cluster.leadership.leadership([partition])[partition],
            offsets=self.tools.cluster.offsets.leader_offsets([partition])[partition],
            local_epoch=self.local.local_epoch,
            checkpoint_high_watermark=self.local.checkpoint_high_watermark,
        )

    def _facts(self, eligible: Eligible, offsets: LeaderOffsets) -> LogFacts:
        log, status = self.status.log, self.status
        view = self.tools.metadata.view(log)
        reached = Inconclusive("nobody has claimed it yet") if view is None else frontier(view)
        now_frontier = None if isinstance(reached, Inconclusive) else reached.offset
        local = self._local_ranges()
        self._note(status, eligible, now_frontier, local)
        segments = self.local.listing.segments
        return LogFacts(
            leader_epoch=eligible.leader_epoch,
            may_leave_below=eligible.bound,
            log_start=offsets.log_start,
            active_base=segments[-1].base_offset if segments else 0,
            local=local,
            claim_read_back=view is not None
            and view.record is not None
            and bool(view.claims)
            and view.claims[-1].epoch == eligible.leader_epoch,
            log_record=None if view is None else view.record,
            frontier=now_frontier,
            unfinished=self.tools.metadata.unfinished(log),
            shadowed=self.tools.metadata.shadowed(log),
        )

    def _note(
        self, status: LogStatus, eligible: Eligible, now_frontier: int | None, local: tuple[LocalRange, ...]
    ) -> None:
        status.leader_epoch, status.may_leave_below = eligible.leader_epoch, eligible.bound
        if now_frontier != status.frontier:
            status.frontier, status.moved_at_ms, status.stall_told = now_frontier, self.tools.now_ms(), False
        waiting = [each for each in local if now_frontier is None or each.end_offset > now_frontier]
        status.waiting_segments = len(waiting)
        status.waiting_bytes = sum(each.size_bytes for each in waiting)

    def _take(self, eligible: Eligible, step: Step) -> bool:
        """Take a step; whether there may be another one now."""
        status = self.status
        attempts = LogAttempts(
            log=status.log,
            topic=status.topic,
            broker_id=self.broker_id,
            leader_epoch=eligible.leader_epoch,
            generation=0,
            lineage=self._lineage(),
        )
        match step:
            case WriteClaim(first_tiered_offset=first):
                self._claim(attempts, self.local.epochs, first)
            case Rewrite(record=shadowed):
                self._rewrite(attempts, shadowed)
            case Abandon(record=record) | FinishDelete(record=record):
                ports = self.tools.ports(_Lead(one=self, epoch=eligible.leader_epoch), self.local)
                remove_segment(record, DeleteCause.FAILED_COPY, ports, attempts)
            case RecordGap():
                self._record_gap(attempts, step)
            case Copy(segment=segment):
                self._copy(attempts, segment)
            case Wait() | Stalled() | UpToDate():
                return False
        return True

    def _claim(self, attempts: LogAttempts, live: tuple[EpochStart, ...], first_tiered_offset: int) -> None:
        view, writer = self.tools.metadata.view(attempts.log), self._writer(attempts)
        if view is None or view.record is None:
            record = first_claim(
                attempts.log, attempts.topic, writer, live=live, first_tiered_offset=first_tiered_offset
            )
        else:
            survives = self._committed_survives()
            record = next_claim(view, writer, live=live, committed_survives=survives)
        offset = self.tools.metadata.publish_log(record)
        self._tell(claimed(record, offset))

    def _committed_survives(self) -> bool:
        """Whether the topic allows only replicas in sync to be elected: what is not known is no."""
        topic = self.partition.topic
        found = self.tools.cluster.settings.topic_settings([topic])[topic]
        return not isinstance(found, Unknown) and not found.unclean_leader_election_enable.value

    def _rewrite(self, attempts: LogAttempts, shadowed: SegmentRecord | LogRecord) -> None:
        if isinstance(shadowed, SegmentRecord):
            self.tools.metadata.publish(
                replace(shadowed, broker_id=attempts.broker_id, leader_epoch=attempts.leader_epoch)
            )
            return
        view = self.tools.metadata.view(attempts.log)
        assert view is not None
        self.tools.metadata.publish_log(again(view, self._writer(attempts)))

    def _record_gap(self, attempts: LogAttempts, step: RecordGap) -> None:
        view, writer = self.tools.metadata.view(attempts.log), self._writer(attempts)
        assert view is not None, "a gap is recorded under a claim"
        gap = Gap(
            start_offset=step.start_offset,
            end_offset=step.end_offset,
            cause=step.cause,
            leader_epoch=attempts.leader_epoch,
            event_id=writer.event_id,
            recorded_at_ms=writer.now_ms,
        )
        record = with_gap(view, writer, gap)
        self._tell(gap_recorded(record, gap, self.tools.metadata.publish_log(record)))

    def _tell(self, event: LeadershipClaimed | GapRecorded) -> None:
        self.tools.sink.emit(event)
        self.status.told_event_id = event.event_id

    def _tell_what_is_owed(self) -> None:
        """The log's record is ours, and its event may not be out: we were killed in between, or were never
        told that the record counts."""
        event = owed(self.tools.metadata.view(self.status.log), self.broker_id)
        if event is None or event.event_id == self.status.told_event_id:
            return
        if self.tools.was_told(event):
            self.status.told_event_id = event.event_id
        else:
            self._tell(event)

    def _copy(self, attempts: LogAttempts, segment: LocalRange) -> None:
        held = self._opened(segment)
        lead = _Lead(one=self, epoch=attempts.leader_epoch, end_offset=held.end_offset)
        try:
            copy_segment(attempts, held, self.tools.ports(lead, self.local), attempt=self.status.failures + 1)
        except SegmentUnfit as unfit:
            if held in self.held and (unfit.problem == OFF_LINEAGE or not self._is_listed(held)):
                # It hides the file that is the log's now, or that the log has none any more: a gap.
                self.tools.holder.forget(holder_name(self.status.log), held.base_offset)
            raise
        finally:
            if held not in self.held:
                held.close()
        self._check_progress(attempts, held)
        status = self.status
        status.copied_segments += 1
        status.copied_bytes += held.size_bytes
        self.tools.holder.release(holder_name(status.log), below=held.end_offset)
        self.held = tuple(each for each in self.held if each.end_offset > held.end_offset)

    def _is_listed(self, held: HeldSegment) -> bool:
        return any(each.base_offset == held.base_offset for each in self.local.listing.segments)

    def _check_progress(self, attempts: LogAttempts, copied: HeldSegment) -> None:
        """A committed copy moves the frontier to its end; one that does not would be made for ever (T7).

        If another leads since the commit, it is for that one's lineage to say where the frontier is.
        """
        log = self.status.log
        view = self.tools.metadata.view(log)
        reached = Inconclusive("it is gone") if view is None else frontier(view)
        offset = -1 if isinstance(reached, Inconclusive) else reached.offset
        still_ours = view is not None and view.claims[-1].epoch == attempts.leader_epoch
        if still_ours and offset < copied.end_offset:
            raise CopyWithoutProgress(
                log=log, base_offset=copied.base_offset, end_offset=copied.end_offset, frontier=offset
            )

    def _lineage(self) -> tuple[EpochStart, ...]:
        view = self.tools.metadata.view(self.status.log)
        return () if view is None or view.record is None else view.record.leader_epochs

    def _opened(self, segment: LocalRange) -> HeldSegment:
        """The held segment, or the same opened for this copy alone where the limits held no room for it."""
        for held in self.held:
            if held.base_offset == segment.base_offset:
                return held
        [listed] = [s for s in self.local.closed_segments if s.base_offset == segment.base_offset]
        opened = open_segment(listed)
        if opened is None:
            raise SegmentChanged(
                log=self.status.log, base_offset=segment.base_offset, why="it is gone, or another file by now"
            )
        return opened

    def _writer(self, attempts: LogAttempts) -> Writer:
        return Writer(
            broker_id=attempts.broker_id,
            leader_epoch=attempts.leader_epoch,
            event_id=self.tools.new_id(),
            now_ms=self.tools.now_ms(),
        )

    def _local_ranges(self) -> tuple[LocalRange, ...]:
        """Closed segments that can be read here: the held ones, and those listed that are not held."""
        known = {each.base_offset: (each.end_offset, each.size_bytes) for each in self.held}
        for listed in self.local.closed_segments:
            if listed.end_offset is not None:
                known.setdefault(listed.base_offset, (listed.end_offset, listed.size_bytes))
        return tuple(
            LocalRange(base_offset=base, end_offset=end, size_bytes=size)
            for base, (end, size) in sorted(known.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lead:
    """T1 for one copy: this broker's lead, at the epoch that the copy was begun in."""

    one: OneLog
    epoch: int
    end_offset: int | None = None

    def may_leave_below(self) -> int:
        seen = self.one.look()
        verdict = committed_bound(seen) if self.end_offset is None else may_leave(seen, self.end_offset)
        log = self.one.status.log
        if isinstance(verdict, Eligible) and verdict.leader_epoch == self.epoch:
            return verdict.bound
        if isinstance(verdict, Eligible):
            why = f"the epoch is {verdict.leader_epoch} now"
            raise NotLeading(log=log, leader_epoch=self.epoch, why=why)
        if isinstance(verdict, NotLeader):
            why = f"broker {verdict.leader_id} leads"
            raise NotLeading(log=log, leader_epoch=self.epoch, why=why)
        if isinstance(verdict, Unknown):
            raise NotLeading(log=log, leader_epoch=self.epoch, why=f"it is not known: {verdict.reason}")
        raise NotCommitted(log=log, end_offset=self.end_offset or 0, why=verdict.reason)
