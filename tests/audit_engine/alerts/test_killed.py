"""Killed with -9 at each step of taking in and delivering: all arrives, in order, with the same ids.

By default at every fifth step, which is each sort of step; SEAWALL_TEST_KILLS above 1 kills at every one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit_engine.alerts.receiver import Came, receiver

WANTED = [
    *(("a", "incident.opened"), ("c", "incident.opened"), ("d", "incident.opened")),
    *(("a", "incident.changed"), ("a", "incident.ended"), ("c", "incident.ended")),
]
STEPS = 3 + 3 * len(WANTED)  # each run taken in; each message begun, sent and noted


def deliver(folder: Path, url: str, die_at: int) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tests.audit_engine.alerts.deliver_until_killed"]
    return subprocess.run(
        [*program, str(folder), url, str(die_at)], capture_output=True, text=True, timeout=60, check=False
    )


def once(came: list[Came]) -> list[Came]:
    return list({each.id: each for each in came}.values())


@pytest.mark.slow
def test_killed_at_each_step(tmp_path: Path) -> None:
    """One process after the other, each dying a step later than the last; then one that lives."""
    with receiver() as undisturbed:
        ended = deliver(tmp_path / "whole", undisturbed.url, 0)
    assert ended.stdout == f"{STEPS}\n", ended.stderr
    ids = sorted(each.id for each in undisturbed.came)

    repeated = 0
    died_at = range(1, STEPS + 1, 5 if int(os.environ.get("SEAWALL_TEST_KILLS", "1")) <= 1 else 1)
    for die_at in died_at:
        folder = tmp_path / str(die_at)
        with receiver() as receiving:
            killed = deliver(folder, receiving.url, die_at)
            assert killed.returncode == -signal.SIGKILL, killed.stderr
            assert deliver(folder, receiving.url, 0).returncode == 0
        told = [(each.json["data"]["incident"], each.json["type"]) for each in once(receiving.came)]
        assert sorted(each.id for each in once(receiving.came)) == ids
        for thread in ("a", "c", "d"):
            assert [each for each in told if each[0] == thread] == [
                each for each in WANTED if each[0] == thread
            ]
        repeated += len(receiving.came) - len(ids)
    # One for each that was killed between the answer and its record.
    assert repeated == sum(die_at > 3 and die_at % 3 == 2 for die_at in died_at)
