"""A process that emits without end, on several threads, and says on stdout which emits have returned."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread

from audit_engine.spool import EmitterName, Spool
from tests.audit_engine.events import CLUSTER_ID, certificate, stalled

THREADS = 3


def _emit(spool: Spool, thread: int) -> None:
    number = 0
    while True:
        number += THREADS
        event = certificate(number + thread) if number % 7 == 0 else stalled(number + thread)
        event = replace(event, event_id=f"{spool.emitter.incarnation}-{event.event_id}")
        spool.emit(event)
        sys.stdout.write(f"{event.event_id}\n")
        sys.stdout.flush()


def main() -> None:
    spool = Spool(Path(sys.argv[1]), EmitterName(CLUSTER_ID, 1, "agent"))
    for thread in range(THREADS):
        Thread(target=_emit, args=(spool, thread)).start()


if __name__ == "__main__":
    main()
