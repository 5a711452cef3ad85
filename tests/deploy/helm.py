"""Helm as the tests call it: on this machine, or built once with `go install` into the cache folder.

`python -m tests.deploy.helm` builds it ahead of a run; tests themselves never do, as it takes minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from seawall.jvm.cache import cache_dir

VERSION = "v3.19.0"
MODULE = f"helm.sh/helm/v3/cmd/helm@{VERSION}"
BUILD_DEADLINE_S = 3600.0
DEADLINE_S = 300.0


class NotToBeHad(Exception):
    """Why there is no helm on this machine."""


def found() -> Path:
    """Where the program is. Raises NotToBeHad."""
    program = shutil.which("helm")
    if program is not None:
        return Path(program)
    if (built := _place()).exists():
        return built
    raise NotToBeHad("there is no `helm` here; `python -m tests.deploy.helm` builds it, with Go")


def build() -> Path:
    """Raises NotToBeHad."""
    go = shutil.which("go")
    if go is None:
        raise NotToBeHad(f"helm is built with Go, and there is no `go` here (for {MODULE})")
    folder = _place().parent
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [go, "install", MODULE],
        env=os.environ | {"GOBIN": str(folder / ".building"), "GOFLAGS": ""},
        cwd=folder,  # not in a folder whose go.mod could have a say
        capture_output=True,
        text=True,
        timeout=BUILD_DEADLINE_S,
        check=False,
    )
    if done.returncode != 0:
        raise NotToBeHad(f"`go install {MODULE}` failed: {done.stderr.strip()[-500:]}")
    (folder / ".building" / "helm").rename(_place())
    return _place()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(found()), *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def _place() -> Path:
    return cache_dir() / "tools" / f"helm-{VERSION}" / "helm"


if __name__ == "__main__":
    try:
        try:
            program = found()
        except NotToBeHad:
            program = build()
        print(program)  # noqa: T201 a program's output
    except NotToBeHad as reason:
        sys.exit(str(reason))
