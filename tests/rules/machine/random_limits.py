"""Random histories of limits, by seed: what expires, how fast segments go, empty logs whose watermark rises.

`random_limits` has a day as `random_days` makes them, under a policy with a small blast limit, with deletions
on request and holds more often; `random_rises` has brokers that start, and watermarks that rise or seem to.
What a step does may be right or wrong: nobody here knows, the judges tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from rules.events import Operation, ReplicaAppearance, Truncated
from rules.identity import LogId
from tests.rules.machine import acts
from tests.rules.machine.histories import BROKERS, HOUR_MS, LOG, MINUTE_MS, T0_MS, History
from tests.rules.machine.random_days import ALWAYS, SEGMENT, SIZE, TIERED, WEEK_MS, Days, lived


class Limits(Days):
    """`terms` decides what the policy says: equal for all logs of a topic."""

    def __init__(self, seed: int, terms: int, log: LogId) -> None:
        self.said = random.Random(f"{terms} policy")
        self.holds: dict[str, bool] = {}  # and whether it stands
        super().__init__(seed, log)

    def _declared(self) -> dict[str, str]:
        words = {
            "blast_limit_segments_per_hour": str(self.said.choice((0, 1, 2, 3))),
            "record_deletion": self.said.choice(('"authorised"', '"authorised"', '"authorised"', '"free"')),
            "authorisers": '["alice"]',
        }
        if self.mode == "ours" and self.rng.random() < 0.8:
            words |= {"remote_deletion": "true", "delete_grace_ms": '"1h"'}
        return words

    def _time(self) -> int:
        """Out of order, as producers say them: many have expired, and lie behind one that has not."""
        return super()._time() if self.rng.random() < 0.6 else self.h.now_ms - WEEK_MS - HOUR_MS

    def records_go(self) -> None:
        """On request, files and all; allowed, or not."""
        count = self.rng.randint(1, 4)
        heads = sorted(self.disk[self.h.leader])[:count]
        if self.mode == "kip405" or len(heads) == len(self.disk[self.h.leader]):
            return
        new = heads[-1] + SEGMENT
        if self.rng.random() < 0.8:
            self.h.allows(Operation.DELETE_RECORDS, start=0, end=new, hours=1)
        for broker in self._in_order():
            for at in heads:
                if len(self.disk[broker]) > 1:
                    self._drop(broker, at)
            self._move(broker, max(self.starts[broker], min(self.disk[broker])))

    def held(self) -> None:
        name = f"h{len(self.holds)}"
        self.holds[name] = True
        acts.holds(self.h, name)

    def released(self) -> None:
        for name in [each for each, stands in self.holds.items() if stands]:
            self.holds[name] = False
            acts.releases(self.h, name)

    def soon(self) -> None:
        """The next step comes within the grace of this one."""
        self.h.after(minutes=self.rng.choice((1, 5, 10)))
        self.rng.choice(_HEADS)(self)


_HEADS: tuple[Callable[[Limits], None], ...] = (Limits.head_goes, Limits.local_goes, Limits.records_go)
OF_LIMITS: tuple[Callable[[Limits], None], ...] = (
    Limits.head_goes,
    Limits.records_go,
    Limits.records_go,
    Limits.held,
    Limits.released,
    Limits.soon,
    Limits.soon,
    Limits.nothing,
)


def random_limits(seed: int, terms: int | None = None, log: LogId = LOG) -> History:
    """The same for a seed, whoever asks."""
    days = Limits(seed, seed if terms is None else terms, log)
    actions = [*ALWAYS, *OF_LIMITS, *OF_LIMITS, *(TIERED if days.mode != "none" else ())]
    return lived(days, actions, most=8)


class Rises:
    """Three replicas of one log; `ends` and `starts` are each one's."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.h = History(mode="none", now_ms=T0_MS)
        self.starts = dict.fromkeys(BROKERS, 0)
        self.ends = dict.fromkeys(BROKERS, 100)
        self.h.leadership()
        for broker in BROKERS:
            self.h.started(broker, start=0, local=0, watermark=100, how=ReplicaAppearance.FIRST_SEEN)
            if self.rng.random() < 0.8:
                self.h.baseline(broker, start=0, local=0, watermark=100, size_bytes=SIZE, periodic=False)

    def step(self) -> None:
        broker = self.rng.choice(BROKERS)
        self.rng.choice(OF_RISES)(self, broker)
        self.h.after(seconds=self.rng.choice((1, 20, 90, 130, 200, 1_800)))

    def _read(self, broker: int, size_bytes: int | None) -> None:
        self.h.watermark(broker, self.ends[broker], start=self.starts[broker], size_bytes=size_bytes)

    def grows(self, broker: int) -> None:
        self.ends[broker] += self.rng.randint(0, 20)
        self._read(broker, self.rng.choice((SIZE, SIZE, None)))

    def rises_empty(self, broker: int) -> None:
        """Out of nothing, or over records that came and went unseen."""
        self.ends[broker] += self.rng.choice((0, 50))
        self.starts[broker] = max(0, self.ends[broker] - self.rng.choice((0, 0, 0, 1)))
        self._read(broker, 0)

    def starts_up(self, broker: int) -> None:
        self.h.restarted(broker, clean=self.rng.choice((True, False, None)))

    def is_wiped(self, broker: int) -> None:
        """As a broker loads it whose start is said to lie above its end; told in either order."""
        order = [self.starts_up, self.rises_empty]
        self.rng.shuffle(order)
        for each in order:
            each(broker)
            self.h.after(seconds=self.rng.choice((1, 30)))

    def is_built_anew(self, broker: int) -> None:
        self.starts[broker] = self.ends[broker] = self.rng.choice((0, self.ends[broker]))
        self.h.started(broker, start=self.starts[broker], local=None, watermark=self.ends[broker])

    def is_cut(self, broker: int) -> None:
        old = self.ends[broker]
        self.ends[broker] = max(0, old - self.rng.randint(1, 30))
        self.starts[broker] = min(self.starts[broker], self.ends[broker])
        self.h.replica(Truncated, broker, old_end=old, new_end=self.ends[broker])

    def is_measured(self, broker: int) -> None:
        size = 0 if self.starts[broker] >= self.ends[broker] else SIZE
        start, end = self.starts[broker], self.ends[broker]
        self.h.baseline(broker, start=start, local=start, watermark=end, size_bytes=size)

    def deletes(self, broker: int) -> None:
        """Its start moves, up to all that it has."""
        old, self.starts[broker] = self.starts[broker], self.ends[broker]
        if old < self.ends[broker]:
            self.h.start(broker, old, self.ends[broker], local=old, watermark=self.ends[broker])


OF_RISES: tuple[Callable[[Rises, int], None], ...] = (
    Rises.grows,
    Rises.rises_empty,
    Rises.rises_empty,
    Rises.starts_up,
    Rises.is_wiped,
    Rises.is_wiped,
    Rises.is_built_anew,
    Rises.is_cut,
    Rises.is_measured,
    Rises.deletes,
)


def random_rises(seed: int) -> History:
    """The same for a seed, whoever asks."""
    rises = Rises(seed)
    for _ in range(rises.rng.randint(2, 12)):
        rises.step()
    rises.h.now_ms += 10 * MINUTE_MS
    return rises.h
