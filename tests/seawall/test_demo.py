"""`seawall demo`, run as a user runs it, and made to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.cli.exit_codes import FINDINGS
from seawall.demo import Chapter, Demo, Told, prove
from tests.seawall.cli.calling import call

CHAPTERS = ["start", "produce", "verify", "tier", "damage", "lose", "read"]


def processes_that_mention(text: str) -> list[str]:
    """The command lines of all running processes that hold this text."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if text in command:
            found.append(command)
    return found


@pytest.mark.jvm
def test_the_demo_proves_every_step_and_leaves_nothing(tmp_path: Path) -> None:
    """Exit code 0, one JSON line a step with what it proved; no file and no process is left."""
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "demo", "--json"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=90,
    )

    steps = [json.loads(line) for line in done.stdout.splitlines()]
    by_name = {step["step"]: step for step in steps}
    assert done.returncode == 0
    assert [step["step"] for step in steps] == [*CHAPTERS, "proved"]
    assert by_name["produce"]["closed_segments"] == by_name["tier"]["segments"] > 3
    assert by_name["tier"]["objects"] == 3 * by_name["tier"]["segments"]
    assert by_name["verify"]["size_bytes"] == by_name["tier"]["size_bytes"]
    assert by_name["tier"]["frontier"] == by_name["lose"]["end_offset"] == by_name["read"]["records"] > 0
    assert by_name["damage"]["defect"] == "crc_mismatch"
    assert by_name["damage"]["position"] < by_name["damage"]["flipped_at"]
    assert list(tmp_path.glob("seawall-demo-*")) == []
    assert processes_that_mention(str(tmp_path)) == []


def fails(_: Demo) -> Iterator[Chapter]:
    def act() -> Told:
        prove("bytes are equal", False, "one byte differs")
        raise AssertionError("not reached")

    yield Chapter(name="read", doing="reading", act=act)


def interrupted(_: Demo) -> Iterator[Chapter]:
    def act() -> Told:
        raise KeyboardInterrupt

    yield Chapter(name="start", doing="starting", act=act)


def test_a_proof_that_does_not_hold_ends_the_demo_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was claimed and what was found is said, and the files are kept for whoever wants to know why."""
    monkeypatch.setattr(Demo, "chapters", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    called = call("demo")

    [kept] = tmp_path.glob("seawall-demo-*")
    assert called.status == FINDINGS
    assert called.stdout == ""
    assert "bytes are equal" in called.stderr
    assert "one byte differs" in called.stderr
    assert str(kept) in called.stderr


def test_an_interrupted_demo_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is no failure to look into."""
    monkeypatch.setattr(Demo, "chapters", interrupted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    called = call("demo")

    assert called.status == 130
    assert list(tmp_path.iterdir()) == []
