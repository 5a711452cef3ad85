"""One child process: started on a leash, waited for on a condition, ended by its pid.

Owns the child's life. It never ends a process that it did not start, never looks a process up by name and
never waits without a deadline. Whatever happens to this process, SIGKILL included, the child dies with it
(see leash.py). The child gets a session of its own, so that Ctrl-C on the terminal reaches only us and we
end the child in order.

Invariant: after `stop` or `kill` returns, the process is gone and reaped.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seawall.local.errors import ServerDied, ServerNotReady, ServerNotRunning
from seawall.local.waiting import becomes_true

LEASH = Path(__file__).with_name("leash.py")
TAIL_LINES = 25
TAIL_BYTES = 16 * 1024
GRACE_S = 20.0

# The kernel's "parent died" signal follows the *thread* that forked. All children are therefore started by
# this one thread, which ends with the interpreter and not with whichever worker asked for a server.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="seawall-spawn")


class Child:
    """A program with a name, a log file and, once started, a pid."""

    def __init__(
        self,
        *,
        name: str,
        argv: Sequence[str],
        log: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._env = dict(os.environ if env is None else env)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program; its output is appended to the log. Returns at once."""
        if self.is_alive:
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = _spawner.submit(self._spawn).result()

    def _spawn(self) -> subprocess.Popen[bytes]:
        leash = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid())]
        with self.log.open("ab") as output:
            return subprocess.Popen(
                [*leash, *self._argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """The pid while the process runs, else None."""
        return self._process.pid if self._process is not None and self.is_alive else None

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_until_ready(self, ready: Callable[[], bool], *, wanted: str, deadline_s: float) -> None:
        """Return when `ready()` is true; raise if the process ends first or the deadline passes."""
        if not becomes_true(lambda: self._fail_if_dead() and ready(), deadline_s=deadline_s):
            raise self._not_ready(wanted, deadline_s)

    def wait_until_ended(self, *, deadline_s: float) -> int:
        """The exit status of a program that ends by itself."""
        if self._process is None:
            raise ServerNotRunning(name=self.name, act="end")
        if not becomes_true(lambda: not self.is_alive, deadline_s=deadline_s):
            raise self._not_ready("it should have ended", deadline_s)
        return self._process.returncode

    def _fail_if_dead(self) -> bool:
        if self._process is None:
            raise ServerNotRunning(name=self.name, act="get ready")
        if (status := self._process.poll()) is not None:
            raise ServerDied(name=self.name, status=status, log=self.log, last_lines=self.last_lines())
        return True

    def _not_ready(self, wanted: str, deadline_s: float) -> ServerNotReady:
        return ServerNotReady(
            name=self.name, deadline_s=deadline_s, wanted=wanted, log=self.log, last_lines=self.last_lines()
        )

    def stop(self, *, grace_s: float = GRACE_S) -> bool:
        """SIGTERM, and SIGKILL after the grace. True if the process ended without being killed."""
        self.ask_to_stop()
        if becomes_true(lambda: not self.is_alive, deadline_s=grace_s):
            return True
        self.kill()
        return False

    def ask_to_stop(self) -> None:
        """SIGTERM, to a process that runs; nothing to one that does not."""
        if self.is_alive:
            self.resume()  # a paused process would never see the SIGTERM
            self.send(signal.SIGTERM)

    def pause(self) -> None:
        """Freeze the process where it stands: SIGSTOP."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL: the process has no chance to write anything more."""
        if self._process is not None and self.is_alive:
            self._process.kill()
            self._process.wait()

    def send(self, number: signal.Signals) -> None:
        """A signal that this program understands; an error if it does not run."""
        if self._process is None or not self.is_alive:
            raise ServerNotRunning(name=self.name, act=f"take {number.name}")
        self._process.send_signal(number)

    def last_lines(self) -> str:
        """The end of the log, indented, for an error message."""
        if not self.log.exists():
            return "    (no log)"
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
            lines = log.read().decode("utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join(f"    {line}" for line in lines) or "    (empty)"


def stop_all(children: Iterable[Child], *, grace_s: float = GRACE_S) -> None:
    """Ask all of them first, so that they end side by side, then wait for each."""
    asked = list(children)
    for child in asked:
        child.ask_to_stop()
    for child in asked:
        child.stop(grace_s=grace_s)
