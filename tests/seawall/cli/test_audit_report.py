"""`seawall audit report`, but for Spark: where the page goes, and what a script learns from the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from audit_engine.report import spark as gathering
from audit_engine.report.values import Gathered
from seawall.audit import spark as sessions
from seawall.files import replace_whole
from tests.audit_engine.report.fleets import empty, healthy, one_incident
from tests.seawall.cli.calling import call


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Gathered | None]:
    """What the tables hold, told by the test; the working folder is its own."""
    runs: list[Gathered | None] = []

    @contextmanager
    def session(*_: object, **__: object) -> Iterator[tuple[None, Path]]:
        yield None, tmp_path

    def gather(_spark: Any, _root: str, run: int | None) -> Gathered | None:
        assert run in (None, 30)
        return runs[-1]

    monkeypatch.setattr(sessions, "session", session)
    monkeypatch.setattr(gathering, "gather", gather)
    monkeypatch.chdir(tmp_path)
    return runs


def test_the_page_is_written_and_the_code_is_the_runs(told: list[Gathered | None], tmp_path: Path) -> None:
    """0 all pass, 1 a violation, 4 nothing could be told: and each time a page that says so."""
    for run, code, word in (
        (healthy(), 0, "Pass"),
        (one_incident(), 1, "Violation"),
        (empty(), 4, "Indeterminate"),
    ):
        told.append(run)
        called = call("audit", "report", "--tables", "t")
        assert (called.status, called.stdout) == (
            code,
            f"seawall-run-30.html: run 30, {word.upper()}\n",
        )
        assert f'id="verdict">{word}</h1>' in (tmp_path / "seawall-run-30.html").read_text()


def test_the_page_can_go_elsewhere(
    told: list[Gathered | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a file, to standard output, to a browser; standard output cannot be opened."""
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    told.append(healthy())

    assert call("audit", "report", "--tables", "t", "--run", "30", "--out", "page.html", "--open").status == 0
    printed = call("audit", "report", "--tables", "t", "--out", "-")

    assert printed.stdout == (tmp_path / "page.html").read_text()
    assert shown == [(tmp_path / "page.html").as_uri()]
    assert call("audit", "report", "--tables", "t", "--out", "-", "--open").status == 2


def test_without_a_run_nothing_is_written(told: list[Gathered | None], tmp_path: Path) -> None:
    """Code 4: an old page is not replaced by one that knows nothing."""
    told.append(None)

    called = call("audit", "report", "--tables", "t")

    assert (called.status, called.stdout) == (4, "")
    assert "no run was ever finished" in called.stderr
    assert list(tmp_path.glob("*.html")) == []


def test_a_page_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where writing fails the old page stands, and nothing is left beside it."""
    file = tmp_path / "page.html"
    file.write_text("old")
    monkeypatch.setattr("os.fsync", _full)

    with pytest.raises(OSError, match="full"):
        replace_whole(file, "new")

    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def _full(_: int) -> None:
    raise OSError("full")
