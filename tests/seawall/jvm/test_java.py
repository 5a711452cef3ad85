"""Which Java is taken, and what is said where there is none that fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from seawall.jvm.errors import JavaBroken, JavaHomeWrong, JavaMissing, JavaNotInstalled, JavaTooOld
from seawall.jvm.java import ensure_java, find_java, remedy
from tests.seawall.jvm.fake_java import fake_java, openjdk

SYSTEM_PATH = "/usr/bin:/bin"  # for the `cat` of the stand-ins


def _path(*folders: Path) -> str:
    return ":".join([*(str(folder) for folder in folders), SYSTEM_PATH])


@pytest.mark.parametrize(
    ("stated", "version"),
    [("17.0.15", 17), ("21-ea", 21), ("25", 25), ("17.0.9-internal", 17)],
)
def test_version_is_the_feature_release(tmp_path: Path, stated: str, version: int) -> None:
    """However a vendor writes its version, the feature release is read from it."""
    java = fake_java(tmp_path, openjdk(stated))

    found = find_java({"JAVA_HOME": str(tmp_path), "PATH": SYSTEM_PATH})

    assert (found.path, found.version) == (java, version)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    """JAVA_HOME decides, for Spark's own scripts follow it as well."""
    home = fake_java(tmp_path / "home", openjdk("17.0.1"))
    on_path = fake_java(tmp_path / "path", openjdk("21.0.1"))

    found = find_java({"JAVA_HOME": str(home.parents[1]), "PATH": _path(on_path.parent)})

    assert found.path == home


def test_path_is_used_without_java_home(tmp_path: Path) -> None:
    """A `java` on PATH is enough; an empty JAVA_HOME is none."""
    java = fake_java(tmp_path, openjdk("21.0.1"))

    found = find_java({"JAVA_HOME": "", "PATH": _path(java.parent)})

    assert found.path == java


def test_other_words_around_the_version_do_no_harm(tmp_path: Path) -> None:
    """With JAVA_TOOL_OPTIONS set, Java says so before its version."""
    fake_java(tmp_path, "Picked up JAVA_TOOL_OPTIONS: -Dversion=8\n" + openjdk("17.0.15"))

    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": SYSTEM_PATH}).version == 17


@pytest.mark.parametrize(("stated", "version"), [("1.8.0_392", 8), ("11.0.21", 11), ("16", 16)])
def test_older_java_is_refused_with_its_version(tmp_path: Path, stated: str, version: int) -> None:
    """Too old is its own error, naming the Java that was found."""
    java = fake_java(tmp_path, openjdk(stated))

    with pytest.raises(JavaTooOld) as refusal:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": SYSTEM_PATH})

    assert (refusal.value.path, refusal.value.version) == (str(java), version)


def test_java_home_without_java_is_not_passed_over(tmp_path: Path) -> None:
    """A wrong JAVA_HOME is an error even where PATH has a Java that fits."""
    on_path = fake_java(tmp_path / "path", openjdk("21.0.1"))

    with pytest.raises(JavaHomeWrong):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": _path(on_path.parent)})


def test_no_java_anywhere_ends_in_the_line_to_run(tmp_path: Path) -> None:
    """The message of a missing Java holds the remedy for this system."""
    with pytest.raises(JavaMissing) as missing:
        find_java({"PATH": str(tmp_path)})

    assert remedy() in str(missing.value)


@pytest.mark.parametrize(
    ("says", "status"), [("Unable to locate a Java Runtime.", 1), ("", 0), (openjdk("17"), 134)]
)
def test_java_that_does_not_run_is_broken(tmp_path: Path, says: str, status: int) -> None:
    """A java that fails, or that states no version, is not taken for one that works."""
    fake_java(tmp_path, says, status)

    with pytest.raises(JavaBroken):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": SYSTEM_PATH})


@pytest.mark.parametrize(
    ("os_release", "line"),
    [
        ('ID=debian\nVERSION_ID="12"', "Run: sudo apt-get install -y openjdk-17-jre-headless"),
        ("ID=ubuntu\nID_LIKE=debian", "Run: sudo apt-get install -y openjdk-17-jre-headless"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"', "Run: sudo apt-get install -y openjdk-17-jre-headless"),
        ("ID=fedora", "Run: sudo dnf install -y java-21-openjdk-headless"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', "Run: sudo dnf install -y java-17-openjdk-headless"),
        ("ID=plan9", "Install Java 17 or newer and set JAVA_HOME to it."),
    ],
)
def test_remedy_fits_the_system(tmp_path: Path, os_release: str, line: str) -> None:
    """Each known family of systems has its one line; elsewhere the words say what is needed."""
    described = tmp_path / "os-release"
    described.write_text(os_release, encoding="utf-8")

    assert remedy(described) == line


class _Apt:
    """A system with a stand-in `apt-get`, which notes how it is called and may put a `java` beside itself."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        folder.mkdir()
        apt_get = folder / "apt-get"
        apt_get.write_text(f'#!/bin/sh\necho "$@" >> {self.calls}\n{script}\n', encoding="utf-8")
        apt_get.chmod(0o755)
        # Only what the scripts call, so that no Java of this machine is found.
        for tool in ("cat", "cp", "sh"):
            (folder / tool).symlink_to(f"/bin/{tool}")

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self.folder)}


def test_set_up_installs_java_as_root_on_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root with apt-get gets Java installed, and the Java that is returned is the one then found."""
    made = fake_java(tmp_path / "package", openjdk("17.0.15"))
    apt = _Apt(tmp_path / "bin", f'case "$*" in *install*) cp {made} {tmp_path}/bin/java;; esac')
    monkeypatch.setattr("os.geteuid", lambda: 0)

    found = ensure_java(lambda _: None, apt.environ)

    assert found.path == tmp_path / "bin" / "java"
    assert "openjdk-17-jre-headless" in apt.calls.read_text(encoding="utf-8")


def test_set_up_tries_the_javas_of_other_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a release of Debian no longer has Java 17, the next one that it has is installed."""
    made = fake_java(tmp_path / "package", openjdk("21.0.2"))
    script = f'case "$*" in *install*-17-*) exit 100;; *install*) cp {made} {tmp_path}/bin/java;; esac'
    apt = _Apt(tmp_path / "bin", script)
    monkeypatch.setattr("os.geteuid", lambda: 0)

    assert ensure_java(lambda _: None, apt.environ).version == 21


def test_set_up_without_root_only_says_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root nothing is installed: apt-get is not even called."""
    apt = _Apt(tmp_path / "bin", "exit 0")
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(JavaMissing):
        ensure_java(lambda _: None, apt.environ)

    assert not apt.calls.exists()


def test_failed_install_says_what_apt_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When no package can be installed, the last word of apt-get is in the message."""
    apt = _Apt(tmp_path / "bin", 'echo "E: Unable to locate package"; exit 100')
    monkeypatch.setattr("os.geteuid", lambda: 0)

    with pytest.raises(JavaNotInstalled, match="E: Unable to locate package"):
        ensure_java(lambda _: None, apt.environ)
