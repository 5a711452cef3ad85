"""The exit codes that are no error's own. An error's code stands on its class; docs/EXIT_CODES.md has all."""

from __future__ import annotations

CLEAN = 0
FINDINGS = 1  # findings, or a verification failed
USAGE = 2  # typer's own for a wrong command line
PARTIAL = 3  # some of what was asked was done, and all of that was clean
INDETERMINATE = 4  # it could not be told
DEFECT = 70  # EX_SOFTWARE of sysexits.h: Seawall itself is wrong
SYSTEM = 74  # EX_IOERR: the operating system refused something (disk full, no permission)
INTERRUPTED = 130  # 128 + SIGINT, as typer does
PIPE_CLOSED = 141  # 128 + SIGPIPE, as a shell would see it
