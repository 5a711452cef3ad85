"""A member of the group in memory, as the Kafka adapter is one; it fails when it is told to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from workers.consumer.commits import CommitAnswer, CommitPoint
from workers.consumer.ports import Listener, Polled, SourceBroken, Start
from workers.consumer.records import Partition, Record
from workers.testing.broker import MemoryBroker
from workers.testing.clock import FakeClock


class MemorySource:
    def __init__(self, broker: MemoryBroker, member: str, clock: FakeClock) -> None:
        self.member = member
        self.paused: set[Partition] = set()
        self.polls = 0
        self.break_next_poll = False
        self.fail_commits = 0  # so many of the next commits fail
        self._broker, self._clock = broker, clock
        self._listener: Listener | None = None
        self._positions: dict[Partition, int] = {}
        self._epochs: dict[Partition, int] = {}
        self._told_end: dict[Partition, int] = {}
        self._answers: list[CommitAnswer] = []

    def open(self, listener: Listener) -> None:
        self._listener = listener
        self._broker.join(self.member)

    def poll(self, records_max: int, timeout_s: float) -> Polled:
        self.polls += 1
        if self.break_next_poll:
            self.break_next_poll = False
            raise SourceBroken("as planned")
        assert self._listener is not None
        if self._answers:
            answers, self._answers = self._answers, []
            self._listener.committed(answers)
        self._rebalance(self._listener)
        polled = self._fetch(records_max)
        if not polled.records and not polled.ends:
            self._clock.advance(timeout_s)
        return polled

    def pause(self, partitions: Collection[Partition]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Collection[Partition]) -> None:
        self.paused -= set(partitions)

    def commit(self, points: Mapping[Partition, CommitPoint]) -> None:
        self._answers += self._commit(points)

    def commit_and_wait(
        self, points: Mapping[Partition, CommitPoint], *, deadline_s: float
    ) -> Sequence[CommitAnswer]:
        assert deadline_s > 0
        return self._commit(points)

    def close(self) -> None:
        """Leaves in order; as with Kafka's client, the listener hears of what it still held."""
        if self._listener is not None and self._positions:
            self._listener.revoked(list(self._positions))
        self.vanish()

    def vanish(self) -> None:
        """The process was killed: nobody hears of anything."""
        self._positions.clear()
        self._broker.leave(self.member)

    def _commit(self, points: Mapping[Partition, CommitPoint]) -> list[CommitAnswer]:
        if self.fail_commits:
            self.fail_commits -= 1
            return [
                CommitAnswer(partition=each, offset=point.offset, error="as planned")
                for each, point in points.items()
            ]
        return self._broker.commit(self.member, points)

    def _rebalance(self, listener: Listener) -> None:
        broker = self._broker
        if self.member not in broker.members:  # expelled: it hears of it when it polls again
            gone = list(self._positions)
            self._forget(gone)
            listener.lost(gone)
            broker.join(self.member)
        target = broker.target(self.member)
        if surplus := [each for each in self._positions if each not in target]:
            listener.revoked(surplus)
            self._forget(surplus)
            for each in surplus:
                broker.owners.pop(each, None)
        starts: dict[Partition, Start] = {}
        for each in sorted(target - self._positions.keys()):
            if each not in broker.owners:
                broker.owners[each] = self.member
                point = broker.committed(each)
                starts[each] = Start(point.offset, point.metadata, point.leader_epoch) if point else Start()
                self._positions[each], self._epochs[each] = (
                    starts[each].offset or 0,
                    starts[each].leader_epoch,
                )
        if starts:
            listener.assigned(starts)

    def _forget(self, partitions: Collection[Partition]) -> None:
        for each in partitions:
            del self._positions[each]
            self._told_end.pop(each, None)
        self.paused -= set(partitions)

    def _fetch(self, records_max: int) -> Polled:
        records: list[Record] = []
        ends: list[tuple[Partition, int]] = []
        for partition, position in self._positions.items():
            log = self._broker.logs[partition]
            position = max(min(log.valid(position, self._epochs[partition]), log.end), log.start)
            if partition not in self.paused:
                for offset in [each for each in log.records if each >= position]:
                    if len(records) >= records_max:
                        break
                    records.append(log.records[offset])
                    position = offset + 1
                    self._epochs[partition] = log.records[offset].leader_epoch
                if not any(each >= position for each in log.records) and position <= log.end:
                    position = log.end
                    if self._told_end.get(partition) != position:
                        self._told_end[partition] = position
                        ends.append((partition, position))
            self._positions[partition] = position
        return Polled(records, ends)
