"""The jars of each named classpath: fetched once into the cache folder, checked, then only looked up.

Refuses to hand out a classpath that is not complete. The invariant: the folder of a classpath comes to be by
one rename, after every jar in it was checked against its pin and written to disk; so a folder that exists is
a finished one, whatever was killed meanwhile and however many set-ups ran at once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from seawall.jvm import ivy
from seawall.jvm.cache import cache_dir, exclusive
from seawall.jvm.errors import CacheUnusable, JarsDiffer, NotSetUp, UnknownClasspath
from seawall.jvm.pins import Difference, Pins, differences, read_pins, write_pins

USED_FOR: Mapping[str, str] = {
    "spark": "Spark with Delta tables and the Kafka source",
    "s3a": "Spark on S3",
    "broker": "a Kafka broker and Kafka's own tools",
    "broker-kip405": "a Kafka broker with Kafka's own tiered storage",
}
NAMES = tuple(USED_FOR)
SHOWN_DIFFERENCES = 8


# How jars are fetched: `ivy.retrieve` or a test's stand-in, called with the name, the folder, Ivy's cache.
Retrieve: TypeAlias = Callable[[str, Path, Path], None]


def _silent(_: str) -> None: ...


def jars(name: str, *, cache: Path | None = None) -> tuple[Path, ...]:
    """The jars of a classpath that set-up made ready. No network and no hashing: fit for every start."""
    folder = directory(name, cache=cache)
    paths = tuple(folder / jar for jar in _pins(name).sha256_by_jar)
    if not all(path.is_file() for path in paths):
        raise NotSetUp(classpath=name, directory=str(folder), remedy=ivy.ensure_command(name))
    return paths


def classpath(name: str, *, cache: Path | None = None) -> str:
    """The same as one `-cp` argument."""
    return os.pathsep.join(str(jar) for jar in jars(name, cache=cache))


def directory(name: str, *, cache: Path | None = None) -> Path:
    """Where the jars of a classpath are or will be."""
    return (cache or cache_dir()) / "jars" / f"{name}-{_pins(name).key}"


def damage(name: str, *, cache: Path | None = None) -> list[Difference]:
    """Every way in which the jars on disk are not the pinned ones; reads all of them."""
    return differences(_pins(name), directory(name, cache=cache))


def ensure(
    name: str,
    *,
    cache: Path | None = None,
    retrieve: Retrieve = ivy.retrieve,
    say: Callable[[str], None] = _silent,
) -> tuple[Path, ...]:
    """Make a classpath ready: check every jar against its pin, and fetch the classpath unless all agree."""
    cache = cache or cache_dir()
    if damage(name, cache=cache):
        try:
            _fetch(name, cache, retrieve, say)
        except OSError as failure:
            raise CacheUnusable(classpath=name, directory=str(cache), why=str(failure)) from failure
    return jars(name, cache=cache)


def write_lock(name: str, *, cache: Path | None = None, retrieve: Retrieve = ivy.retrieve) -> Path:
    """Pin whatever the Ivy file resolves to now. For maintainers, after they changed a version."""
    cache = cache or cache_dir()
    _known(name)
    (cache / "jars").mkdir(parents=True, exist_ok=True)
    with exclusive(cache / "jars" / ".lock", lambda: None), tempfile.TemporaryDirectory() as half:
        retrieve(name, Path(half), cache / "ivy")
        write_pins(_lock(name), Path(half))
    return _lock(name)


def _fetch(name: str, cache: Path, retrieve: Retrieve, say: Callable[[str], None]) -> None:
    finished = directory(name, cache=cache)
    finished.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(finished.parent / ".lock", lambda: say("another set-up is at work; waiting for it")):
        if not damage(name, cache=cache):  # the one we waited for did it
            return
        for left in finished.parent.glob(f".{name}-*"):  # by set-ups that were killed: we hold the lock
            shutil.rmtree(left)
        say(f"fetching {len(_pins(name).sha256_by_jar)} jars for {USED_FOR[name]}")
        work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=finished.parent))
        try:
            fetched = work / "jars"
            fetched.mkdir()
            retrieve(name, fetched, cache / "ivy")
            _check(name, fetched, cache)
            _sync(fetched)
            if finished.exists():  # a jar of it was lost or changed
                finished.rename(work / "damaged")
            fetched.rename(finished)
            _sync_directory(finished.parent)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _check(name: str, fetched: Path, cache: Path) -> None:
    unlike = differences(_pins(name), fetched)
    if not unlike:
        return
    # Ivy would serve the same jars again from its cache; the next attempt has to ask the repository.
    shutil.rmtree(cache / "ivy", ignore_errors=True)
    shown = [str(difference) for difference in unlike[:SHOWN_DIFFERENCES]]
    if len(unlike) > SHOWN_DIFFERENCES:
        shown.append(f"and {len(unlike) - SHOWN_DIFFERENCES} more")
    raise JarsDiffer(classpath=name, differences="\n".join(shown), lock=str(_lock(name)))


def _sync(folder: Path) -> None:
    """Onto the disk, so that after a power cut the renamed folder does not hold empty jars."""
    for jar in folder.iterdir():
        with jar.open("rb") as stream:
            os.fsync(stream.fileno())
    _sync_directory(folder)


def _sync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _known(name: str) -> None:
    if name not in USED_FOR:
        raise UnknownClasspath(classpath=name, known=", ".join(NAMES))


def _lock(name: str) -> Path:
    return ivy.FILES / f"{name}.sha256"


def _pins(name: str) -> Pins:
    _known(name)
    return read_pins(name, _lock(name))
