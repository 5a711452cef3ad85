"""`seawall doctor`: the lines, the JSON and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from seawall.cli import exit_codes
from seawall.cli.doctor import exit_code
from seawall.doctor import rounds
from seawall.doctor.finding import Finding, Status, fail, ok, skipped, unknown, warn
from seawall.settings import Settings
from tests.seawall.cli.calling import call

FINDINGS = (ok("python", "3.11"), warn("disk", "1 GB free", "Free some."), fail("java", "none", "Run: this"))


def _with(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> list[Settings]:
    asked = []

    def examine(settings: Settings) -> Iterator[Finding]:
        asked.append(settings)
        yield from findings

    monkeypatch.setattr(rounds, "examine", examine)
    return asked


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([Status.OK], exit_codes.CLEAN),
        ([Status.OK, Status.WARN, Status.SKIPPED], exit_codes.CLEAN),
        ([Status.OK, Status.UNKNOWN], exit_codes.INDETERMINATE),
        ([Status.UNKNOWN, Status.FAIL], exit_codes.FINDINGS),
        ([], exit_codes.INDETERMINATE),
    ],
)
def test_exit_code_is_the_worst_that_was_seen(statuses: list[Status], code: int) -> None:
    """A failure outweighs what is unknown, that outweighs all else, and no look at all is not clean."""
    assert exit_code(statuses) == code


def test_each_finding_is_a_line_and_each_remedy_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person reads status, subject and detail on one line, and what to do below it."""
    _with(monkeypatch, *FINDINGS)

    ended = call("doctor")

    assert [line.split() for line in ended.stdout.splitlines()] == [
        ["ok", "python", "3.11"],
        ["warn", "disk", "1", "GB", "free"],
        ["Free", "some."],
        ["fail", "java", "none"],
        ["Run:", "this"],
    ]
    assert ended.status == exit_codes.FINDINGS


def test_json_holds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program reads the same findings, and gets the same exit code."""
    _with(monkeypatch, *FINDINGS, skipped("s3", "not configured"))

    ended = call("doctor", "--json")

    assert json.loads(ended.stdout) == [
        {"subject": "python", "status": "ok", "detail": "3.11", "remedy": None},
        {"subject": "disk", "status": "warn", "detail": "1 GB free", "remedy": "Free some."},
        {"subject": "java", "status": "fail", "detail": "none", "remedy": "Run: this"},
        {"subject": "s3", "status": "skipped", "detail": "not configured", "remedy": None},
    ]
    assert ended.status == exit_codes.FINDINGS


def test_flags_reach_the_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given on the command line is what is looked at."""
    asked = _with(monkeypatch, unknown("kafka", "no answer"))

    ended = call("doctor", "--bootstrap", "a:1", "--bucket", "archive", "--endpoint-url", "http://b:2")

    (settings,) = asked
    assert settings.kafka.bootstrap == "a:1"
    assert (settings.s3.bucket, settings.s3.endpoint_url) == ("archive", "http://b:2")
    assert ended.status == exit_codes.INDETERMINATE


def test_detail_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets in a detail are text, not markup, and a long line is not broken."""
    detail = "[kafka.client] [bold]" + "x" * 300
    _with(monkeypatch, ok("kafka", detail))

    assert call("doctor").stdout.rstrip("\n").endswith(detail)
