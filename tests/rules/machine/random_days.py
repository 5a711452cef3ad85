"""Random histories with random faults: a small log that lives half an hour a step, by seed.

Segments hold ten offsets and 1,000 bytes; every broker rolls at the same offsets. What a step does may be
right or wrong: nobody here knows, the judges tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from rules.events import (
    EpochStarted,
    Operation,
    ReplicaAppearance,
    SegmentRemoval,
    Source,
    TopicDeleted,
    Truncated,
)
from rules.identity import LogId
from tests.rules.machine.histories import BROKERS, DAY_MS, HOUR_MS, LOG, MINUTE_MS, T0_MS, History

STEP_MS = 30 * MINUTE_MS
SEGMENT = 10
SIZE = 1_000
WEEK_MS = 7 * DAY_MS


class Days:
    """One history in the making. `disk` and `tier` are what is there, `newest` each segment's time."""

    def __init__(self, seed: int, log: LogId = LOG) -> None:
        self.rng = random.Random(seed)
        self.mode = self.rng.choice(("none", "none", "kip405", "ours"))
        self.h = History(mode=self.mode, now_ms=T0_MS - 3 * HOUR_MS, log=log)
        self.newest: dict[int, int] = {}
        self.starts = dict.fromkeys(BROKERS, 0)
        self.disk: dict[int, list[int]] = {broker: [] for broker in BROKERS}
        self.tier: dict[str, int] = {}
        self.end = SEGMENT * self.rng.randint(3, 8)
        self.retention_ms = WEEK_MS
        self.effective_ms = WEEK_MS
        self.limit = self.rng.choice((None, None, SIZE * 5))
        self.copies = 0
        self.gone = False
        self._begin()

    def _begin(self) -> None:
        h = self.h
        base = {"total_retention_ms": '"7d"'}
        if self.limit is not None:
            base["total_retention_bytes"] = str(self.limit)
        if self.mode == "ours":
            base |= {"tiering": "true", "local_retention_ms": '"1h"'}
            self.effective_ms = HOUR_MS
        if self.mode == "ours" and self.limit is not None:
            base["local_retention_bytes"] = str(self.limit)
        h.declares("CHG-0", **base, **self._declared())
        h.now_ms = T0_MS
        if self.mode == "kip405":
            h.config("remote.storage.enable", "true", first=True)
        h.config("retention.ms", str(self.effective_ms), first=True)
        h.config("retention.bytes", str(-1 if self.limit is None else self.limit), first=True)
        h.leadership()
        for at in range(0, self.end, SEGMENT):
            self.newest[at] = self._time()
        for broker in BROKERS:
            h.started(broker, start=0, local=0, watermark=self.end, how=ReplicaAppearance.FIRST_SEEN)
            size = SIZE * (self.end // SEGMENT)
            h.baseline(broker, start=0, local=0, watermark=self.end, size_bytes=size, periodic=False)
            for at in range(0, self.end, SEGMENT):
                h.closed(broker, at, at + SEGMENT, self.newest[at], SIZE)
                self.disk[broker].append(at)
        if self.mode != "none":
            for at in range(0, self.end, SEGMENT):
                if self.rng.random() < 0.95:
                    self._copy(at)
        self._next()

    def _declared(self) -> dict[str, str]:
        """What else the policy says."""
        return {}

    def _time(self) -> int:
        """Of a segment: most are young, some expire within the history, some have expired."""
        choice = self.rng.random()
        if choice < 0.6:
            return self.h.now_ms - HOUR_MS
        if choice < 0.85:
            return self.h.now_ms - WEEK_MS + self.rng.randint(1, 5) * STEP_MS
        return self.h.now_ms - WEEK_MS - 10 * MINUTE_MS

    def _copy(self, at: int) -> None:
        self.copies += 1
        name = f"s{self.copies}"
        self.tier[name] = at
        self.h.copied(name, at, at + SEGMENT, self.newest[at], SIZE)

    def _next(self) -> None:
        passed = (self.h.now_ms - T0_MS) // STEP_MS + 1
        self.h.now_ms = T0_MS + passed * STEP_MS

    def _move(self, broker: int, new: int, local: int | None = None) -> None:
        old = self.starts[broker]
        if old != new:
            held = min(self.disk[broker], default=self.end)
            self.h.start(broker, old, new, local=held if local is None else local, watermark=self.end)
            self.starts[broker] = new

    def _drop(self, broker: int, at: int, how: SegmentRemoval = SegmentRemoval.RENAMED) -> None:
        if at in self.disk[broker]:
            self.disk[broker].remove(at)
            self.h.dropped(broker, at, at + SEGMENT, self.newest[at], SIZE, how)

    def _others(self) -> list[int]:
        return [broker for broker in BROKERS if broker != self.h.leader]

    def _in_order(self) -> list[int]:
        return [self.h.leader, *self._others()]

    # --- what a step may be

    def roll(self) -> None:
        at = self.end
        self.newest[at] = self._time()
        self.end += SEGMENT
        for broker in BROKERS:
            self.h.closed(broker, at, at + SEGMENT, self.newest[at], SIZE)
            self.disk[broker].append(at)
            self.h.watermark(
                broker, self.end, start=self.starts[broker], size_bytes=SIZE * len(self.disk[broker])
            )
        if self.mode != "none" and self.rng.random() < 0.9:
            self._copy(at)

    def head_goes(self) -> None:
        """Whether it may or not."""
        count = self.rng.randint(1, 2)
        if self.mode == "kip405":
            self._remote_head(count)
            return
        for broker in self._in_order():
            for at in sorted(self.disk[broker])[:count]:
                if len(self.disk[broker]) > 1:
                    self._drop(broker, at)
            self._move(broker, max(self.starts[broker], min(self.disk[broker])))

    def _remote_head(self, count: int) -> None:
        heads = sorted(self.tier.items(), key=lambda each: (each[1], each[0]))[:count]
        if not heads:
            return
        new = max(at for _, at in heads) + SEGMENT
        if new >= self.end:
            return
        for broker in self._in_order():
            self._move(broker, max(self.starts[broker], new))
        for name, at in heads:
            del self.tier[name]
            self.h.expunged(name, at, at + SEGMENT, finish=self.rng.random() < 0.8)
        for broker in self._in_order():
            for at in [each for each in sorted(self.disk[broker]) if each < new]:
                self._drop(broker, at)

    def local_goes(self) -> None:
        """Local retention beside a tier; on an untiered log the same as `head_goes`, on one broker."""
        if self.mode == "none":
            broker = self.rng.choice(BROKERS)
            if len(self.disk[broker]) > 1:
                self._drop(broker, min(self.disk[broker]))
                self._move(broker, max(self.starts[broker], min(self.disk[broker])))
            return
        for broker in self._in_order():
            if len(self.disk[broker]) > 2:
                self._drop(broker, min(self.disk[broker]))
                if self.mode == "ours":
                    self._move(broker, max(self.starts[broker], min(self.disk[broker])))

    def records_deleted(self) -> None:
        new = self.rng.randint(self.starts[self.h.leader], self.end - 1)
        if self.rng.random() < 0.7:
            self.h.allows(Operation.DELETE_RECORDS, start=0, end=new, hours=1)
        for broker in self._in_order():
            self._move(broker, max(self.starts[broker], new))

    def follower_jumps(self) -> None:
        broker = self.rng.choice(self._others())
        new = self.starts[broker] + self.rng.randint(1, 2) * SEGMENT
        if new < self.end:
            self._move(broker, new)

    def follower_catches_up(self) -> None:
        for broker in self._others():
            if self.starts[broker] < self.starts[self.h.leader]:
                self._move(broker, self.starts[self.h.leader])

    def start_falls(self) -> None:
        broker = self.rng.choice(BROKERS)
        if self.starts[broker] > 0:
            self._move(broker, self.rng.randrange(self.starts[broker]))

    def elected(self) -> None:
        self.h.elects(self.rng.choice(self._others()))
        if self.rng.random() < 0.3:
            low = self.rng.random() < 0.3
            start = self.end - SEGMENT // 2 if low else self.end
            self.h.replica(EpochStarted, self.h.leader, epoch=self.h.epoch, start_offset=start)

    def followers_leave_the_isr(self) -> None:
        self.h.syncs(self.h.leader)

    def followers_come_back(self) -> None:
        self.h.syncs(*BROKERS)

    def retention_changes(self) -> None:
        old = self.effective_ms
        self.effective_ms = self.rng.choice((HOUR_MS, 2 * DAY_MS, WEEK_MS, 9 * DAY_MS))
        if old != self.effective_ms:
            self.h.config("retention.ms", str(self.effective_ms), str(old))

    def policy_changes(self) -> None:
        words = {HOUR_MS: '"1h"', 2 * DAY_MS: '"2d"', WEEK_MS: '"7d"', 9 * DAY_MS: '"9d"'}
        new = self.rng.choice([each for each in words if each != self.retention_ms])
        self.retention_ms = new
        self.h.declares(f"CHG-{self.h.policy_offset}", total_retention_ms=words[new])

    def middle_vanishes(self) -> None:
        broker = self.rng.choice(BROKERS)
        inner = sorted(self.disk[broker])[1:-1]
        if inner:
            self._drop(broker, self.rng.choice(inner), SegmentRemoval.GONE)

    def copied_again(self) -> None:
        live = sorted(set(self.tier.values()))
        if live:
            self._copy(self.rng.choice(live))

    def copy_goes(self) -> None:
        if self.tier:
            name = self.rng.choice(sorted(self.tier))
            at = self.tier.pop(name)
            self.h.expunged(name, at, at + SEGMENT)

    def tail_is_cut(self) -> None:
        broker = self.rng.choice(self._others())
        new = self.end - self.rng.choice((0, 0, SEGMENT // 2))
        self.h.replica(Truncated, broker, old_end=self.end + 3, new_end=new)

    def topic_goes(self) -> None:
        if self.rng.random() < 0.5:
            self.h.allows(Operation.DELETE_TOPIC)
        self.h.kraft_offset += 1
        self.h.say(
            TopicDeleted,
            component="metadata",
            topic_id="T1",
            topic="orders",
            source=Source.KRAFT,
            metadata_offset=self.h.kraft_offset,
            is_coalesced=False,
            not_before_ms=None,
        )
        self.gone = True

    def nothing(self) -> None:
        """Time passes."""


ALWAYS: tuple[Callable[[Days], None], ...] = (
    Days.roll,
    Days.roll,
    Days.head_goes,
    Days.local_goes,
    Days.records_deleted,
    Days.follower_jumps,
    Days.follower_catches_up,
    Days.start_falls,
    Days.elected,
    Days.followers_leave_the_isr,
    Days.followers_come_back,
    Days.retention_changes,
    Days.policy_changes,
    Days.middle_vanishes,
    Days.tail_is_cut,
    Days.nothing,
)
D = TypeVar("D", bound=Days)
TIERED: tuple[Callable[[Days], None], ...] = (Days.copied_again, Days.copy_goes)


def random_history(seed: int) -> History:
    """The same for a seed, whoever asks."""
    days = Days(seed)
    return lived(days, [*ALWAYS, *(TIERED if days.mode != "none" else ())], most=7)


def lived(days: D, actions: Sequence[Callable[[D], None]], *, most: int) -> History:
    """Up to so many of these actions, and time for what they left to be told."""
    for _ in range(days.rng.randint(1, most)):
        days.rng.choice(actions)(days)
        days._next()
    if days.rng.random() < 0.05:
        days.topic_goes()
    days.h.now_ms += 3 * HOUR_MS
    return days.h
