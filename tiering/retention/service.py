"""Expires what the tier keeps of every log that this broker leads, and of topics that are gone.

    a log led here          its acts, one after another, until there is nothing to do now
    a deleted topic's log   the same, by the agent beside the leader of the metadata partition that it is in:
                            nobody leads the log itself any more, and one agent at it is enough
    any other               left to whoever leads it

Owns the runs, the limits that are for all logs together, and what is remembered of each log between runs. The
decisions are `remote`'s, the order within an act is `expire`'s. One log after another: nothing is gained by
removing fast. Refuses to run beside itself: one thread calls `run_once`.

Invariant (T7): whatever a log's turn runs into ends at its edge as a status and a back-off; the next log's
turn comes all the same. A log whose facts are not known is kept, and said to be so. The blast limit counts
what went within the hour before a restart, too: that is read from the table.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from rules.events import EventSink
from rules.identity import LogId
from rules.policy.topic import TopicPolicy
from tiering.cluster.host import HostSurvey, LocalPartition
from tiering.cluster.interface import (
    Cause,
    Leadership,
    LeadershipSource,
    TopicPartition,
    Unknown,
)
from tiering.errors import StatedError
from tiering.retention.expire import Objects, Ports, Run, dry_run, expire, forget
from tiering.retention.expiry import Advance
from tiering.retention.facts import TierCopy
from tiering.retention.forgetting import to_forget
from tiering.retention.plans import Planned
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import OFF, ForgetLog, Presence, RecordTopicGone, Remove, Situation
from tiering.retention.remote_policy import HOUR_MS, BlastLedger, remote_policy
from tiering.retention.table_end import ReadToEnd
from tiering.retention.topic_watch import TopicWatch
from tiering.retention.unique_bytes import Extent
from tiering.segments.keys import log_key, metadata_partition, segment_key
from tiering.segments.records import LogRecord, SegmentId, SegmentRecord

NO_EPOCH = -1  # of no claim: a log is kept that is not known to be led here


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """`acts_max`: of one log in one run; more than that are left to the next."""

    acts_max: int = 16
    backoff_first_ms: int = 10_000
    backoff_max_ms: int = 600_000


@dataclass(slots=True, kw_only=True)
class RetentionStatus:
    """What is known of one log's expiry, for people, metrics and the next run.

    `state` is stable: new, kept, moved, removed, recorded_gone, forgotten, failed, unknown. `reason` is a
    Reason's value where something is kept, an error's class where the turn failed.
    """

    log: LogId
    topic: str
    state: str = "new"
    reason: str = ""
    detail: str = ""
    removed_segments: int = 0  # since the agent began
    removed_bytes: int = 0
    failures: int = 0  # in a row
    next_try_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One log that is ours to look after in this run."""

    log: LogId
    topic: str
    local: tuple[Extent, ...] = ()  # what the leader has on disk, all of it committed


@dataclass(slots=True, kw_only=True)
class RemoteRetention:
    """The expiry of one agent."""

    broker_id: int
    table: ReadToEnd
    publish_segment: Callable[[SegmentRecord], int]  # Metadata.publish
    publish_log: Callable[[LogRecord], int]  # Metadata.publish_log
    bury: Callable[[LogId, bytes], int]  # appends a tombstone for a key of the log to the metadata topic
    leadership: LeadershipSource
    topics: TopicWatch
    metadata_topic: str
    survey: Callable[[], HostSurvey]
    objects: Objects  # a PatientStore
    policy: Callable[[str], TopicPolicy]  # Policy.effective
    pace: Callable[[], None]  # waits for its turn before each request to the store
    sink: EventSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    limits: RetentionLimits = field(default_factory=RetentionLimits)
    jitter: random.Random = field(default_factory=random.Random)
    _ledger: BlastLedger = field(default_factory=BlastLedger)
    _counted: set[LogId] = field(default_factory=set)  # logs whose earlier removals are in the ledger
    _statuses: dict[LogId, RetentionStatus] = field(default_factory=dict)

    def statuses(self) -> Mapping[LogId, RetentionStatus]:
        """What is known of each log that was ours in any run."""
        return dict(self._statuses)

    def run_once(self) -> Mapping[LogId, RetentionStatus]:
        """Take what acts may be taken now; what it came to, by log."""
        taken = {}
        for turn in self._turns():
            status = self._status(turn)
            taken[turn.log] = status
            if status.next_try_ms <= self.now_ms():
                self._take(turn, status)
        return taken

    def plan(self) -> tuple[Planned, ...]:
        """What `run_once` would begin with, for each log, doing none of it."""
        return tuple(self._planned(turn) for turn in self._turns())

    # Whose turn it is.

    def _turns(self) -> Iterator[_Turn]:
        named = self._named()
        led_by = self.leadership.leadership({partition for partition, _ in named})
        live = self.survey().live
        for partition, log in named:
            answer = led_by[partition]
            if isinstance(answer, Leadership) and answer.topic_id == log.topic_id:
                if answer.leader_id == self.broker_id:
                    local = _committed_extents(live.get(partition), log)
                    yield _Turn(log=log, topic=partition.topic, local=local)
            elif isinstance(answer, Leadership) or answer.cause is Cause.NO_SUCH_TOPIC:
                if self._keeps_partition_of(log):
                    yield _Turn(log=log, topic=partition.topic)
            elif log in self._statuses:
                self._note_unknown(self._statuses[log], answer)

    def _named(self) -> list[tuple[TopicPartition, LogId]]:
        """Every log that has a record, by the name that its topic had."""
        with self.table.metadata.table() as tables:
            logs = list(tables.logs())
        named = []
        for log in logs:  # the table is let go of between two logs: there may be many
            view = self.table.metadata.view(log)
            if view is not None and view.record is not None:
                named.append((TopicPartition(view.record.topic, log.partition), log))
        return named

    def _keeps_partition_of(self, log: LogId) -> bool:
        """Whether this broker leads the metadata partition that a log is in."""
        number = metadata_partition(log, self.table.topic.partition_count)
        asked = TopicPartition(self.metadata_topic, number)
        found = self.leadership.leadership([asked])[asked]
        return isinstance(found, Leadership) and found.leader_id == self.broker_id

    # One log's turn.

    def _take(self, turn: _Turn, status: RetentionStatus) -> None:
        try:
            self._act(turn, status)
            status.failures = 0
        except Exception as error:  # noqa: BLE001 a log's edge: one log's trouble ends no other's turn (T7)
            self._failed(status, error)

    def _act(self, turn: _Turn, status: RetentionStatus) -> None:
        ports = self._ports(turn)
        for _ in range(self.limits.acts_max):
            run = Run(plan=OFF) if self._is_off(turn) else expire(turn.log, ports)
            self._note(status, run)
            if isinstance(run.stopped, StatedError):
                raise run.stopped
            if isinstance(run.plan, ForgetLog):
                self._counted.discard(turn.log)
                return
            if isinstance(run.plan, Keep) or run.stopped is not None:
                break
        if next(self.table.removed(turn.log), None) is not None:
            forget(turn.log, ports)

    def _is_off(self, turn: _Turn) -> bool:
        """Whether there is surely nothing to do, so that nobody is asked where the table's topic ends.

        A topic that may be gone is looked at all the same: its end is put on record.
        """
        if remote_policy(self.policy(turn.topic)).deletes:
            return False
        view = self.table.metadata.view(turn.log)
        is_on_record = view is None or view.record is None or view.record.topic_deleted_at_ms is not None
        return not is_on_record and self._lead(turn)[0] is Presence.THERE

    def _planned(self, turn: _Turn) -> Planned:
        ports = self._ports(turn)
        try:
            act = dry_run(turn.log, ports)
            due = to_forget(ports.table.look(turn.log), ports.table.removed(turn.log))
        except StatedError as unknown:
            kept = Keep(reason=Reason.TABLE_DOUBTED, detail=str(unknown))
            return Planned(log=turn.log, topic=turn.topic, act=kept)
        return Planned(
            log=turn.log, topic=turn.topic, act=act, forgotten=() if isinstance(due, Keep) else due
        )

    def _note(self, status: RetentionStatus, run: Run) -> None:
        kept = run.stopped if isinstance(run.stopped, Keep) else run.plan
        match kept:
            case Keep(reason=reason, detail=detail):
                status.state, status.reason, status.detail = "kept", reason.value, detail
            case Advance(old_start=old, new_start=new):
                status.state, status.reason, status.detail = "moved", "", f"from {old} to {new}"
            case Remove(copies=copies):
                done = [copy for copy in copies if copy.segment_id in run.removed]
                status.state, status.reason = "removed", ""
                status.detail = f"{len(done)} of {len(copies)} segments"
            case RecordTopicGone():
                status.state, status.reason, status.detail = "recorded_gone", "", ""
            case ForgetLog():
                status.state, status.reason, status.detail = "forgotten", "", ""
            case None:
                pass  # what stopped it is an error, and noted as one
        if isinstance(run.plan, Remove):
            done = [copy for copy in run.plan.copies if copy.segment_id in run.removed]
            status.removed_segments += len(done)
            status.removed_bytes += sum(copy.size_bytes for copy in done)

    def _note_unknown(self, status: RetentionStatus, answer: Unknown) -> None:
        status.state, status.reason, status.detail = "unknown", answer.cause.value, answer.reason

    def _failed(self, status: RetentionStatus, error: Exception) -> None:
        status.failures += 1
        doubled = self.limits.backoff_first_ms * 2 ** min(status.failures - 1, 16)
        delay_ms = min(doubled, self.limits.backoff_max_ms)
        status.next_try_ms = self.now_ms() + self.jitter.randint(delay_ms // 2, delay_ms)
        status.state, status.reason = "failed", type(error).__name__
        status.detail = str(error) if isinstance(error, StatedError) else repr(error)

    def _status(self, turn: _Turn) -> RetentionStatus:
        return self._statuses.setdefault(turn.log, RetentionStatus(log=turn.log, topic=turn.topic))

    def _ports(self, turn: _Turn) -> Ports:
        self._count_earlier(turn.log)
        return Ports(
            table=_OneLog(self, turn),
            tier=_Tier(self),
            objects=self.objects,
            sink=self.sink,
            pace=self.pace,
            removing=lambda copy: self._removing(turn.log, copy),
            now_ms=self.now_ms,
            new_id=self.new_id,
            broker_id=self.broker_id,
        )

    def _removing(self, log: LogId, copy: TierCopy) -> None:
        self._ledger.spend(log.topic_id, copy.size_bytes, now_ms=self.now_ms())

    def _count_earlier(self, log: LogId) -> None:
        if log in self._counted:
            return
        self._counted.add(log)
        for record in self.table.going(log):
            if record.occurred_at_ms > self.now_ms() - HOUR_MS:
                self._ledger.spend(log.topic_id, record.size_bytes, now_ms=record.occurred_at_ms)

    def situation(self, turn: _Turn) -> Situation:
        """All that is known of a log, asked now."""
        policy = remote_policy(self.policy(turn.topic))
        facts = self.table.facts(turn.log)
        presence, leader_epoch = self._lead(turn)
        return Situation(
            facts=facts,
            policy=policy,
            now_ms=self.now_ms(),
            leader_epoch=leader_epoch,
            topic=presence,
            local=turn.local,
            may_advance=policy.blast_per_advance,
            may_remove=self._ledger.left(turn.log.topic_id, policy.blast_per_hour, now_ms=self.now_ms()),
        )

    def _lead(self, turn: _Turn) -> tuple[Presence, int]:
        asked = TopicPartition(turn.topic, turn.log.partition)
        found = self.leadership.leadership([asked])[asked]
        if isinstance(found, Leadership) and found.topic_id == turn.log.topic_id:
            epoch = found.leader_epoch if found.leader_id == self.broker_id else None
            return Presence.THERE, NO_EPOCH if epoch is None else epoch
        if isinstance(found, Unknown) and found.cause is not Cause.NO_SUCH_TOPIC:
            return Presence.UNKNOWN, NO_EPOCH
        return self.topics.presence(turn.topic, turn.log.topic_id), NO_EPOCH


@dataclass(frozen=True, slots=True)
class _OneLog:
    """The table, as `expire` asks it about the log whose turn it is."""

    service: RemoteRetention
    turn: _Turn

    def look(self, log: LogId) -> Situation:
        assert log == self.turn.log
        return self.service.situation(self.turn)

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        return self.service.table.segment(log, segment_id)

    def removed(self, log: LogId) -> Iterator[SegmentRecord]:
        return self.service.table.removed(log)


@dataclass(frozen=True, slots=True)
class _Tier:
    """The metadata topic, as `expire` writes it."""

    service: RemoteRetention

    def publish(self, record: SegmentRecord | LogRecord) -> int:
        if isinstance(record, LogRecord):
            return self.service.publish_log(record)
        return self.service.publish_segment(record)

    def forget(self, log: LogId, segment_id: SegmentId | None) -> None:
        self.service.bury(log, log_key(log) if segment_id is None else segment_key(log, segment_id))


def _committed_extents(local: LocalPartition | None, log: LogId) -> tuple[Extent, ...]:
    """Closed segments below the broker's checkpoint of the high watermark; none where anything is unsure."""
    if local is None or local.incarnation.topic_id != log.topic_id or local.doubts:
        return ()
    bound = local.checkpoint_high_watermark or 0
    return tuple(
        Extent(segment.base_offset, segment.end_offset, segment.size_bytes)
        for segment in local.closed_segments
        if segment.end_offset is not None and segment.end_offset <= bound
    )
