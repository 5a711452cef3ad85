"""Decides everything about records in flight, as a pure machine: no thread, no clock, no client.

Owns what was received and is not finished. Invariants, each held by the state machine of its tests:

    C1  a commit point never lies above an unfinished received record of its partition
    C2  a record is finished by an outcome of its own epoch, or by the map of the commit that it follows
    C3  of a lane one record is out at a time, in the order of arrival; a retry keeps its place
    C4  what is received is, until its partition goes, in exactly one place: waiting in its lane, ready,
        running, delayed, parked or on its way to the dead letters
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from itertools import count

from workers.consumer import offset_map
from workers.consumer.assignment import Assigned
from workers.consumer.commits import CommitAnswer, CommitPoint
from workers.consumer.epochs import Epochs
from workers.consumer.flow import Change, Flow, FlowLimits
from workers.consumer.offset_map import NoMap, OffsetMap
from workers.consumer.order import NullKeys, Order, lane_of
from workers.consumer.outcomes import DeadLetter, Done, Park, Raised, Result, Retry, RetryPolicy, Skip
from workers.consumer.pool import Pool
from workers.consumer.ports import Letter, LetterAnswer, Start
from workers.consumer.records import Partition, Record
from workers.consumer.snapshot import GAPS_SHOWN, Blocked, Counts, PartitionSnapshot, Snapshot
from workers.consumer.work import Work


class Core:
    """`chance` gives numbers in [0, 1) for the jitter of waits."""

    def __init__(
        self,
        *,
        order: Order,
        null_keys: NullKeys,
        limits: FlowLimits,
        retries: RetryPolicy,
        has_dead_letters: bool,
        maps: bool,
        chance: Callable[[], float],
    ) -> None:
        self.counts = Counts()
        self._order, self._null_keys = order, null_keys
        self._retries, self._chance = retries, chance
        self._has_dead_letters, self._maps = has_dead_letters, maps
        self._flow = Flow(limits)
        self._epochs = Epochs()
        self._assigned: dict[Partition, Assigned] = {}
        self._numbers = count()
        self._pool = Pool()
        self._letters: list[tuple[int, Letter]] = []
        self._records = 0
        self._bytes = 0

    # Assignment

    def assigned(self, starts: Mapping[Partition, Start], now_s: float) -> None:
        for partition, start in starts.items():
            self._begin(partition, start, self._known(start), now_s)

    def drop_waiting(self, partitions: Collection[Partition]) -> None:
        """What has not begun is given up, unfinished: whoever has the partition next gets it again."""
        for work in self._pool.drop(lambda work: work.record.partition in partitions):
            self._uncount(work)

    def busy(self, partitions: Collection[Partition]) -> int:
        """How many records of these are with a handler or on their way to the dead letters."""
        return sum(
            work.record.partition in partitions and self._is_current(work) for work in self._pool.out()
        )

    def ended(self, partitions: Collection[Partition]) -> frozenset[Partition]:
        """They are not ours any more; late results move nothing. Answers which of them were paused."""
        self.drop_waiting(partitions)
        for work in self._pool.out():
            if work.record.partition in partitions and self._is_current(work):
                self._uncount(work)
        for partition in partitions:
            self._epochs.end(partition)
            self._assigned.pop(partition, None)
        return self._flow.forget(partitions)

    @property
    def partitions(self) -> frozenset[Partition]:
        return frozenset(self._assigned)

    # Records

    def received(self, records: Iterable[Record], now_s: float) -> None:
        for record in records:
            held = self._assigned.get(record.partition)
            if held is None:
                self.counts.unassigned += 1
                continue
            position = held.tracker.position
            if position is not None and record.offset < position:
                self._rewind(held, record)
            self.counts.received += 1
            held.tracker.receive(record.offset)
            if held.map is not None and held.map.covers(record.offset, record.leader_epoch):
                self.counts.remembered += 1
                held.tracker.finish(record.offset)
                continue
            self._enter(record, held.epoch)

    def reached(self, partition: Partition, offset: int) -> None:
        """Nothing is left below `offset`: markers and compacted records there are nobody's to finish."""
        if held := self._assigned.get(partition):
            held.tracker.reach(offset)

    def room(self) -> int:
        return self._flow.room(self._records, self._bytes)

    def flow(self, *, all_of_them: bool) -> Change:
        loads = {partition: held.tracker.ahead for partition, held in self._assigned.items()}
        return self._flow.change(loads, all_of_them=all_of_them)

    # Work

    def take(self, most: int) -> list[Work]:
        """The oldest records that may run now; they are running from here on."""
        return self._pool.take(most)

    def finished(self, results: Iterable[tuple[Work, Result]], now_s: float) -> int:
        """Handlers answered; how many records are dealt with by that."""
        before = self._records
        for work, result in results:
            self._pool.running.discard(work)
            if not self._is_current(work):
                self.counts.late_results += 1
                self._pool.let_go(work)
            elif isinstance(result, Done):
                self.counts.done += 1
                self._finish(work)
            else:
                self._otherwise(work, result, now_s)
        return before - self._records

    def due(self, now_s: float) -> None:
        """What was delayed until now is ready again, or sent again."""
        for work, letter in self._pool.due(now_s):
            if letter is None:
                self._pool.make_ready(work)
            else:
                self._bury(work, letter)

    def next_due_s(self) -> float | None:
        return self._pool.delayed[0][0] if self._pool.delayed else None

    def unpark(self, partition: Partition, offset: int) -> bool:
        """Try a parked record again; False if there is none."""
        found = self._pool.parked.pop((partition, offset), None)
        if found is None:
            return False
        work, _ = found
        work.failures = 0
        self._pool.make_ready(work)
        return True

    def letters(self) -> list[tuple[int, Letter]]:
        """Letters to be sent, each once."""
        letters, self._letters = self._letters, []
        return letters

    def buried(self, answers: Iterable[LetterAnswer], now_s: float) -> int:
        """What became of letters; how many records are dealt with by that."""
        before = self._records
        for number, error in answers:
            work, letter = self._pool.burying.pop(number)
            if not self._is_current(work):
                self.counts.late_results += 1
                self._pool.let_go(work)
            elif error is None:
                self.counts.dead_letters += 1
                self._finish(work)
            else:
                self.counts.dead_letters_failed += 1
                work.failures += 1
                self._delay(work, self._retries.wait_s(work.failures, self._chance()), now_s, letter)
        return before - self._records

    # Commits

    def points(self, partitions: Collection[Partition] | None = None) -> dict[Partition, CommitPoint]:
        """What has to be committed and was not sent; taken for sent from here on."""
        found: dict[Partition, CommitPoint] = {}
        for partition, held in self._assigned.items():
            point = held.tracker.commit_point
            if point is None or (partitions is not None and partition not in partitions):
                continue
            if point == held.sent and not (self._maps and held.dirty):
                continue
            metadata = ""
            if self._maps:
                metadata = offset_map.encode(point, held.tracker.finished_ahead(), held.leader_epoch)
            found[partition] = CommitPoint(offset=point, leader_epoch=held.leader_epoch, metadata=metadata)
            held.sent, held.dirty = point, False
        return found

    def committed(self, answers: Iterable[CommitAnswer]) -> None:
        """A commit that failed is due again; one that stands is remembered."""
        for answer in answers:
            held = self._assigned.get(answer.partition)
            if answer.error is not None:
                self.counts.commits_failed += 1
                if held is not None:
                    held.sent, held.dirty = None, True
            else:
                self.counts.commits += 1
                if held is not None:
                    held.committed = answer.offset

    # What is seen from outside

    @property
    def in_flight(self) -> int:
        return self._records

    @property
    def running(self) -> int:
        return len(self._pool.running)

    @property
    def ready(self) -> int:
        return len(self._pool.ready)

    @property
    def burying(self) -> int:
        return len(self._pool.burying)

    @property
    def is_full(self) -> bool:
        return self._flow.is_full

    def blocking(self, now_s: float) -> dict[Partition, tuple[int, float]]:
        """The blocking offset of each partition that has one, and how long it has been that."""
        found = {}
        for partition, held in self._assigned.items():
            blocking = held.tracker.blocking
            if blocking != held.blocking:
                held.blocking, held.since_s = blocking, now_s
            if blocking is not None:
                found[partition] = (blocking, now_s - held.since_s)
        return found

    def whereabouts(self, partition: Partition, offset: int) -> tuple[Blocked, int, str]:
        """What an unfinished record waits for, its attempt and the last word on it. Not cheap."""
        return self._pool.whereabouts(partition, offset, self._is_current)

    def snapshot(self, now_s: float) -> Snapshot:
        blocking, pool = self.blocking(now_s), self._pool
        return Snapshot(
            partitions=tuple(
                PartitionSnapshot(
                    partition=partition,
                    epoch=held.epoch,
                    position=held.tracker.position,
                    commit_point=held.tracker.commit_point,
                    committed=held.committed,
                    in_flight_records=held.tracker.unfinished,
                    ahead_records=held.tracker.ahead,
                    gaps=tuple(held.tracker.gaps(GAPS_SHOWN)),
                    blocking_offset=held.tracker.blocking,
                    blocking_age_s=blocking.get(partition, (0, 0.0))[1],
                    paused=partition in self._flow.paused,
                )
                for partition, held in sorted(self._assigned.items())
            ),
            in_flight_records=self._records,
            in_flight_bytes=self._bytes,
            queue_depth=self._records - self._out(),
            running=len(pool.running),
            retrying=sum(letter is None for _, _, _, letter in pool.delayed),
            parked=len(pool.parked),
            burying=len(pool.burying) + sum(letter is not None for _, _, _, letter in pool.delayed),
            lanes=len(pool.lanes),
            is_full=self._flow.is_full,
            counts=asdict(self.counts),
        )

    def _out(self) -> int:
        """In flight, and not waiting for a handler."""
        current = sum(self._is_current(work) for work in self._pool.out())
        return current + len(self._pool.delayed) + len(self._pool.parked)

    # Steps

    def _begin(self, partition: Partition, start: Start, known: OffsetMap | None, now_s: float) -> Assigned:
        epoch = self._epochs.begin(partition)
        held = self._assigned[partition] = Assigned(epoch, start, known, now_s)
        return held

    def _known(self, start: Start) -> OffsetMap | None:
        if not self._maps or start.offset is None:
            return None
        found = offset_map.decode(start.metadata, start.offset)
        if isinstance(found, NoMap):
            self.counts.maps_ignored += bool(start.metadata)
            return None
        return found

    def _rewind(self, held: Assigned, record: Record) -> None:
        """The log was cut back, or is read again: at and above this offset other records may stand now."""
        self.counts.rewinds += 1
        partition, offset = record.partition, record.offset

        def is_gone(work: Work) -> bool:
            at = work.record
            return at.partition == partition and at.offset >= offset and self._is_current(work)

        for work in filter(is_gone, self._pool.out()):
            self._uncount(work)
        for work in self._pool.drop(is_gone):
            self._uncount(work)
        held.epoch = self._epochs.rewind(partition, offset)
        held.tracker.rewind(offset)
        held.sent, held.map = None, None  # what was committed may lie above

    def _enter(self, record: Record, epoch: int) -> None:
        size_bytes = record.size_bytes
        self._flow.saw(size_bytes)
        lane = lane_of(record, self._order, self._null_keys)
        work = Work(record, epoch=epoch, lane=lane, number=next(self._numbers), size_bytes=size_bytes)
        self._records += 1
        self._bytes += size_bytes
        self._pool.enter(work)

    def _is_current(self, work: Work) -> bool:
        return self._epochs.is_current(work.record.partition, work.epoch, work.record.offset)

    def _otherwise(self, work: Work, result: Result, now_s: float) -> None:
        match result:
            case Skip():
                self.counts.skipped += 1
                self._finish(work)
            case Retry(after_s):
                self.counts.retried += 1
                self._again(work, after_s, now_s)
            case Raised(reason):
                self.counts.raised += 1
                work.failures += 1
                if work.failures < self._retries.attempts_max:
                    self._again(work, None, now_s)
                else:
                    self._give_up(work, DeadLetter(f"raised {work.failures} times; last: {reason}"))
            case DeadLetter():
                self._give_up(work, result)
            case Park():
                self._park(work, result)
            case _:
                self._finish(work)

    def _again(self, work: Work, after_s: float | None, now_s: float) -> None:
        attempt = work.record.attempt + 1
        work.record = work.record._replace(attempt=attempt)
        wait_s = self._retries.wait_s(attempt, self._chance()) if after_s is None else max(after_s, 0.0)
        self._delay(work, wait_s, now_s, None)

    def _give_up(self, work: Work, letter: DeadLetter) -> None:
        if self._has_dead_letters:
            work.failures = 0  # counts what the letter fails from here on
            self._bury(work, letter)
        else:
            self._park(work, Park(f"there is no dead letter topic for: {letter.reason}"))

    def _park(self, work: Work, parked: Park) -> None:
        self.counts.parked += 1
        self._pool.parked[work.record.partition, work.record.offset] = (work, parked)

    def _bury(self, work: Work, letter: DeadLetter) -> None:
        self._pool.burying[work.number] = (work, letter)
        told = Letter(record=work.record, reason=letter.reason, attempts=work.record.attempt + 1)
        self._letters.append((work.number, told))

    def _delay(self, work: Work, wait_s: float, now_s: float, letter: DeadLetter | None) -> None:
        self._pool.delay(work, now_s + wait_s, letter)

    def _finish(self, work: Work) -> None:
        record = work.record
        held = self._assigned[record.partition]
        held.tracker.finish(record.offset)
        held.dirty = True
        if record.leader_epoch > held.leader_epoch:
            held.leader_epoch = record.leader_epoch
        self._uncount(work)
        self._pool.let_go(work)

    def _uncount(self, work: Work) -> None:
        self._records -= 1
        self._bytes -= work.size_bytes
