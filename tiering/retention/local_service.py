"""Trims the logs that this broker leads, where the policy asks for it.

Each turn gathers its facts anew: what is on disk, who leads, what the leader says of its log, what is
configured, what the table has read, what other agents said. A request whose outcome is open is read back
before anything else is done to its log.

Owns the runs, and what is remembered of each log between them. The decision is `local`'s, the order of a trim
`local_trim`'s. One log after another. Refuses to run beside itself: one thread calls `run_once`.

Invariant (T7): whatever a turn runs into ends at its edge as a status and a back-off; and so does a request
that was refused, that timed out, or of which nobody knows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from rules.events import EventSink, TrimCertified, TrimResult
from rules.identity import LogId
from rules.policy.topic import TopicPolicy
from tiering.cluster.gate import LogView, committed_bound
from tiering.cluster.host import HostSurvey, LocalPartition
from tiering.cluster.interface import LeaderOffsets, Leadership, TopicPartition, Unknown
from tiering.errors import StatedError
from tiering.retention.digests import Digests
from tiering.retention.errors import ReplicaGone
from tiering.retention.local import LocalSegment, Trim, TrimFacts, trim_decision
from tiering.retention.local_policy import local_policy
from tiering.retention.local_trim import (
    DeleteRecords,
    Heads,
    Pending,
    TrimPorts,
    TrimRun,
    settle,
    settle_left,
    trim,
)
from tiering.retention.reasons import Keep, Reason
from tiering.retention.table_end import ReadToEnd
from tiering.segments.keys import metadata_partition
from tiering.uploader.one_log import Cluster

SURVEY_MAX_AGE_MS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimLimits:
    backoff_first_ms: int = 30_000
    backoff_max_ms: int = 3_600_000


@dataclass(slots=True, kw_only=True)
class TrimStatus:
    """What is known of one log's trimming, for people, metrics and the next run.

    `state` is stable: new, kept, trimmed, refused, timed_out, unknown, failed. `reason` is a Reason's value
    where something is kept, an error's class where the turn failed.
    """

    log: LogId
    topic: str
    state: str = "new"
    reason: str = ""
    detail: str = ""
    trimmed_offsets: int = 0  # since the agent began
    failures: int = 0  # in a row
    next_try_ms: int = 0
    pending: Pending | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrim:
    """What a run would do to one log, doing none of it. The store is asked when it is done."""

    log: LogId
    topic: str
    decision: Trim | Keep

    def lines(self) -> Iterator[str]:
        name = f"{self.topic}-{self.log.partition} ({self.log.topic_id})"
        if isinstance(self.decision, Keep):
            yield f"{name}: keep: {self.decision.reason.value}: {self.decision.detail}"
            return
        case = self.decision.certificate
        yield f"{name}: every replica's start moves from {self.decision.old_start} to {self.decision.up_to}"
        yield f"  in the tier up to {case.frontier}, as brokers {list(case.agreeing_brokers)} agree"
        for copy in case.copies:
            yield f"  [{copy.base_offset}, {copy.end_offset}) {copy.size_bytes} bytes: {copy.segment_id}"


@dataclass(frozen=True, slots=True)
class _Look:
    """One survey of the host, and when it was begun."""

    host: HostSurvey
    began_ms: int


@dataclass(slots=True, kw_only=True)
class LocalTrim:
    """The trimming of one agent."""

    survey: Callable[[], HostSurvey]
    cluster: Cluster
    table: ReadToEnd
    digests: Digests
    policy: Callable[[str], TopicPolicy]  # Policy.effective
    objects: Heads  # a PatientStore
    requests: DeleteRecords
    sink: EventSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    limits: TrimLimits = field(default_factory=TrimLimits)
    jitter: random.Random = field(default_factory=random.Random)
    left: list[TrimCertified] = field(default_factory=list)  # by an earlier run, outcome untold
    _last_look: _Look | None = None
    _statuses: dict[LogId, TrimStatus] = field(default_factory=dict)

    def statuses(self) -> Mapping[LogId, TrimStatus]:
        """What is known of each log that was trimmed, or could have been, in any run."""
        return dict(self._statuses)

    def run_once(self) -> Mapping[LogId, TrimStatus]:
        """Trim what may be trimmed now; what it came to, by log."""
        self.left = [each for each in self.left if not self._is_settled(each)]
        open_logs = {each.log for each in self.left}
        taken = {}
        for partition, log in self._ours():
            if log in open_logs:
                continue  # first what came of the last request, then the next
            status = self._statuses.setdefault(log, TrimStatus(log=log, topic=partition.topic))
            taken[log] = status
            if status.next_try_ms <= self.now_ms():
                self._take(partition, log, status)
        return taken

    def plan(self) -> tuple[PlannedTrim, ...]:
        """What `run_once` would do, for each log that it would look at."""
        return tuple(self._planned(partition, log) for partition, log in self._ours())

    def _ours(self) -> list[tuple[TopicPartition, LogId]]:
        """Those whose policy asks for a trim, and that this broker is said to lead."""
        self._last_look = None
        host = self._look().host
        live = {p: local for p, local in host.live.items() if self._is_trimmed(p.topic)}
        leaders = self.cluster.leadership.leadership(live)
        return [
            (partition, LogId(host.broker.cluster_id, local.incarnation.topic_id, partition.partition))
            for partition, local in live.items()
            if self._is_led_here(leaders[partition], host)
        ]

    def _is_trimmed(self, topic: str) -> bool:
        return local_policy(self.policy(topic)).trims

    def _is_led_here(self, leader: Leadership | Unknown, host: HostSurvey) -> bool:
        return isinstance(leader, Leadership) and leader.leader_id == host.broker.broker_id

    def _look(self) -> _Look:
        """The disk as it is, or was within SURVEY_MAX_AGE_MS: a survey reads every directory."""
        last = self._last_look
        if last is None or not 0 <= self.now_ms() - last.began_ms <= SURVEY_MAX_AGE_MS:
            began_ms = self.now_ms()
            last = self._last_look = _Look(self.survey(), began_ms)
        return last

    def _take(self, partition: TopicPartition, log: LogId, status: TrimStatus) -> None:
        try:
            ports = self._ports(partition, log)
            if status.pending is None or self._settled(partition, log, status, ports):
                self._note(status, trim(log, partition, ports))
        except Exception as error:  # noqa: BLE001 a log's edge: one log's trouble ends no other's turn (T7)
            status.state, status.reason = "failed", type(error).__name__
            status.detail = str(error) if isinstance(error, StatedError) else repr(error)
            self._back_off(status)

    def _is_settled(self, left: TrimCertified) -> bool:
        return settle_left(left, self.cluster.offsets, self.sink, now_ms=self.now_ms, new_id=self.new_id)

    def _settled(self, partition: TopicPartition, log: LogId, status: TrimStatus, ports: TrimPorts) -> bool:
        """Read an open request back; whether that could be done."""
        assert status.pending is not None
        found = self.cluster.offsets.leader_offsets([partition])[partition]
        if not isinstance(found, LeaderOffsets):
            status.state, status.reason, status.detail = "unknown", found.cause.value, found.reason
            self._back_off(status)
            return False
        self._note(status, settle(log, partition, status.pending, None, ports))
        return True

    def _note(self, status: TrimStatus, run: TrimRun) -> None:
        status.pending = run.pending
        kept = run.stopped or run.plan
        if isinstance(kept, Keep):
            status.state, status.reason, status.detail = "kept", kept.reason.value, kept.detail
            status.failures = 0
            return
        assert run.result is not None, "what was planned and not stopped was asked for"
        status.reason, status.detail = "", run.detail
        if run.result is TrimResult.ADVANCED:
            status.state, status.failures, status.next_try_ms = "trimmed", 0, 0
            status.trimmed_offsets += kept.up_to - kept.old_start
        else:
            status.state = run.result.value
            self._back_off(status)

    def _back_off(self, status: TrimStatus) -> None:
        status.failures += 1
        doubled = self.limits.backoff_first_ms * 2 ** min(status.failures - 1, 16)
        delay_ms = min(doubled, self.limits.backoff_max_ms)
        status.next_try_ms = self.now_ms() + self.jitter.randint(delay_ms // 2, delay_ms)

    def _planned(self, partition: TopicPartition, log: LogId) -> PlannedTrim:
        decision: Trim | Keep
        try:
            decision = trim_decision(self._facts(partition, log))
        except StatedError as unknown:
            decision = Keep(reason=Reason.TABLE_DOUBTED, detail=str(unknown))
        return PlannedTrim(log=log, topic=partition.topic, decision=decision)

    def _ports(self, partition: TopicPartition, log: LogId) -> TrimPorts:
        return TrimPorts(
            look=lambda: self._facts(partition, log),
            segment=self.table.segment,
            objects=self.objects,
            requests=self.requests,
            offsets=self.cluster.offsets,
            sink=self.sink,
            now_ms=self.now_ms,
            new_id=self.new_id,
        )

    def _facts(self, partition: TopicPartition, log: LogId) -> TrimFacts:
        """All that is known of a log, the disk first: the answers are as old as the oldest of them."""
        look = self._look()
        local = look.host.live.get(partition)
        if local is None or local.incarnation.topic_id != log.topic_id:
            raise ReplicaGone(log=log)
        view = self._view(partition, local, look.host.broker.broker_id)
        topic_settings = self.cluster.settings.topic_settings([partition.topic])[partition.topic]
        tier, digest = self.table.facts_and_digest(log)
        active = [each.size_bytes for each in local.listing.segments if not each.is_closed]
        return TrimFacts(
            tier=tier,
            digest=digest,
            said=self.digests.of(log),
            metadata_partition=metadata_partition(log, self.table.topic.partition_count),
            policy=local_policy(self.policy(partition.topic)),
            broker_id=view.broker_id,
            lead=committed_bound(view),
            leadership=view.leadership,
            log_start=view.offsets.log_start if isinstance(view.offsets, LeaderOffsets) else None,
            settings=topic_settings,
            was_compacted=local.cleaned_to is not None,
            doubts=local.doubts,
            segments=tuple(
                LocalSegment(each.base_offset, each.end_offset, each.size_bytes)
                for each in local.closed_segments
                if each.end_offset is not None
            ),
            active_bytes=sum(active),
            epochs=local.epochs,
            asked_at_ms=look.began_ms,
            now_ms=self.now_ms(),
        )

    def _view(self, partition: TopicPartition, local: LocalPartition, broker_id: int) -> LogView:
        return LogView(
            broker_id=broker_id,
            topic_id=local.incarnation.topic_id,
            leadership=self.cluster.leadership.leadership([partition])[partition],
            offsets=self.cluster.offsets.leader_offsets([partition])[partition],
            local_epoch=local.local_epoch,
            checkpoint_high_watermark=local.checkpoint_high_watermark,
        )
