"""What the tests of the consumer share: a world with one or two partitions, and short ways to move it."""

from __future__ import annotations

from dataclasses import replace

from workers.consumer.loop import Settings
from workers.consumer.outcomes import Done, Result
from workers.consumer.records import Partition
from workers.consumer.snapshot import PartitionSnapshot
from workers.testing.world import SETTINGS, Member, World

P0, P1 = Partition("t", 0), Partition("t", 1)
NO_MAPS = replace(SETTINGS, commits=replace(SETTINGS.commits, maps=False))


def world(*keys: bytes | None, partitions: int = 1, settings: Settings = NO_MAPS) -> World:
    """`keys` are written to the first partition."""
    made = World([Partition("t", number) for number in range(partitions)], settings)
    for key in keys:
        made.broker.produce(P0, key)
    return made


def joined(made: World, *, at_once: int = 4) -> Member:
    member = made.join(at_once=at_once)
    made.turns(2)
    return member


def running(member: Member) -> list[int]:
    return [work.record.offset for work in member.executor.held]


def finish(member: Member, offset: int, result: Result | None = None) -> None:
    """The handler of this offset ends so."""
    member.executor.finish(running(member).index(offset), result or Done())


def settle(made: World, turns: int = 6) -> None:
    """Long enough for commits by time to be sent and answered."""
    for _ in range(turns):
        made.turns()
        made.clock.advance(0.02)


def committed(made: World, partition: Partition = P0) -> int | None:
    point = made.broker.committed(partition)
    return point.offset if point else None


def seen(member: Member, partition: Partition = P0) -> PartitionSnapshot:
    return next(each for each in member.consumer.snapshot().partitions if each.partition == partition)


def counts(member: Member) -> dict[str, int]:
    return dict(member.consumer.snapshot().counts)
