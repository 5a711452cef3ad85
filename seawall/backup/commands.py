"""Brokers of this host that are stopped and started by the operator's commands.

Owns the waiting: a broker is stopped when its log dir's lock is free, and up when the cluster lists it.
Refuses to guess: a command that fails ends the restore.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from backup.logdir.errors import BrokerRuns
from backup.logdir.lock import locked

STOPPED_DEADLINE_S = 600.0
UP_DEADLINE_S = 600.0
POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """`{broker}` in a command is the broker's id."""

    stop_with: str
    start_with: str
    log_dirs: Mapping[int, Path]
    is_up: Callable[[int], bool]
    tell: Callable[[str], None]

    def stop(self, broker_id: int) -> None:
        subprocess.run(self.stop_with.format(broker=broker_id), shell=True, check=True)
        until = time.monotonic() + STOPPED_DEADLINE_S
        while True:
            try:
                with locked(self.log_dirs[broker_id]):
                    return
            except BrokerRuns:
                if time.monotonic() > until:
                    raise
                time.sleep(POLL_S)

    def start(self, broker_id: int) -> None:
        subprocess.run(self.start_with.format(broker=broker_id), shell=True, check=True)
        until = time.monotonic() + UP_DEADLINE_S
        while not self.is_up(broker_id):
            if time.monotonic() > until:
                self.tell(f"broker {broker_id} is not up after {UP_DEADLINE_S:.0f} s: see its log")
                return
            time.sleep(POLL_S)
