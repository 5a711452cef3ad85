"""A classpath is complete or absent, whatever happens on the way."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from seawall.jvm import classpath, ivy
from seawall.jvm.cache import exclusive
from seawall.jvm.errors import CacheUnusable, FetchFailed, JarsDiffer, NotSetUp, UnknownClasspath
from seawall.jvm.pins import write_pins

JARS = {"one-1.0.jar": b"one", "two-1.0.jar": b"two"}
DEADLINE_S = 30


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


def _in_fork(act: Callable[[], object]) -> multiprocessing.process.BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=act)
    process.start()
    return process


def test_two_set_ups_at_once_fetch_once(cache: Path) -> None:
    """Of two processes that start together, one fetches and the other waits and then uses the same jars."""
    fork = multiprocessing.get_context("fork")
    start, asked = fork.Barrier(2), fork.Value("i", 0)

    def slow_repository(name: str, into: Path, ivy_cache: Path) -> None:
        with asked.get_lock():
            asked.value += 1
        FakeRepository(JARS)(name, into, ivy_cache)

    def set_up() -> None:
        start.wait(DEADLINE_S)
        classpath.ensure("broker", cache=cache, retrieve=slow_repository)

    processes = [_in_fork(set_up) for _ in range(2)]
    for process in processes:
        process.join(DEADLINE_S)

    assert [process.exitcode for process in processes] == [0, 0]
    assert asked.value == 1
    assert _names(classpath.jars("broker", cache=cache)) == sorted(JARS)


def test_waiting_set_up_says_so(cache: Path) -> None:
    """Whoever finds the lock taken is told why nothing moves."""
    lock = cache / "jars" / ".lock"
    lock.parent.mkdir(parents=True)
    fork = multiprocessing.get_context("fork")
    said = fork.SimpleQueue()

    with exclusive(lock, lambda: None):
        process = _in_fork(
            lambda: classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS), say=said.put)
        )
        first = said.get()
    process.join(DEADLINE_S)

    assert "waiting" in first
    assert process.exitcode == 0


def test_killed_set_up_is_cleaned_up_by_the_next(cache: Path) -> None:
    """A set-up killed in mid-fetch holds no lock and leaves nothing that counts; the next one clears up."""
    fork = multiprocessing.get_context("fork")
    is_fetching = fork.Event()

    def never_ends(name: str, into: Path, ivy_cache: Path) -> None:
        (into / "one-1.0.jar").write_bytes(b"one")
        is_fetching.set()
        signal.pause()

    process = _in_fork(lambda: classpath.ensure("broker", cache=cache, retrieve=never_ends))
    assert is_fetching.wait(DEADLINE_S)
    process.kill()
    process.join(DEADLINE_S)
    with pytest.raises(NotSetUp):
        classpath.jars("broker", cache=cache)

    jars = classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))

    assert _left_behind(cache) == {jars[0].parent.name}


def test_new_pins_do_not_touch_the_old_jars(cache: Path) -> None:
    """After a change of version both sets stand beside each other, each under the key of its pins."""
    old = classpath.ensure("broker", cache=cache, retrieve=FakeRepository(JARS))
    newer = FakeRepository({"one-2.0.jar": b"newer"})
    classpath.write_lock("broker", cache=cache, retrieve=newer)

    new = classpath.ensure("broker", cache=cache, retrieve=newer)

    assert _names(new) == ["one-2.0.jar"]
    assert all(jar.is_file() for jar in old)
