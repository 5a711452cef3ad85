"""`seawall demo`, run as a user runs it, kept running, and made to fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.cli.demo import TO_TRY
from seawall.cli.exit_codes import FINDINGS
from seawall.demo import Chapter, Demo, Told, prove
from tests.seawall.cli.calling import Called, call

CHAPTERS = [
    *("start", "produce", "tier"),
    *("trim", "diverge", "shrink", "race"),
    *("audit", "alert", "hold"),
    *("restore", "read", "repair"),
    *("pass", "report"),
]
DEADLINE_S = 1800.0  # of minutes on a machine that is busy with everything else


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


def tried_out(line: str, kept: dict[str, str]) -> Called:
    """One of the commands that are shown, as it is shown."""
    environ = {
        "SEAWALL_SETTINGS": kept["settings"],
        "AWS_ACCESS_KEY_ID": kept["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": kept["secret_access_key"],
    }
    return call(*line.split()[1:], environ=environ)


@pytest.mark.jvm
@pytest.mark.timeout(DEADLINE_S)
def test_the_demo_proves_every_step_stays_if_asked_to_and_leaves_nothing_but_its_report(
    tmp_path: Path,
) -> None:
    """One JSON line a step with what it proved; kept, it waits with all of it running until SIGTERM, and ends
    with 0; then no process is left, and no file but the report."""
    report = tmp_path / "report.html"
    with subprocess.Popen(
        [sys.executable, "-m", "seawall", "demo", "--json", "--keep", "--report", str(report)],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        steps = []
        for line in demo.stdout:
            steps.append(json.loads(line))
            if steps[-1]["step"] == "keep":
                tried = {line: tried_out(line, steps[-1]) for line in (TO_TRY[0], TO_TRY[1], TO_TRY[-1])}
                demo.send_signal(signal.SIGTERM)
        status = demo.wait(DEADLINE_S)

    by_name = {step["step"]: step for step in steps}
    assert [step["step"] for step in steps] == [*CHAPTERS, "keep", "proved"]
    assert status == 0
    assert {line: each.status for line, each in tried.items()} == dict.fromkeys(tried, 0)
    assert [line.split("\t")[1] for line in tried[TO_TRY[1]].stdout.splitlines()] == ["0", "1", "2"]
    assert by_name["tier"]["segments"] == by_name["produce"]["closed_segments"] > 3
    assert by_name["tier"]["objects"] == 3 * by_name["tier"]["segments"]
    lost, removed = by_name["trim"]["lost"], by_name["race"]["removed"]
    found = by_name["audit"]["findings"]
    assert ["orders", "START-02", "C", [lost]] in found
    assert ["payments", "META-01", "E", [by_name["diverge"]["lacks"]]] in found
    assert ["clicks", "RET-03", "E", []] in found
    in_tier = [ranges for topic, rule, _, ranges in found if (topic, rule) == ("telemetry", "DEL-01")]
    assert [in_tier[0][0][0], in_tier[-1][0][1]] == removed
    of_trimmed = 2 * by_name["trim"]["segments"]  # of each what went from the disk, and from the tier
    assert len(found) == 3 + of_trimmed + by_name["race"]["segments"]
    assert by_name["hold"]["refused"] == "AccessDenied"
    assert by_name["read"]["records"] == by_name["produce"]["records"] * 3 / 4
    assert by_name["pass"]["verdict"] == "PASS"
    assert sum(by_name["pass"]["closed"].values()) == len(found)
    assert by_name["pass"]["webhooks"] == by_name["alert"]["webhooks"]
    assert report.read_text().startswith("<!")
    assert [*tmp_path.glob("seawall-demo-*")] == []
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
