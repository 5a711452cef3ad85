"""Which packages Seawall needs on a cluster, and which lines of the pinned requirements name them.

Pure, but for what is asked of `requires`. Refuses nothing: what is not pinned is the caller's to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from packaging.requirements import Requirement

# On a cluster they are those of its Spark; ours beside them would be a second Spark.
OF_THE_CLUSTER = frozenset({"pyspark", "py4j"})

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")

# What a distribution asks for, as its metadata says it; None where it is not there.
Requires = Callable[[str], "Iterable[str] | None"]


def plain(name: str) -> str:
    """A distribution's name as PEP 503 compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(root: str, requires: Requires, environment: Mapping[str, str] | None = None) -> frozenset[str]:
    """Everything below `root`, without its extras and without itself."""
    found: set[str] = set()
    ahead = [(plain(root), "")]
    seen = set(ahead)
    while ahead:
        name, extra = ahead.pop()
        for line in requires(name) or ():
            asked = Requirement(line)
            marker = asked.marker
            if marker is not None and not marker.evaluate({**(environment or {}), "extra": extra}):
                continue
            below = plain(asked.name)
            if below in OF_THE_CLUSTER:
                continue
            found.add(below)
            new = {(below, each) for each in ("", *asked.extras)} - seen
            seen |= new
            ahead += sorted(new)
    return frozenset(found)


def blocks(pins: str) -> dict[str, str]:
    """The file of pins by package: a line and its hashes. A package may be pinned once for each Python."""
    found: dict[str, str] = {}
    name = ""
    for line in pins.splitlines():
        pinned = _PINNED.match(line)
        if pinned is not None:
            name = plain(pinned.group(1))
        if name and line.strip() and not line.lstrip().startswith("#"):
            found[name] = found.get(name, "") + line + "\n"
    return found


def versions(block: str) -> frozenset[str]:
    """The versions that a package is pinned at."""
    return frozenset(pinned.group(2) for line in block.splitlines() if (pinned := _PINNED.match(line)))
