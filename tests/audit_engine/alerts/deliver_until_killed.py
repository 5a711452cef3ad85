"""A process that delivers the runs of `test_killed`, and kills itself at one step: -9, as a machine would."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from audit_engine.alerts.deliverer import Deliverer, Means
from audit_engine.alerts.http import HttpTransport
from audit_engine.alerts.record import Record
from tests.audit_engine.alerts.news import DAY_MS, Runs, endpoint, opened, over, run

RUNS = (
    run(1, opened("a"), opened("b", incident="a", parent="a"), opened("c")),
    run(2, over("b", "restored", incident="a", parent="a")),
    run(3, over("a"), over("c"), opened("d")),
)


def main() -> None:
    folder, url, die_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    steps = 0

    def at(_: str) -> None:
        nonlocal steps
        steps += 1
        if steps == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    clock_ms = time.time_ns() // 1_000_000
    means = Means(now_ms=lambda: clock_ms, chance=random.random, wait_s=lambda _: None, version="test", at=at)
    record = Record(folder)
    target = endpoint(url)
    record.plan(target)
    ours = Deliverer(record, [target], HttpTransport(), means)
    ours.take_in(Runs(*RUNS))
    ours.deliver(until_ms=clock_ms - DAY_MS)
    print(steps)  # noqa: T201  # how many steps there are


if __name__ == "__main__":
    main()
