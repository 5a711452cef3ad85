"""The pinned hashes of a classpath: one checked-in file in sha256sum's format, and the check against it.

    <64 hex digits>  <file name>\\n      sorted by file name

`sha256sum -c` reads the same file. A folder agrees with its pins only if it holds exactly these jars.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seawall.jvm.errors import LockUnreadable

CHUNK_BYTES = 1 << 20
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*\.jar)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One jar that is not as pinned: `actual` is None if it is missing, `expected` if nobody asked for it."""

    jar: str
    expected: str | None
    actual: str | None

    def __str__(self) -> str:
        if self.actual is None:
            return f"{self.jar} is missing (expected {self.expected})"
        if self.expected is None:
            return f"{self.jar} is not pinned (its hash is {self.actual})"
        return f"{self.jar} has hash {self.actual} (expected {self.expected})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    sha256_by_jar: Mapping[str, str]
    key: str  # names the folder: jars fetched for other pins are never taken for these


def read_pins(classpath: str, lock: Path) -> Pins:
    content = lock.read_bytes()
    pinned: dict[str, str] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
        entry = _LINE.fullmatch(line)
        if entry is None or entry[2] in pinned:
            raise LockUnreadable(classpath=classpath, lock=str(lock), line=number)
        pinned[entry[2]] = entry[1]
    if not pinned:
        # No pins would make an empty folder a finished one.
        raise LockUnreadable(classpath=classpath, lock=str(lock), line=1)
    return Pins(sha256_by_jar=pinned, key=hashlib.sha256(content).hexdigest()[:16])


def write_pins(lock: Path, directory: Path) -> None:
    """Pin what `directory` holds. For maintainers: this is the step that decides to trust."""
    lines = [f"{sha256(jar)}  {jar.name}\n" for jar in sorted(directory.iterdir())]
    lock.write_text("".join(lines), encoding="utf-8")


def differences(pins: Pins, directory: Path) -> list[Difference]:
    """Every way in which the jars in `directory` are not the pinned ones, by hashing all of them."""
    found = {path.name: path for path in directory.iterdir()} if directory.is_dir() else {}
    unlike = []
    for jar in sorted(pins.sha256_by_jar.keys() | found.keys()):
        expected = pins.sha256_by_jar.get(jar)
        actual = sha256(found[jar]) if jar in found else None
        if expected != actual:
            unlike.append(Difference(jar=jar, expected=expected, actual=actual))
    return unlike


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
