"""The edge of the program: what ends a run, and the exit code it ends with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seawall.cli import app, exit_codes
from seawall.doctor import rounds
from seawall.jvm.errors import JavaMissing
from tests.seawall.cli.calling import Called, call

SEAWALL = [sys.executable, "-m", "seawall"]
REPOSITORY = Path(__file__).parents[3]


def _ending(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> Called:
    """The doctor's verb, with something happening in the middle of it."""

    def examine(_: object) -> Iterator[None]:
        act()
        yield from ()

    monkeypatch.setattr(rounds, "examine", examine)
    return call("doctor")


def test_stated_error_is_its_message_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours prints what it says, on standard error, and exits with its class's code."""

    def act() -> None:
        raise JavaMissing(remedy="Run: this line")

    ended = _ending(monkeypatch, act)

    assert ended.status == JavaMissing.exit_code
    assert ended.stdout == ""
    assert ended.stderr.startswith("seawall: no Java was found")
    assert ended.stderr.endswith("Run: this line\n")


def test_defect_has_a_code_of_its_own_and_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is not taken for a finding, and what a report needs is printed."""

    def act() -> None:
        raise ZeroDivisionError

    ended = _ending(monkeypatch, act)

    assert ended.status == exit_codes.DEFECT
    assert "Traceback" in ended.stderr
    assert "a defect of Seawall" in ended.stderr


def test_refusal_of_the_system_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is told in one line and has its own code."""

    def act() -> None:
        raise OSError(28, "No space left on device", "/somewhere")

    ended = _ending(monkeypatch, act)

    assert ended.status == exit_codes.SYSTEM
    assert ended.stderr == (
        "seawall: the operating system refused: [Errno 28] No space left on device: '/somewhere'\n"
    )


def test_keyboard_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends quietly, with the code that shells know."""

    def act() -> None:
        raise KeyboardInterrupt

    ended = _ending(monkeypatch, act)

    assert (ended.status, ended.stdout, ended.stderr) == (exit_codes.INTERRUPTED, "", "")


def test_broken_pipe_of_another_is_a_system_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only our own standard output may end quietly: a broken socket is not a reader that had enough."""

    def act() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    ended = _ending(monkeypatch, act)

    assert ended.status == exit_codes.SYSTEM
    assert "Broken pipe" in ended.stderr


@pytest.mark.parametrize("arguments", [["surf"], ["--tide"], ["doctor", "--tide"], ["doctor", "extra"]])
def test_wrong_command_line_is_2(arguments: list[str]) -> None:
    """Usage is told on standard error with its own code."""
    ended = call(*arguments)

    assert (ended.status, ended.stdout) == (exit_codes.USAGE, "")
    assert "Usage: seawall" in ended.stderr


def test_version_is_printed() -> None:
    """`--version` is one line on standard output."""
    ended = call("--version")

    assert ended.status == exit_codes.CLEAN
    assert ended.stdout.startswith("seawall ")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_every_verb_in_one_line_each(flag: str) -> None:
    """Whoever asks what there is sees every verb, and no description cut off."""
    ended = call(flag)

    assert ended.status == exit_codes.CLEAN
    for verb in ("doctor", "log", "settings"):
        assert f"\n  {verb} " in ended.stdout
    assert "..." not in ended.stdout.split("Commands:")[1]


@pytest.mark.slow  # each a process
@pytest.mark.parametrize("arguments", [["settings"], ["settings", "--json"], ["--help"], ["doctor", "-h"]])
def test_reader_that_stops_reading_ends_it_quietly(arguments: list[str]) -> None:
    """`seawall ... | head` leaves no traceback, and a code that is neither clean nor a finding."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [*SEAWALL, *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            env=_clean_environment(),
            text=True,
            check=False,
        )
    finally:
        os.close(writing)

    assert (ended.returncode, ended.stderr) == (exit_codes.PIPE_CLOSED, "")


@pytest.mark.slow
def test_package_runs_as_a_module() -> None:
    """`python -m seawall` is the console script."""
    ended = subprocess.run(
        [*SEAWALL, "--help"],
        capture_output=True,
        cwd=REPOSITORY,
        env=_clean_environment(),
        text=True,
        check=True,
    )

    assert ended.stdout.startswith("Usage: ")


def test_clients_are_not_imported_before_they_are_needed() -> None:
    """A verb that reads files starts without loading Kafka's, S3's and Spark's libraries."""
    script = (
        "import sys, seawall.cli; print(sorted({'boto3', 'confluent_kafka', 'pyspark'} & set(sys.modules)))"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, cwd=REPOSITORY, text=True, check=True
    )

    assert loaded.stdout == "[]\n"


def test_every_verb_is_registered_by_its_own_name() -> None:
    """One file a verb: the verb is named after its file."""
    names = {path.stem for path in (REPOSITORY / "seawall" / "cli").iterdir()}

    verbs = set(app.VERBS)

    assert verbs
    assert verbs <= names


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")}
