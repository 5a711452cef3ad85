"""`seawall settings`: every setting and its origin, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seawall.settings.errors import SettingsRefused, SettingsUnreadable
from seawall.settings.names import ENVIRONMENT_ONLY, PASSTHROUGH, known_paths
from tests.seawall.cli.calling import call


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file with a bucket and a password."""
    path = tmp_path / "seawall.toml"
    path.write_text('[s3]\nbucket = "archive"\n[kafka.client]\nsasl.password = "hunter2"\n', encoding="utf-8")
    return path


def test_every_setting_is_shown_with_its_origin(file: Path) -> None:
    """The JSON has each key once, with its value and the flag, variable or file that set it."""
    ended = call(
        *("--settings", str(file), "settings", "--region", "eu-central-1", "--json"),
        environ={"SEAWALL_S3__PREFIX": "tide"},
    )

    rows = {row["key"]: row for row in json.loads(ended.stdout)}
    expected = {*known_paths(), *ENVIRONMENT_ONLY, "kafka.client.sasl.password"} - {PASSTHROUGH}
    assert set(rows) == expected
    assert [
        (rows[key]["value"], rows[key]["from"], rows[key]["name"]) for key in sorted(expected) if "s3" in key
    ] == [
        ("archive", "file", str(file)),
        (None, "default", None),
        ("tide", "environment", "SEAWALL_S3__PREFIX"),
        ("eu-central-1", "flag", "--region"),
    ]
    assert ended.status == 0


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_secret_is_said_to_be_set_and_not_shown(file: Path, form: list[str]) -> None:
    """That a password is set is worth knowing; the password is not for the screen."""
    ended = call("--settings", str(file), "settings", *form)

    assert "(secret, set)" in ended.stdout
    assert "hunter2" not in ended.stdout + ended.stderr


def test_table_fits_one_line_a_setting(file: Path) -> None:
    """A narrow terminal breaks no row: the output can be searched by line."""
    ended = call("--settings", str(file), "settings", environ={"COLUMNS": "40"})

    (line,) = (line for line in ended.stdout.splitlines() if line.startswith("s3.bucket"))
    assert line.split() == ["s3.bucket", "archive", "file", str(file)]


def test_refused_settings_end_with_their_code(file: Path) -> None:
    """Every verb refuses settings that are not understood, before it does anything."""
    file.write_text("bucket = 1", encoding="utf-8")

    ended = call("--settings", str(file), "settings")

    assert ended.status == SettingsRefused.exit_code
    assert ended.stderr == f"seawall: unknown key `bucket` in {file}; did you mean `s3.bucket`?\n"


def test_named_file_that_is_missing_ends_with_its_code(tmp_path: Path) -> None:
    """A settings file that was asked for has to be there."""
    ended = call("--settings", str(tmp_path / "none.toml"), "settings")

    assert ended.status == SettingsUnreadable.exit_code
