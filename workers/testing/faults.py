"""What goes wrong and when, from a seed: the same seed is the same run, step by step.

A plan is drawn before it is played, so that it can be printed, shortened by hand and played again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from workers.consumer.loop import Settings
from workers.consumer.outcomes import DeadLetter, Done, Park, Raised, Result, Retry, Skip
from workers.consumer.records import Partition
from workers.testing.world import SETTINGS, Member, World

KEYS = 6
PARTITIONS = 3
MEMBERS_MAX = 3


class Deed(Enum):
    PRODUCE = "produce"
    TURN = "turn"
    FINISH = "finish"
    JOIN = "join"
    LEAVE = "leave"
    CRASH = "crash"
    EXPEL = "expel"
    COMPACT = "compact"
    MARK = "mark"
    CUT = "cut"
    COMMIT_FAILS = "commit fails"
    LETTER_FAILS = "letter fails"
    WAIT = "wait"
    UNPARK = "unpark"


# How often each is drawn; a fault in one step out of eight.
WEIGHTS = {
    Deed.PRODUCE: 30,
    Deed.TURN: 40,
    Deed.FINISH: 40,
    Deed.WAIT: 6,
    Deed.JOIN: 2,
    Deed.LEAVE: 1,
    Deed.CRASH: 2,
    Deed.EXPEL: 2,
    Deed.COMPACT: 2,
    Deed.MARK: 2,
    Deed.CUT: 1,
    Deed.COMMIT_FAILS: 2,
    Deed.LETTER_FAILS: 1,
    Deed.UNPARK: 2,
}
RESULTS: Sequence[Result] = (
    *[Done()] * 8,
    Skip("not ours"),
    Retry(0.02),
    Raised("boom"),
    DeadLetter("poison"),
    Park("odd"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """`which` and `how` choose among what there is when the step is played."""

    deed: Deed
    which: int
    how: int


def plan(seed: int, steps: int) -> list[Step]:
    draw = random.Random(seed)
    deeds = draw.choices(list(WEIGHTS), weights=list(WEIGHTS.values()), k=steps)
    return [Step(deed, draw.randrange(1 << 16), draw.randrange(1 << 16)) for deed in deeds]


def replay(seed: int, *, steps: int = 300, settings: Settings = SETTINGS) -> World:
    """Play the plan of a seed to its end and check it; an error names the seed."""
    world = World([Partition("t", number) for number in range(PARTITIONS)], settings)
    world.join()
    try:
        for step in plan(seed, steps):
            play(world, step)
            world.check()
        world.quiesce()
        world.check_end()
    except AssertionError as failure:
        raise AssertionError(f"{failure} (workers.testing.faults.replay({seed}, steps={steps}))") from failure
    return world


def play(world: World, step: Step) -> None:
    """One step; what there is nothing for is left out."""
    partition = sorted(world.broker.logs)[step.which % PARTITIONS]
    log = world.broker.logs[partition]
    if step.deed is Deed.PRODUCE:
        key = None if step.how % (KEYS + 1) == KEYS else b"key-%d" % (step.how % (KEYS + 1))
        world.broker.produce(partition, key)
    elif step.deed is Deed.COMPACT:
        log.compact()
    elif step.deed is Deed.MARK:
        log.mark()
    elif step.deed is Deed.CUT:
        point = world.broker.committed(partition)
        if (
            point is not None and point.leader_epoch >= 0
        ):  # else nothing tells a reader that the log is another
            log.cut(max(log.end - step.how % 4, log.start))
    elif step.deed is Deed.WAIT:
        world.clock.advance(0.01 * (step.how % 50))
    elif step.deed is Deed.JOIN:
        if len(world.members) < MEMBERS_MAX:
            world.join()
    elif world.members:
        _to_member(world, world.members[step.which % len(world.members)], step)


def _to_member(world: World, member: Member, step: Step) -> None:
    match step.deed:
        case Deed.TURN:
            world.turn(member)
        case Deed.FINISH if member.executor.held:
            member.executor.finish(step.which % len(member.executor.held), RESULTS[step.how % len(RESULTS)])
        case Deed.LEAVE:
            world.leave(member)
        case Deed.CRASH:
            world.crash(member)
        case Deed.EXPEL:
            world.expel(member)
        case Deed.COMMIT_FAILS:
            member.source.fail_commits += 1 + step.how % 2
        case Deed.LETTER_FAILS:
            member.letters.fail_next += 1
        case Deed.UNPARK:
            for seen in member.consumer.snapshot().partitions:
                for start, _ in seen.gaps:
                    member.consumer.unpark(seen.partition, start)
        case _:
            pass


def tally(seeds: Sequence[int], *, steps: int = 300) -> Counter[str]:
    """Play many and add up what happened to their consumers: whether the plan reaches what it should."""
    total: Counter[str] = Counter()
    for seed in seeds:
        world = replay(seed, steps=steps)
        for member in world.members:
            total.update(member.consumer.snapshot().counts)
    return total
