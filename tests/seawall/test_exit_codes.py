"""docs/EXIT_CODES.md and the code say the same."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import audit_engine
import backup
import seawall
import tiering
from seawall.cli import exit_codes
from tiering.errors import StatedError

PAGE = Path(__file__).parents[2] / "docs" / "EXIT_CODES.md"
FIRST_ERROR_CODE = 10
PACKAGES = (audit_engine, backup, seawall, tiering)


def _rows() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line)
    ]


def _documented_errors() -> dict[str, int]:
    errors = (row for row in _rows() if len(row) == 3)
    return {name: int(code) for code, names, _ in errors for name in re.findall(r"`(\w+)`", names)}


def _subclasses(kind: type[StatedError]) -> Iterator[type[StatedError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _subclasses(child)


@pytest.fixture(scope="module")
def errors() -> list[type[StatedError]]:
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):  # importing one runs it
                importlib.import_module(module.name)
    ours = {package.__name__ for package in PACKAGES}
    return [kind for kind in _subclasses(StatedError) if kind.__module__.partition(".")[0] in ours]


def test_every_error_is_covered_by_a_line_of_the_page(errors: list[type[StatedError]]) -> None:
    """The nearest ancestor of an error that the page names has the error's code there."""
    documented = _documented_errors()

    def documented_code(kind: type[StatedError]) -> int | None:
        return next((documented[base.__name__] for base in kind.__mro__ if base.__name__ in documented), None)

    assert {kind.__name__: kind.exit_code for kind in errors} == {
        kind.__name__: documented_code(kind) for kind in errors
    }


def test_every_line_of_the_page_names_errors_that_exist(errors: list[type[StatedError]]) -> None:
    """No line outlives its error, and none states another code than the class does."""
    codes = {kind.__name__: kind.exit_code for kind in errors}

    documented = _documented_errors()

    assert documented == {name: codes.get(name) for name in documented}


def test_outcomes_are_those_of_the_command_line() -> None:
    """The page's first table holds the constants that the verbs exit with, and no other code."""
    constants = {value for name, value in vars(exit_codes).items() if name.isupper()}

    documented = {int(row[0]) for row in _rows() if len(row) == 2}

    assert documented == constants


def test_each_code_has_one_line() -> None:
    """What a script is told by a code is one cause, not two."""
    codes = [int(row[0]) for row in _rows()]

    assert sorted(set(codes)) == sorted(codes)


def test_no_error_has_the_code_of_an_outcome(errors: list[type[StatedError]]) -> None:
    """A script can tell a finding from a failure to look."""
    outcomes = {value for name, value in vars(exit_codes).items() if name.isupper()}

    clashing = [
        kind.__name__ for kind in errors if kind.exit_code in outcomes or kind.exit_code < FIRST_ERROR_CODE
    ]

    assert clashing == []
