"""Runs a command and writes what it took to a descriptor: `fresh.py FD PROGRAM ARGUMENT...`

    seconds of wall clock, seconds of processor, KiB of memory at the most (of the largest process, on Linux)

Refuses to import anything large: the kernel counts a process's peak from that of the one that started it, so
this one is the least that can be told. Ends as the command did.
"""

from __future__ import annotations

import os
import shutil
import sys
import time


def main() -> int:
    answer, program, *arguments = sys.argv[1:]
    os.set_inheritable(int(answer), False)
    path = shutil.which(program) or program
    began = time.perf_counter()
    child = os.posix_spawn(path, [program, *arguments], os.environ)
    _, status, usage = os.wait4(child, 0)
    wall_s = time.perf_counter() - began
    os.write(int(answer), f"{wall_s} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}".encode())
    ended = os.waitstatus_to_exitcode(status)
    return ended if ended >= 0 else 128 - ended


if __name__ == "__main__":
    sys.exit(main())
