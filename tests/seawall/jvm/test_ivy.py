"""How Ivy is called, and what is told of its failures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seawall.jvm import classpath, ivy
from seawall.jvm.errors import FetchFailed
from seawall.jvm.java import find_java

# A java that answers to -version, notes its arguments, and otherwise does what its last lines say.
SCRIPT = """#!/bin/sh
case "$1" in -version) echo 'openjdk version "17.0.1"' >&2; exit 0;; esac
echo "$@" >> {calls}
{then}
"""


def _java(folder: Path, then: str) -> dict[str, str]:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(SCRIPT.format(calls=folder / "calls", then=then), encoding="utf-8")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": os.defpath}


def _calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text(encoding="utf-8").splitlines()


def test_reason_is_told_without_the_noise(tmp_path: Path) -> None:
    """Of all that Ivy prints, the lines that say why are kept; it is tried again once, not for ever."""
    then = "echo ':: problems summary ::'; echo '......'; echo '\tHost not found'; exit 1"
    environ = _java(tmp_path, then)

    with pytest.raises(FetchFailed) as failure:
        ivy.retrieve("broker", tmp_path / "into", tmp_path / "cache", environ)

    assert failure.value.why == "Host not found"
    assert len(_calls(tmp_path)) == ivy.ATTEMPTS


def test_second_attempt_can_succeed(tmp_path: Path) -> None:
    """One lost connection does not fail a set-up."""
    environ = _java(tmp_path, f"[ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; exit 1; }}")

    ivy.retrieve("broker", tmp_path / "into", tmp_path / "cache", environ)

    assert len(_calls(tmp_path)) == 2


def test_mirror_is_taken_from_the_environment(tmp_path: Path) -> None:
    """SEAWALL_IVY_SETTINGS replaces our settings file, and with it the repository that is asked."""
    environ = _java(tmp_path, "exit 0")

    ivy.retrieve("s3a", tmp_path, tmp_path, environ)
    ivy.retrieve("s3a", tmp_path, tmp_path, {**environ, "SEAWALL_IVY_SETTINGS": "/etc/mirror.xml"})

    default, mirrored = _calls(tmp_path)
    assert f"-settings {ivy.FILES / 'ivysettings.xml'}" in default
    assert "-settings /etc/mirror.xml" in mirrored


def test_nothing_is_written_outside_the_cache(tmp_path: Path) -> None:
    """Ivy is told to keep all of its files in the folder it is given."""
    environ = _java(tmp_path, "exit 0")

    ivy.retrieve("s3a", tmp_path / "into", tmp_path / "cache", environ)

    (call,) = _calls(tmp_path)
    assert f"-cache {tmp_path}/cache" in call
    assert f"-Divy.default.ivy.user.dir={tmp_path}/cache" in call


@pytest.mark.jvm
def test_real_jars_are_as_pinned_and_need_no_ivy() -> None:
    """On a machine that is set up, every jar of every classpath is as pinned, and nothing is fetched."""

    def refuses(*_: object) -> None:
        raise AssertionError("nothing is to be fetched")

    for name in classpath.NAMES:
        assert classpath.ensure(name, retrieve=refuses)
    assert find_java().version >= 17
