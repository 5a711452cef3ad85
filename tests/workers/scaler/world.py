"""A desk over made-up groups, as fast as a test wants it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from tests.workers.scaler.seen import partition, sample
from workers.scaler.desk import Around, Desk
from workers.scaler.options import Options
from workers.scaler.ports import InMemoryLog, SharedLog, Unseen
from workers.scaler.values import Sample

# A scalerMetadata whose seconds are hundredths.
QUICK = {
    "consumerGroup": "g",
    "topic": "t",
    "samplingIntervalSeconds": "0.1",
    "gapMaxSeconds": "1.5",
    "sustainSeconds": "0.4",
    "releaseSeconds": "0.6",
    "coolDownSeconds": "0.2",
    "rebalanceQuietSeconds": "0",
    "stallSeconds": "60",
    "helpSeconds": "0.2",
    "balancedReplicas": "none",
    "allowIdleConsumers": "true",
    "maxReplicas": "8",
}


@dataclass
class FakeGroups:
    """A group whose lag a test sets."""

    lag: int = 0
    trouble: str | None = None
    members: int = 1
    looks: int = 0
    end: int = 0
    lock: Lock = field(default_factory=Lock)

    def look(self, options: Options) -> Sample:
        with self.lock:
            self.looks += 1
            if self.trouble is not None:
                raise Unseen(self.trouble)
            self.end += 10
            committed = self.end - self.lag
            return sample(
                0.0, partition(committed=committed + 10**6, end=self.end + 10**6), members=self.members
            )


def desk(groups: FakeGroups, shared: SharedLog | None = None, *, by: str = "a") -> Desk:
    return Desk(
        Around(
            groups={"default": groups},
            shared=shared or InMemoryLog(),
            monotonic_s=time.monotonic,
            wall_s=time.time,
            chance=lambda: 0.5,
            by=by,
        )
    )


def wait_until(is_so: Callable[[], bool], *, deadline_s: float = 90.0) -> None:
    """Until it is so; an assertion of why not."""
    last_moment = time.monotonic() + deadline_s
    while not is_so():
        assert time.monotonic() < last_moment, "it did not come to be so"
        with suppress(InterruptedError):
            time.sleep(0.01)
