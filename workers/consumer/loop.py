"""Carries out what `core` decides, in one thread: polls, hands out, collects, commits.

Owns the order of effects. Everything happens in the thread that calls `turn`; the source calls back only from
within `poll`, so a rebalance meets no half-done step. Handlers run elsewhere and only their results come
back.

Invariant: nothing is committed but what `core.points` names, and no partition is let go before what was
finished of it is committed or the deadline has passed.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from workers.consumer.commits import CommitAnswer, CommitSchedule, CommitSettings, Deadline
from workers.consumer.core import Core
from workers.consumer.flow import FlowLimits
from workers.consumer.order import NullKeys, Order
from workers.consumer.outcomes import RetryPolicy
from workers.consumer.ports import DeadLetters, Executor, Source, Start
from workers.consumer.records import Partition
from workers.consumer.snapshot import Snapshot
from workers.consumer.stalls import StallWatch
from workers.consumer.telling import Tell, as_json

IDLE_WAIT_S = 0.1  # for a first record, where no handler runs
BUSY_WAIT_S = 0.005  # for a result, where more records might come meanwhile
FULL_WAIT_S = 0.05  # for a result, where nothing more may come
SNAPSHOT_S = 0.5  # how old one may be that another thread is given
QUIET_S = 0.25  # full for so long: pause and poll; less is not worth what a pause throws away


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a consumer behaves; what it reads and who handles it are ports."""

    order: Order = Order.BY_KEY
    null_keys: NullKeys = NullKeys.UNORDERED
    flow: FlowLimits = field(default_factory=FlowLimits)
    commits: CommitSettings = field(default_factory=CommitSettings)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    stall_after_s: float = 60.0


class ParallelConsumer:
    """One run of the machinery, from joining the group to leaving it. A supervisor makes another."""

    def __init__(
        self,
        source: Source,
        executor: Executor,
        *,
        settings: Settings | None = None,
        dead_letters: DeadLetters | None = None,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        tell: Tell = as_json,
    ) -> None:
        settings = settings or Settings()
        self._settings = settings
        self._source, self._executor, self._dead_letters = source, executor, dead_letters
        self._clock, self._tell = clock, tell
        self._schedule = CommitSchedule(settings.commits, clock())
        self._stalls = StallWatch(settings.stall_after_s)
        self._polled_s = clock()
        self._hungry = True  # the last poll brought all that was asked for: there may be more at once
        self._leaving = False
        self._unparked: list[tuple[Partition, int]] = []
        self._thread = threading.get_ident()
        self._published: Snapshot | None = None
        self._publish_s = clock()
        self._core = Core(
            order=settings.order,
            null_keys=settings.null_keys,
            limits=settings.flow,
            retries=settings.retries,
            has_dead_letters=dead_letters is not None,
            maps=settings.commits.maps,
            chance=chance,
        )

    def open(self) -> None:
        self._thread = threading.get_ident()
        self._published = self._core.snapshot(self._clock())
        self._source.open(self)

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set. Whatever is raised, `abort` is the caller's next call."""
        while not stop.is_set():
            self.turn()

    def turn(self) -> None:
        """One round of everything. Waits a little where there is nothing to do."""
        self._fetch()
        self._hand_out()
        self._collect(self._patience_s())
        self._look_around()

    def close(self) -> None:
        """Orderly: wait for what runs, commit, leave. One deadline for all of it."""
        self._let_go(self._core.partitions)
        self._leaving = True
        self._source.close()
        if self._dead_letters is not None:
            self._dead_letters.close(deadline_s=self._settings.commits.floor_s)
        self._executor.close(deadline_s=0)

    def abort(self) -> int:
        """After a failure: leave without committing. How many handlers still run at the deadline."""
        self._leaving = True
        try:
            left = self.wait_for_handlers()
        finally:
            try:
                self._source.close()
            finally:
                if self._dead_letters is not None:
                    self._dead_letters.close(deadline_s=0)
        return left

    def wait_for_handlers(self) -> int:
        """After `abort`: how many handlers still run after one more deadline."""
        return self._executor.close(deadline_s=self._settings.commits.deadline_s)

    def unpark(self, partition: Partition, offset: int) -> None:
        """Ask, from any thread, that a parked record be tried again."""
        self._unparked.append((partition, offset))

    def snapshot(self) -> Snapshot:
        """The inside: as of now for the loop's own thread, at most SNAPSHOT_S old for any other."""
        if threading.get_ident() == self._thread or self._published is None:
            return self._core.snapshot(self._clock())
        return self._published

    @property
    def done_records(self) -> int:
        """Handled with Done since the start."""
        return self._core.counts.done

    # What the source calls

    def assigned(self, starts: Mapping[Partition, Start]) -> None:
        if self._leaving:
            return
        self._core.assigned(starts, self._clock())
        self._tell("assigned", partitions=[str(each) for each in starts])

    def revoked(self, partitions: Collection[Partition]) -> None:
        if self._leaving:
            return
        self._let_go(partitions)
        self._tell("revoked", partitions=[str(each) for each in partitions])

    def lost(self, partitions: Collection[Partition]) -> None:
        self._core.ended(partitions)
        self._tell("lost", partitions=[str(each) for each in partitions])

    def committed(self, answers: Sequence[CommitAnswer]) -> None:
        self._core.committed(answers)
        for answer in answers:
            if answer.error is not None:
                facts = {"partition": str(answer.partition), "offset": answer.offset, "error": answer.error}
                self._tell("commit_failed", **facts)

    # Steps

    def _fetch(self) -> None:
        core, now_s = self._core, self._clock()
        room = core.room()
        if room == 0 and core.running and now_s - self._polled_s < QUIET_S:
            self._hungry = False
            return
        change = core.flow(all_of_them=room == 0)
        if change.pause:
            self._source.pause(change.pause)
        if change.resume:
            self._source.resume(change.resume)
        idle = not core.running and not core.ready
        polled = self._source.poll(room, self._idle_wait_s(now_s) if idle and not self._hungry else 0.0)
        self._polled_s = now_s = self._clock()
        self._hungry = len(polled.records) > 0
        core.received(polled.records, now_s)
        for partition, offset in polled.ends:
            core.reached(partition, offset)

    def _hand_out(self) -> None:
        self._core.due(self._clock())
        wanted = self._executor.capacity - self._core.running
        if wanted > 0 and (works := self._core.take(wanted)):
            self._executor.submit(works)

    def _collect(self, timeout_s: float) -> None:
        if not self._core.running:
            return
        results = self._executor.collect(timeout_s)
        if results:
            self._schedule.finished(self._core.finished(results, self._clock()))

    def _patience_s(self) -> float:
        """How long a result may be waited for."""
        core = self._core
        if core.running < self._executor.capacity and core.ready:
            return 0.0
        if core.is_full:
            wait_s = FULL_WAIT_S
        elif self._hungry:
            # More is there to be read; but with all handlers busy it can wait for one of them.
            wait_s = 0.0 if core.running < self._executor.capacity else BUSY_WAIT_S
        else:
            wait_s = BUSY_WAIT_S
        due_s = core.next_due_s()
        return wait_s if due_s is None else max(min(wait_s, due_s - self._clock()), 0.0)

    def _idle_wait_s(self, now_s: float) -> float:
        if self._core.burying:
            return BUSY_WAIT_S
        due_s = self._core.next_due_s()
        return IDLE_WAIT_S if due_s is None else max(min(IDLE_WAIT_S, due_s - now_s), 0.0)

    def _look_around(self) -> None:
        now_s = self._clock()
        self._letters()
        while self._unparked:
            self._core.unpark(*self._unparked.pop())
        if self._schedule.is_due(now_s):
            if points := self._core.points():
                self._source.commit(points)
            self._schedule.committed(now_s)
        if now_s >= self._publish_s:
            self._published = self._core.snapshot(now_s)
            self._publish_s = now_s + SNAPSHOT_S
        self._tell_stalls(now_s)

    def _tell_stalls(self, now_s: float) -> None:
        began, ended = self._stalls.look(self._core, now_s)
        for stall in began:
            self._tell(
                "stalled",
                partition=str(stall.partition),
                blocking_offset=stall.blocking_offset,
                blocking_age_s=round(stall.blocking_age_s, 3),
                blocked=stall.blocked.value,
                attempt=stall.attempt,
                reason=stall.reason,
                ahead_records=stall.ahead_records,
                in_flight_records=stall.in_flight_records,
            )
        for partition, offset in ended:
            self._tell("stall_ended", partition=str(partition), blocking_offset=offset)

    def _letters(self) -> None:
        if self._dead_letters is None:
            return
        for number, letter in self._core.letters():
            self._dead_letters.send(number, letter)
        if answers := self._dead_letters.answers():
            for number, error in answers:
                if error is not None:
                    self._tell("dead_letter_failed", number=number, error=error)
            self._schedule.finished(self._core.buried(answers, self._clock()))

    def _let_go(self, partitions: Collection[Partition]) -> None:
        """Drain and commit these; the others go on meanwhile."""
        commits = self._settings.commits
        deadline = Deadline(self._clock, total_s=commits.deadline_s, floor_s=commits.floor_s)
        core = self._core
        core.drop_waiting(partitions)
        while core.busy(partitions) and (left_s := deadline.left_before_last_s()) > 0:
            self._collect(min(BUSY_WAIT_S, left_s))
            self._letters()
            self._hand_out()
        if left := core.busy(partitions):
            self._tell("revoked_unfinished", partitions=[str(each) for each in partitions], handlers=left)
        if points := core.points(partitions):
            self.committed(self._source.commit_and_wait(points, deadline_s=deadline.left_for_last_s()))
        if paused := core.ended(partitions):
            self._source.resume(paused)
