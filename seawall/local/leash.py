"""Run a program that cannot outlive the process that started it: `leash.py PARENT_PID PROGRAM [ARG...]`.

Asks the kernel to send this process SIGKILL when its parent dies (prctl PR_SET_PDEATHSIG, kept across
exec), then becomes the program, under the same pid. It is a program of its own, not a `preexec_fn`,
because code between fork and exec may deadlock in a process that has threads. It refuses to start anything
if the parent is already gone. Where there is no prctl (not Linux) the program runs without the leash.

Run with `python -I -S`: it must start fast and import nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # <sys/prctl.h>


def main(arguments: list[str]) -> None:
    parent_pid, program = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the request took effect: then no signal will ever come.
    if os.getppid() != parent_pid:
        sys.exit(f"{program[0]} not started: its parent {parent_pid} is gone")
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
