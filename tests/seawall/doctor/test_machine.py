"""What the doctor says of this machine."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from seawall.doctor import machine
from seawall.doctor.finding import Status
from seawall.jvm import classpath, ivy
from seawall.jvm.pins import write_pins
from tests.seawall.jvm.fake_java import fake_java, openjdk

USAGE = namedtuple("USAGE", "total used free")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder in which the classpaths `spark` and `broker`, of one jar each, are complete."""
    files, jars = tmp_path / "ivy-files", tmp_path / "pinned"
    files.mkdir()
    jars.mkdir()
    (jars / "one-1.0.jar").write_bytes(b"one")
    monkeypatch.setattr(ivy, "FILES", files)
    for name in ("spark", "broker"):
        write_pins(files / f"{name}.sha256", jars)
        classpath.ensure(name, cache=tmp_path / "cache", retrieve=_fetch)
    return tmp_path / "cache"


def _fetch(name: str, into: Path, cache: Path) -> None:
    (into / "one-1.0.jar").write_bytes(b"one")


def _free(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: USAGE(total=10**12, used=0, free=free_bytes))


def test_python_of_this_run_is_fine() -> None:
    """The Python that the tests run on is one that we support."""
    assert machine.python((3, 10)).status is Status.OK


def test_older_python_fails_with_a_remedy() -> None:
    """Below 3.10 the doctor says what to install."""
    finding = machine.python((3, 9))

    assert (finding.status, finding.remedy) == (Status.FAIL, "Install Python 3.10 or newer.")


def test_java_that_fits_is_named(tmp_path: Path) -> None:
    """The version and the path of the Java that would be used are shown."""
    java = fake_java(tmp_path, openjdk("21.0.1"))

    finding = machine.java({"JAVA_HOME": str(tmp_path), "PATH": os.defpath})

    assert (finding.status, finding.detail) == (Status.OK, f"21 at {java}")


def test_java_that_is_missing_fails_with_the_line_to_run(tmp_path: Path) -> None:
    """What `find_java` refuses, the doctor says in one line and a remedy."""
    finding = machine.java({"PATH": str(tmp_path)})

    assert finding.status is Status.FAIL
    assert "\n" not in finding.detail
    assert finding.remedy


def test_complete_jars_are_ok(cache: Path) -> None:
    """A classpath whose jars all have their pinned hash is in order."""
    assert machine.jars("spark", cache).status is Status.OK


@pytest.mark.parametrize(("name", "status"), [("spark", Status.FAIL), ("broker", Status.WARN)])
def test_jars_not_fetched_matter_by_their_use(cache: Path, tmp_path: Path, name: str, status: Status) -> None:
    """Without Spark's jars nothing is audited; without a broker's, only demo and tests are missing."""
    finding = machine.jars(name, tmp_path / "empty")

    assert (finding.status, finding.remedy) == (status, f"Run: {ivy.ensure_command(name)}")


@pytest.mark.parametrize("name", ["spark", "broker"])
def test_changed_jar_fails_by_name(cache: Path, name: str) -> None:
    """A jar with another hash is a failure whatever it is for, and it is named."""
    (jar,) = classpath.jars(name, cache=cache)
    jar.write_bytes(b"other")

    finding = machine.jars(name, cache)

    assert finding.status is Status.FAIL
    assert "one-1.0.jar has hash" in finding.detail


@pytest.mark.parametrize(
    ("free_bytes", "status"), [(10**8, Status.FAIL), (10**9, Status.WARN), (10**10, Status.OK)]
)
def test_disk_is_judged_by_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int, status: Status
) -> None:
    """Too little for the jars fails, little warns; the cache folder need not exist yet."""
    _free(monkeypatch, free_bytes)

    finding = machine.disk(tmp_path / "not" / "yet")

    assert finding.status is status
    assert (finding.remedy is None) is (status is Status.OK)


def test_cache_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Space is no use in a folder of somebody else's."""
    monkeypatch.setattr("os.access", lambda *_: False)

    assert machine.disk(tmp_path).status is Status.WARN


def test_every_classpath_is_looked_at(tmp_path: Path) -> None:
    """No classpath is left out of the rounds."""
    subjects = [
        finding.subject for finding in machine.examine({"SEAWALL_CACHE_DIR": str(tmp_path), "PATH": ""})
    ]

    assert subjects == ["python", "java", *(f"jars {name}" for name in classpath.NAMES), "disk"]
