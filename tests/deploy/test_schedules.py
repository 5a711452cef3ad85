"""What lies in deploy/ for hosts: units, timers and a crontab that systemd reads, and commands that exist."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from seawall.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"
ANALYZE = shutil.which("systemd-analyze")
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
STEPS = ("audit ingest", "audit run", "audit maintain", "alerts deliver", "audit status")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every call of Seawall's in these files, with the file's name."""
    for unit in UNITS:
        for line in re.findall(r"^Exec\w+=/usr/bin/env seawall (.*)$", unit.read_text(), re.MULTILINE):
            yield unit.name, shlex.split(line)
    for line in (DEPLOY / "systemd" / "crontab").read_text().splitlines():
        if line[:1] in set("*0123456789"):
            for called in re.findall(r"[ (]seawall ((?:audit|alerts) [^;|&>)]*?) *(?:[;|&>)2]|$)", line):
                yield "crontab", shlex.split(called)
    tree = ast.parse((DEPLOY / "airflow" / "seawall_dags.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for called in re.findall(r"^ ?((?:audit|alerts) [a-z]+(?: --[\w-]+(?: \d+)?)*)", node.value):
                yield "seawall_dags.py", shlex.split(called)


def parsed(words: list[str]) -> None:
    """As the program would, up to where it would begin; raises what it would refuse them with."""
    command: Any = typer.main.get_command(app)
    if words[:1] == ["--settings"]:
        words = words[2:]
    name, context = "seawall", None
    while hasattr(command, "get_command"):
        if command.invoke_without_command and (not words or words[0].startswith("-")):
            break
        context = type(command.make_context(name, ["--help"], resilient_parsing=True))(
            command, info_name=name
        )
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, name
    command.make_context(name, words, parent=context)


def test_every_command_of_a_schedule_is_one_that_the_program_takes() -> None:
    """Verbs and options, in each of the three; and each of the three has all the steps."""
    found = list(commands())

    for _, words in found:
        parsed(words)
    for source in ("crontab", "seawall_dags.py"):
        told = [" ".join(words) for file, words in found if file == source]
        assert all(any(each.startswith(step) for each in told) for step in STEPS), source
    of_units = [" ".join(words) for file, words in found if file.endswith(".service")]
    assert all(any(step in each for each in of_units) for step in STEPS)


def test_a_command_that_is_none_would_be_noticed() -> None:
    """An option that does not exist, and a verb that does not."""
    with pytest.raises(Exception, match="No such option"):
        parsed(["audit", "run", "--often"])
    with pytest.raises(AssertionError):
        parsed(["audit", "often"])


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed (Debian: systemd)")
def test_systemd_takes_the_units() -> None:
    """Each service and each timer, without a warning."""
    files = [*UNITS, *sorted((DEPLOY / "systemd").glob("*.timer"))]
    done = subprocess.run(
        [str(ANALYZE), "verify", "--man=no", *map(str, files)], capture_output=True, text=True, timeout=60
    )

    assert len(files) > 10
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_each_timer_has_its_service_and_no_run_overlaps() -> None:
    """A oneshot service is not started again while it runs; the agent restarts by itself."""
    timers = {each.stem for each in (DEPLOY / "systemd").glob("*.timer")}
    jobs = {each.stem for each in UNITS if "Type=oneshot" in each.read_text()}

    assert timers == jobs
    assert {each.stem for each in UNITS} - jobs == {"seawall-agent"}
