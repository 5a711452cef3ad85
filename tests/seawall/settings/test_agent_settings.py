"""The agent's settings: numbers, sizes and lists, the same from a file, a variable and a flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from seawall.settings import SettingsRefused, load


@pytest.mark.parametrize(
    ("text", "variable", "value", "key", "expected"),
    [
        ("workers = 7", "SEAWALL_AGENT__WORKERS", "7", "workers", 7),
        ("topics = ['a*', 'b']", "SEAWALL_AGENT__TOPICS", "a*, b", "topics", ("a*", "b")),
        ("log_dirs = ['/d']", "SEAWALL_AGENT__LOG_DIRS", "/d", "log_dirs", ("/d",)),
        ("hold_bytes_max = '50MiB'", "SEAWALL_AGENT__HOLD_BYTES_MAX", "52428800", "hold_bytes_max", 52428800),
        ("hold_bytes_max = 5", "SEAWALL_AGENT__HOLD_BYTES_MAX", "5B", "hold_bytes_max", 5),
        ("observe_only = true", "SEAWALL_AGENT__OBSERVE_ONLY", "true", "observe_only", True),
        ("listen = '[::1]:0'", "SEAWALL_AGENT__LISTEN", "[::1]:0", "listen", "[::1]:0"),
    ],
)  # fmt: skip
def test_each_source_says_the_same(
    tmp_path: Path, text: str, variable: str, value: str, key: str, expected: object
) -> None:
    """TOML has numbers and lists; variables and flags have text: they come to one value."""
    file = tmp_path / "seawall.toml"
    file.write_text(f"[agent]\n{text}\n")

    of_file = load(file=file, environ={})
    of_variable = load(environ={variable: value})
    of_flag = load(environ={}, flags={f"agent.{key}": ("--it", value)})

    for loaded in (of_file, of_variable, of_flag):
        assert getattr(loaded.settings.agent, key) == expected


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("SEAWALL_AGENT__WORKERS", "0", "a whole number from 1 to 64"),
        ("SEAWALL_AGENT__WORKERS", "-1", "a whole number from 1 to 64"),
        ("SEAWALL_AGENT__OBSERVE_ONLY", "yes", "true or false"),
        ("SEAWALL_AGENT__RESCAN_S", "1.5", "a whole number from 1 to 3600"),
        ("SEAWALL_AGENT__TOPICS", "a,,b", "a list such as"),
        ("SEAWALL_AGENT__LISTEN", "9317", "host:port"),
        ("SEAWALL_AGENT__LISTEN", "h:70000", "host:port"),
        ("SEAWALL_AGENT__UPLOAD_BYTES_PER_S", "0", "at least 1 byte"),
        ("SEAWALL_AGENT__UPLOAD_BYTES_PER_S", "50Mb", "an amount such as"),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is(variable: str, value: str, allowed: str) -> None:
    """The message names the variable and what it must be."""
    with pytest.raises(SettingsRefused, match=variable) as refused:
        load(environ={variable: value})

    assert allowed in str(refused.value)


def test_a_list_in_the_file_holds_words_only(tmp_path: Path) -> None:
    """Numbers, tables and empty words are no topic patterns."""
    for text in ("topics = [1]", "topics = ['']", "topics = 5", "topics = [['a']]"):
        file = tmp_path / "seawall.toml"
        file.write_text(f"[agent]\n{text}\n")
        with pytest.raises(SettingsRefused, match=r"agent\.topics"):
            load(file=file, environ={})


def test_all_are_shown_as_text() -> None:
    """What `seawall settings` prints of a list or a number could stand in a variable."""
    shown = dict(load(environ={"SEAWALL_AGENT__TOPICS": "a,b"}).items())

    assert shown["agent.topics"] == "a,b"
    assert shown["agent.workers"] == "4"
    assert shown["agent.metadata_replicas"] is None
