"""Looks after every log that this broker leads: one pass after another, the logs in parallel.

A pass surveys the log dirs, asks who leads, and gives each log that is due to a worker, which takes that
log's steps in order (`one_log`).

Owns the passes, the pool, and what is remembered of each log between passes: its last trouble and when to try
again. A pass waits for nobody: a log whose upload takes long, or whose store hangs, holds up no other.
Refuses to decide anything about a log: that is `decide`'s.

Invariant (T7): whatever a worker runs into, memory included, ends at its edge as a status, a back-off and,
when the frontier stands still too long, an event. A log whose facts are not known is left alone, never taken
for one that is not led here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Condition

from rules.events import UploadStalled
from rules.identity import LogId
from tiering.cluster.host import HostSurvey, LocalPartition
from tiering.cluster.interface import Leadership, TopicPartition, TopicSettings, Unknown
from tiering.errors import StatedError
from tiering.uploader.holder import HeldSegment
from tiering.uploader.one_log import OneLog, Tools, holder_name
from tiering.uploader.status import IDLE_STATES, LogStatus, ServiceLimits


@dataclass(slots=True)
class UploadService:
    """The uploader of one broker."""

    survey: Callable[[], HostSurvey]
    tools: Tools
    is_tiered: Callable[[str], bool]
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    jitter: random.Random = field(default_factory=random.Random)
    on_error: Callable[[LogStatus, Exception], None] = lambda status, error: None
    _statuses: dict[LogId, LogStatus] = field(default_factory=dict)
    _busy: set[LogId] = field(default_factory=set)
    _changed: Condition = field(default_factory=Condition)
    _pool: ThreadPoolExecutor | None = None

    def statuses(self) -> Mapping[LogId, LogStatus]:
        """What is known of each log now."""
        return dict(self._statuses)

    def start_pass(self) -> list[Future[None]]:
        """Look at every log once and begin what is due; a log that is being worked on goes on with it."""
        return [self._begin(each) for each in self._due(self.survey())]

    def run_pass(self) -> None:
        """The same, and wait until all that was begun is done."""
        for begun in self.start_pass():
            begun.result()

    def wait_idle(self, timeout_s: float | None = None) -> bool:
        """Whether all workers came to their end."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, timeout_s)

    def close(self) -> None:
        """End after the steps that are being taken. The held segments are let go."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self.tools.holder.close()

    def _begin(self, one: OneLog) -> Future[None]:
        with self._changed:
            self._busy.add(one.status.log)
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.limits.workers, thread_name_prefix="seawall-upload")
            return self._pool.submit(self._advance, one)

    def _due(self, host: HostSurvey) -> list[OneLog]:
        live = {p: local for p, local in host.live.items() if self.is_tiered(p.topic)}
        leaders = self.tools.cluster.leadership.leadership(live)
        settings = self.tools.cluster.settings.topic_settings({p.topic for p in live})
        due: list[OneLog] = []
        broker_id = host.broker.broker_id
        seen = set()
        for partition, local in live.items():
            status = self._status(host, partition, local)
            seen.add(status.log)
            refusal = _refusal(leaders[partition], settings[partition.topic], local, broker_id)
            self._caught(status, partial(self._hold, due, broker_id, partition, local, status, refusal))
        if host.is_complete:
            self._forget_all_but(seen)
        return due

    def _hold(
        self,
        due: list[OneLog],
        broker_id: int,
        partition: TopicPartition,
        local: LocalPartition,
        status: LogStatus,
        refusal: tuple[str, str] | None,
    ) -> None:
        """Hold what a log has closed, or let go of it; it is due where its turn has come."""
        name, segments = holder_name(status.log), local.listing.segments
        if self._is_busy(status.log):
            if refusal is None:
                self.tools.holder.keep_more(name, segments, above=status.frontier)
        elif refusal is not None:
            status.state, status.detail = refusal
            if status.state in IDLE_STATES:  # known, not merely unknown
                self.tools.holder.drop(name)
        else:
            held = self.tools.holder.keep(name, segments, above=status.frontier)
            wait_ms = status.next_try_ms - self.tools.now_ms()
            if not 0 < wait_ms <= self.limits.backoff_max_ms:  # longer only if the clock was put back
                due.append(self._one(broker_id, partition, local, status, held))

    def _forget_all_but(self, seen: set[LogId]) -> None:
        """Logs that are on this host no more, deleted or moved away: their bytes are let go."""
        for log in [each for each in self._statuses if each not in seen and not self._is_busy(each)]:
            self.tools.holder.drop(holder_name(log))
            del self._statuses[log]

    def _is_busy(self, log: LogId) -> bool:
        with self._changed:
            return log in self._busy

    def _one(
        self,
        broker_id: int,
        partition: TopicPartition,
        local: LocalPartition,
        status: LogStatus,
        held: tuple[HeldSegment, ...],
    ) -> OneLog:
        return OneLog(
            tools=self.tools,
            broker_id=broker_id,
            partition=partition,
            local=local,
            status=status,
            held=held,
        )

    def _status(self, host: HostSurvey, partition: TopicPartition, local: LocalPartition) -> LogStatus:
        log = LogId(host.broker.cluster_id, local.incarnation.topic_id, partition.partition)
        fresh = LogStatus(log=log, topic=partition.topic, moved_at_ms=self.tools.now_ms())
        return self._statuses.setdefault(log, fresh)

    def _advance(self, one: OneLog) -> None:
        try:
            if self._caught(one.status, one.advance):
                one.status.failures = 0
            self._caught(one.status, lambda: self._tell_of_stalls(one.status))
        finally:
            with self._changed:
                self._busy.discard(one.status.log)
                self._changed.notify_all()

    def _caught(self, status: LogStatus, act: Callable[[], None]) -> bool:
        try:
            act()
            return True
        except Exception as error:  # noqa: BLE001 the worker's edge: one log's trouble ends no other's work (T7)
            self._failed(status, error)
            return False

    def _failed(self, status: LogStatus, error: Exception) -> None:
        status.failures += 1
        doubled = self.limits.backoff_first_ms * 2 ** min(status.failures - 1, 16)
        delay_ms = min(doubled, self.limits.backoff_max_ms)
        status.next_try_ms = self.tools.now_ms() + self.jitter.randint(delay_ms // 2, delay_ms)
        status.state = "failed"
        said = str(error) if isinstance(error, StatedError) else repr(error)
        status.detail = f"{type(error).__name__}: {said}"
        self.on_error(status, error)

    def _tell_of_stalls(self, status: LogStatus) -> None:
        stalled_ms = self.tools.now_ms() - status.moved_at_ms
        idle = status.state in IDLE_STATES or not status.waiting_segments
        if idle or status.stall_told or stalled_ms < self.limits.stall_ms:
            return
        status.stall_told = True
        self.tools.sink.emit(
            UploadStalled(
                event_id=self.tools.new_id(),
                occurred_at_ms=self.tools.now_ms(),
                log=status.log,
                topic=status.topic,
                leader_epoch=-1 if status.leader_epoch is None else status.leader_epoch,
                frontier=-1 if status.frontier is None else status.frontier,
                stalled_ms=stalled_ms,
                waiting_segments=status.waiting_segments,
                waiting_bytes=status.waiting_bytes,
                reason=f"{status.state}: {status.detail}",
            )
        )


def _refusal(
    leader: Leadership | Unknown, setting: TopicSettings | Unknown, local: LocalPartition, broker_id: int
) -> tuple[str, str] | None:
    """Why nothing is copied of this log from here now: a state and its detail; None if it may be."""
    if local.doubts:
        return "unknown", "; ".join(local.doubts)
    if isinstance(leader, Unknown):
        return "unknown", leader.reason
    if leader.leader_id != broker_id:
        return "not_led", f"led by broker {leader.leader_id}"
    if isinstance(setting, Unknown):
        return "unknown", setting.reason
    if setting.remote_storage_enable.value:
        return "refused", "Kafka's own remote storage is on for this topic"
    if setting.is_compacted or local.cleaned_to is not None:
        return "refused", "the topic is or was compacted"
    return None
