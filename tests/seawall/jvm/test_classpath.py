"""A classpath is complete or absent, whatever happens on the way."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.jvm import classpath, ivy
from seawall.jvm.cache import exclusive
from seawall.jvm.errors import CacheUnusable, FetchFailed, JarsDiffer, NotSetUp, UnknownClasspath
from seawall.jvm.pins import write_pins
from tests.seawall.jvm import racer
from tests.seawall.jvm.racer import JARS


class FakeRepository:
    """Fetches these jars, and counts how often it was asked."""

    def __init__(self, jars: dict[str, bytes]) -> None:
        self.jars = jars
        self.asked = 0

    def __call__(self, name: str, into: Path, cache: Path) -> None:
        self.asked += 1
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "fetched").write_bytes(b"")
        for jar, content in self.jars.items():
            (into / jar).write_bytes(content)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and pins of our own for the classpath `broker`."""
    files, jars = tmp_path / "ivy-files", tmp_path / "pinned"
    files.mkdir()
    jars.mkdir()
    for jar, content in JARS.items():
        (jars / jar).write_bytes(content)
    write_pins(files / "broker.sha256", jars)
    monkeypatch.setattr(ivy, "FILES", files)
    return tmp_path / "cache"


def _names(paths: tuple[Path, ...]) -> list[str]:
    return [path.name for path in paths]


def _left_behind(cache: Path) -> set[str]:
    """What stands in the folder of jars, the lock apart."""
    return {path.name for path in (cache / "jars").iterdir()} - {".lock"}


def test_jars_are_fetched_once(cache: Path) -> None:
    """The second set-up finds them all and asks nobody."""
    repository = FakeRepository(JARS)

    first = classpath.ensure("broker", cache=cache, retrieve=repository)
    second = classpath.ensure("broker", cache=cache, retrieve=repository)

    assert _names(first) == sorted(JARS)
    assert (second, repository.asked) == (first, 1)


def test_classpath_joins_the_jars(cache: Path) -> None:
    """`classpath` is what `java -cp` takes."""
    jars = classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))

    assert classpath.classpath("broker", cache=cache).split(os.pathsep) == [str(jar) for jar in jars]


def test_unfetched_jars_name_the_line_to_run(cache: Path) -> None:
    """Asking for jars that nobody fetched is an error that says how to fetch them."""
    with pytest.raises(NotSetUp, match=r"-m seawall\.jvm ensure broker"):
        classpath.jars("broker", cache=cache)


def test_unknown_name_lists_the_known_ones(cache: Path) -> None:
    """A name that is no classpath is answered with those there are."""
    with pytest.raises(UnknownClasspath, match="spark, s3a, broker, broker-kip405"):
        classpath.jars("brokre", cache=cache)


@pytest.mark.parametrize(
    ("fetched", "told"),
    [
        ({**JARS, "two-1.0.jar": b"other"}, "two-1.0.jar has hash"),
        ({"one-1.0.jar": b"one"}, "two-1.0.jar is missing"),
        ({**JARS, "three.jar": b"3"}, "three.jar is not pinned"),
        ({}, "one-1.0.jar is missing"),
    ],
)
def test_other_jars_than_the_pinned_are_not_kept(cache: Path, fetched: dict[str, bytes], told: str) -> None:
    """A changed, a missing or a foreign jar is named, and neither it nor Ivy's copy of it stays."""
    with pytest.raises(JarsDiffer) as refusal:
        classpath.ensure("broker", cache=cache, retrieve=FakeRepository(fetched))

    assert told in str(refusal.value)
    assert _left_behind(cache) == set()
    assert not (cache / "ivy").exists()


def test_set_up_succeeds_after_a_refused_fetch(cache: Path) -> None:
    """Once the repository gives the right jars, the next set-up is a normal one."""
    with pytest.raises(JarsDiffer):
        classpath.ensure("broker", cache=cache, retrieve=FakeRepository({}))

    assert _names(classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))) == sorted(JARS)


def test_failed_fetch_leaves_nothing(cache: Path) -> None:
    """A fetch that breaks off half way leaves no folder that could be taken for a finished one."""

    def breaks_off(name: str, into: Path, cache: Path) -> None:
        (into / "one-1.0.jar").write_bytes(b"o")
        raise FetchFailed(classpath=name, why="the network went away", remedy="try again")

    with pytest.raises(FetchFailed):
        classpath.ensure("broker", cache=cache, retrieve=breaks_off)

    assert _left_behind(cache) == set()


@pytest.mark.parametrize("damage", ["delete", "change", "add"])
def test_damaged_folder_is_fetched_again(cache: Path, damage: str) -> None:
    """Set-up hashes what is there, and replaces a folder in which any jar is not as pinned."""
    repository = FakeRepository(JARS)
    one, _ = classpath.ensure("broker", cache=cache, retrieve=repository)
    if damage == "delete":
        one.unlink()
    elif damage == "change":
        one.write_bytes(b"0ne")
    else:
        (one.parent / "three.jar").write_bytes(b"3")

    classpath.ensure("broker", cache=cache, retrieve=repository)

    assert classpath.damage("broker", cache=cache) == []
    assert repository.asked == 2


def test_lost_jar_is_noticed_without_set_up(cache: Path) -> None:
    """A classpath from which a jar has gone is not handed out."""
    one, _ = classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))
    one.unlink()

    with pytest.raises(NotSetUp):
        classpath.jars("broker", cache=cache)


def test_cache_that_cannot_be_written_is_named(cache: Path, tmp_path: Path) -> None:
    """A cache folder that is not to be had is an error of its own, with what to set instead."""
    (tmp_path / "cache").write_bytes(b"a file, where a folder should be")

    with pytest.raises(CacheUnusable, match="SEAWALL_CACHE_DIR"):
        classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))


def test_finished_cache_need_not_be_writable(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars that are complete are found without a lock or a write, as in a read-only image."""
    classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))

    def refuses(*_: object) -> None:
        raise AssertionError("nothing is to be locked or fetched")

    monkeypatch.setattr(classpath, "exclusive", refuses)

    assert _names(classpath.ensure("broker", cache=cache, retrieve=refuses)) == sorted(JARS)


def _told(process: subprocess.Popen[str], until: str) -> list[str]:
    """What a set-up prints up to the line that begins so."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith(until):
            return lines
    raise AssertionError(f"it ended without saying {until!r}: {lines}")


@pytest.fixture
def racers(cache: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Two set-ups not yet begun to fetch, in processes of their own."""
    with contextlib.ExitStack() as running:
        started = [racer.start(ivy.FILES, cache) for _ in range(2)]
        for process in started:
            running.enter_context(process)
            running.callback(process.kill)
        yield started


def test_two_set_ups_at_once_fetch_once(cache: Path, racers: list[subprocess.Popen[str]]) -> None:
    """Of two processes, one fetches, the other says that it waits, and then uses the same jars."""
    is_first = {process: _told(process, "said")[0].startswith("said fetching") for process in racers}
    (fetching,) = (process for process, first in is_first.items() if first)
    (waiting,) = (process for process, first in is_first.items() if not first)
    _told(fetching, "fetching")

    fetching.communicate("\n")
    waited, _ = waiting.communicate()

    assert [process.returncode for process in (fetching, waiting)] == [0, 0]
    assert waited == ""
    assert _names(classpath.jars("broker", cache=cache)) == sorted(JARS)


def test_killed_set_up_is_cleaned_up_by_the_next(cache: Path) -> None:
    """A set-up killed in mid-fetch holds no lock and leaves nothing that counts; the next one clears up."""
    with racer.start(ivy.FILES, cache) as process:
        _told(process, "fetching")
        process.kill()
    assert len(_left_behind(cache)) == 1
    with pytest.raises(NotSetUp):
        classpath.jars("broker", cache=cache)

    jars = classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))

    assert _left_behind(cache) == {jars[0].parent.name}


def test_lock_is_free_although_a_child_of_its_holder_lives(tmp_path: Path) -> None:
    """A process forked inside the lock, as a pool of workers might be, does not keep it from the next."""
    lock = tmp_path / "lock"
    with exclusive(lock, lambda: None):
        child = subprocess.Popen(["sleep", "60"], pass_fds=_descriptors_of(lock))
    try:
        waited = []
        with exclusive(lock, lambda: waited.append(True)):
            pass
    finally:
        child.kill()
        child.wait()

    assert waited == []


def _descriptors_of(path: Path) -> list[int]:
    target = path.stat()
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.path.samestat(entry.stat(), target):
                found.append(int(entry.name))
    return found


def test_new_pins_do_not_touch_the_old_jars(cache: Path) -> None:
    """After a change of version both sets stand beside each other, each under the key of its pins."""
    old = classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))
    newer = FakeRepository({"one-2.0.jar": b"newer"})
    classpath.write_lock("broker", cache=cache, retrieve=newer)

    new = classpath.ensure("broker", cache=cache, retrieve=newer)

    assert _names(new) == ["one-2.0.jar"]
    assert all(jar.is_file() for jar in old)
