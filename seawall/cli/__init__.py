"""The command line: one file a verb, data on stdout, progress and errors on stderr, an exit code per cause.

docs/EXIT_CODES.md lists the exit codes; `app` is where a verb is registered.
"""

from seawall.cli.app import main

__all__ = ["main"]
