"""A Kafka cluster in memory, as far as a consumer group can tell: logs, offsets, members, rebalances.

Owns what is true: what was written, what was removed since, what is committed and by whom a partition is
held. It refuses a commit of a partition that its member does not hold, as a group coordinator does.
Cooperative: a partition is given to its next member only after the one before let it go, or was expelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workers.consumer.commits import CommitAnswer, CommitPoint
from workers.consumer.records import Partition, Record


class Identity(NamedTuple):
    """One record for all time: an offset is used again after an unclean election, under a higher epoch."""

    partition: Partition
    offset: int
    leader_epoch: int


def identity(record: Record) -> Identity:
    return Identity(record.partition, record.offset, record.leader_epoch)


@dataclass(slots=True)
class MemoryLog:
    partition: Partition
    records: dict[int, Record] = field(default_factory=dict)  # by offset, rising; what is there now
    removed: set[Identity] = field(default_factory=set)
    start: int = 0
    end: int = 0
    leader_epoch: int = 0
    cuts: list[int] = field(default_factory=list)  # by epoch: where the one before it ended

    def append(self, key: bytes | None, value: bytes | None) -> Record:
        record = Record(self.partition, self.end, key, value, self.end, (), self.leader_epoch)
        self.records[self.end] = record
        self.end += 1
        return record

    def mark(self) -> None:
        """A transaction marker: an offset that nobody receives."""
        self.end += 1

    def compact(self) -> None:
        """Of each key the last record stays."""
        last = {record.key: offset for offset, record in self.records.items()}
        self._remove(
            o for o, record in self.records.items() if record.key is not None and last[record.key] != o
        )

    def trim(self, offset: int) -> None:
        """Retention: the log begins at `offset`."""
        self.start = max(self.start, min(offset, self.end))
        self._remove(each for each in self.records if each < self.start)

    def cut(self, offset: int) -> None:
        """An unclean election: what was at and behind `offset` is gone, and its offsets are used again."""
        self._remove(each for each in self.records if each >= offset)
        self.end = max(min(self.end, offset), self.start)
        self.cuts.append(self.end)
        self.leader_epoch += 1

    def valid(self, offset: int, leader_epoch: int) -> int:
        """Up to where a reader that had come to `offset` under this epoch read the log that there is now."""
        return min([offset, *self.cuts[leader_epoch:]]) if leader_epoch >= 0 else offset

    def _remove(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            self.removed.add(identity(self.records.pop(offset)))


class Committed(NamedTuple):
    member: str
    partition: Partition
    offset: int


class MemoryBroker:
    """One group on some partitions."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.logs = {each: MemoryLog(each) for each in partitions}
        self._committed: dict[Partition, CommitPoint] = {}
        self.commits: list[Committed] = []  # all that were accepted, in order
        self.written: list[Record] = []
        self.members: list[str] = []
        self.owners: dict[Partition, str] = {}

    def produce(self, partition: Partition, key: bytes | None, value: bytes | None = None) -> Record:
        record = self.logs[partition].append(key, value)
        self.written.append(record)
        return record

    def committed(self, partition: Partition) -> CommitPoint | None:
        """As its next reader takes it: by the leader epoch it goes back to where the logs part (KIP-320)."""
        point = self._committed.get(partition)
        if point is None:
            return None
        valid = self.logs[partition].valid(point.offset, point.leader_epoch)
        return point if valid == point.offset else CommitPoint(offset=valid, leader_epoch=point.leader_epoch)

    def join(self, member: str) -> None:
        self.members.append(member)

    def leave(self, member: str) -> None:
        """Also what a session's end comes to: its partitions are free at once."""
        if member in self.members:
            self.members.remove(member)
        self.owners = {each: owner for each, owner in self.owners.items() if owner != member}

    def target(self, member: str) -> frozenset[Partition]:
        """What it should hold."""
        if member not in self.members:
            return frozenset()
        mine = self.members.index(member)
        return frozenset(
            each for number, each in enumerate(sorted(self.logs)) if number % len(self.members) == mine
        )

    def commit(self, member: str, points: Mapping[Partition, CommitPoint]) -> list[CommitAnswer]:
        answers = []
        for partition, point in points.items():
            error = None if self.owners.get(partition) == member else "the group has another generation"
            if error is None:
                self._committed[partition] = point
                self.commits.append(Committed(member, partition, point.offset))
            answers.append(CommitAnswer(partition=partition, offset=point.offset, error=error))
        return answers

    def lag(self) -> int:
        """Records that are there and not below the commit."""
        return sum(
            offset >= (point.offset if (point := self.committed(partition)) else 0)
            for partition, log in self.logs.items()
            for offset in log.records
        )
