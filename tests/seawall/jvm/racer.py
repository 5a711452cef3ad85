"""A set-up in a process of its own, which says on standard output how far it is.

    python -m tests.seawall.jvm.racer IVY_FILES CACHE

It prints `said ...` for each message, `fetching` when it is its turn, and then waits for a line of input.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from seawall.jvm import classpath, ivy

JARS = {"one-1.0.jar": b"one", "two-1.0.jar": b"two"}
REPOSITORY = Path(__file__).parents[3]


def start(files: Path, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.seawall.jvm.racer", str(files), str(cache)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _fetch(name: str, into: Path, cache: Path) -> None:
    (into / "one-1.0.jar").write_bytes(JARS["one-1.0.jar"])
    _tell("fetching")
    sys.stdin.readline()
    (into / "two-1.0.jar").write_bytes(JARS["two-1.0.jar"])


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    ivy.FILES = Path(sys.argv[1])
    classpath.ensure(
        "broker", cache=Path(sys.argv[2]), retrieve=_fetch, say=lambda message: _tell(f"said {message}")
    )
