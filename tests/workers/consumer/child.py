"""A process with a consumer in it, as a user would run one: to be killed.

Its settings come as one JSON argument. It notes in a ledger what its handlers do, and ends in order on
SIGTERM.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from workers.consumer.commits import CommitSettings
from workers.consumer.executors.threads import Threads
from workers.consumer.kafka import KafkaSource
from workers.consumer.loop import ParallelConsumer, Settings
from workers.consumer.outcomes import Done, Outcome
from workers.consumer.records import Record
from workers.consumer.supervisor import Backoff, Supervisor
from workers.testing.ledger import Ledger

COMMIT_EVERY_S = 0.2


def start(
    ledger: Path, client: dict[str, Any], topic: str, *, at_once: int, work_s: float
) -> subprocess.Popen[bytes]:
    """A new process; what it says goes beside the ledger."""
    asked = {"ledger": str(ledger), "client": client, "topic": topic, "at_once": at_once, "work_s": work_s}
    with ledger.with_suffix(".log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-m", __name__, json.dumps(asked)], stderr=log)


def main(asked: dict[str, Any]) -> None:
    logging.basicConfig(level=logging.INFO, format="%(process)d %(asctime)s %(message)s")
    ledger, work_s = Ledger(Path(asked["ledger"])), asked["work_s"]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def handle(record: Record) -> Outcome:
        ledger.begin(record)
        time.sleep(work_s)
        ledger.end(record)
        return Done()

    def build() -> ParallelConsumer:
        return ParallelConsumer(
            KafkaSource(asked["client"], [asked["topic"]]),
            Threads(handle, threads=asked["at_once"]),
            settings=Settings(commits=CommitSettings(every_s=COMMIT_EVERY_S, maps=True, deadline_s=5)),
        )

    Supervisor(build, backoff=Backoff(first_s=0.2, most_s=2)).run(stop)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
