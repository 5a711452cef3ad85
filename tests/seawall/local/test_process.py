"""A child process: its log, its deadline, its end; and that it cannot outlive us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.local.errors import ServerDied, ServerNotReady, ServerNotRunning
from seawall.local.process import Child, stop_all
from seawall.local.waiting import becomes_true

SLEEP = "import time; print('asleep', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP


@pytest.fixture
def children() -> Iterator[list[Child]]:
    """Whatever a test puts here is dead afterwards."""
    made: list[Child] = []
    yield made
    for child in made:
        child.kill()


def python(folder: Path, program: str, children: list[Child], name: str = "child") -> Child:
    child = Child(name=name, argv=[sys.executable, "-c", program], log=folder / f"{name}.log")
    children.append(child)
    return child


def says_asleep(child: Child) -> bool:
    return "asleep" in child.last_lines()


def process_is_alive(pid: int) -> bool:
    """Whether this pid runs; a zombie that its new parent has not yet reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_child_runs_until_it_is_stopped(tmp_path: Path, children: list[Child]) -> None:
    """It has a pid while it runs, its output is in the log, and after stop it is gone and reaped."""
    child = python(tmp_path, SLEEP, children)
    child.start()
    child.wait_until_ready(lambda: says_asleep(child), wanted="asleep", deadline_s=20)
    pid = child.pid
    assert pid is not None

    ended_by_itself = child.stop()

    assert ended_by_itself
    assert child.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_child_that_ignores_the_request_is_killed(tmp_path: Path, children: list[Child]) -> None:
    """After the grace SIGKILL ends it, and stop says so."""
    child = python(tmp_path, STUBBORN, children)
    child.start()
    child.wait_until_ready(lambda: says_asleep(child), wanted="asleep", deadline_s=20)

    assert child.stop(grace_s=0.2) is False
    assert not child.is_alive


def test_a_child_that_dies_early_is_reported_with_its_last_words(
    tmp_path: Path, children: list[Child]
) -> None:
    """The error names the log, the exit status and the end of what the child printed."""
    child = python(tmp_path, "print('no {braces} port free'); raise SystemExit(3)", children)
    child.start()

    with pytest.raises(ServerDied) as caught:
        child.wait_until_ready(lambda: False, wanted="never", deadline_s=20)

    assert caught.value.status == 3
    assert str(child.log) in str(caught.value)
    assert "no {braces} port free" in str(caught.value)


def test_a_child_that_is_never_ready_is_reported_at_the_deadline(
    tmp_path: Path, children: list[Child]
) -> None:
    """The error says what was waited for; the child still runs, as its owner may want to look at it."""
    child = python(tmp_path, SLEEP, children)
    child.start()
    assert becomes_true(lambda: says_asleep(child), deadline_s=20)

    with pytest.raises(ServerNotReady, match="a pigeon"):
        child.wait_until_ready(lambda: False, wanted="a pigeon", deadline_s=0.1)

    assert child.is_alive


def test_only_the_end_of_a_long_log_is_shown(tmp_path: Path, children: list[Child]) -> None:
    """A log of megabytes is not read whole for a message."""
    child = python(tmp_path, "for n in range(200_000): print('line', n)", children)
    child.start()

    assert child.wait_until_ended(deadline_s=60) == 0

    shown = child.last_lines().splitlines()
    assert len(shown) == 25
    assert shown[-1].strip() == "line 199999"


def test_a_paused_child_does_nothing_and_can_still_be_stopped(tmp_path: Path, children: list[Child]) -> None:
    """SIGSTOP and SIGCONT; stop wakes the child so that it sees the request."""
    child = python(tmp_path, SLEEP, children)
    child.start()
    assert becomes_true(lambda: says_asleep(child), deadline_s=20)
    child.pause()
    assert becomes_true(
        lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", deadline_s=5
    )

    assert child.stop() is True


def test_a_child_that_was_never_started_takes_no_signal(tmp_path: Path, children: list[Child]) -> None:
    """Pausing what does not run is an error; stopping it is not."""
    child = python(tmp_path, SLEEP, children)

    with pytest.raises(ServerNotRunning):
        child.pause()
    assert child.stop() is True
    child.kill()


def test_a_child_can_be_started_again_and_its_log_goes_on(tmp_path: Path, children: list[Child]) -> None:
    """The second run appends to the log of the first."""
    child = python(tmp_path, "print('one run')", children)
    for _ in range(2):
        child.start()
        assert child.wait_until_ended(deadline_s=20) == 0

    assert child.log.read_text().count("one run") == 2


def test_several_children_are_stopped_side_by_side(tmp_path: Path, children: list[Child]) -> None:
    """stop_all leaves none alive."""
    several = [python(tmp_path, SLEEP, children, name=f"child-{n}") for n in range(3)]
    for child in several:
        child.start()

    stop_all(several)

    assert not any(child.is_alive for child in several)


def test_a_child_outlives_the_thread_that_asked_for_it(tmp_path: Path, children: list[Child]) -> None:
    """The kernel's leash hangs on a thread; a worker that ends must not take its server with it."""
    child = python(tmp_path, SLEEP, children)
    worker = threading.Thread(target=child.start)
    worker.start()
    worker.join()

    assert becomes_true(lambda: says_asleep(child), deadline_s=20)
    assert child.is_alive


def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """SIGKILL leaves the parent no chance to clean up; the kernel ends the child."""
    parent_program = f"""
import sys, time
from pathlib import Path
from seawall.local.process import Child
child = Child(name="child", argv=[sys.executable, "-c", {SLEEP!r}], log=Path({str(tmp_path / "log")!r}))
child.start()
child.wait_until_ready(lambda: "asleep" in child.last_lines(), wanted="asleep", deadline_s=20)
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", parent_program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child_pid = int(parent.stdout.readline())
        assert process_is_alive(child_pid)

        parent.send_signal(signal.SIGKILL)

        assert becomes_true(lambda: not process_is_alive(child_pid), deadline_s=10)


def test_a_child_dies_with_a_parent_that_ends_without_stopping_it(tmp_path: Path) -> None:
    """A forgotten server does not survive the interpreter."""
    parent_program = f"""
import sys
from pathlib import Path
from seawall.local.process import Child
child = Child(name="child", argv=[sys.executable, "-c", {SLEEP!r}], log=Path({str(tmp_path / "log")!r}))
child.start()
print(child.pid, flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", parent_program], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )

    assert becomes_true(lambda: not process_is_alive(int(done.stdout)), deadline_s=10)
