"""What is printed for people: what was found is shown, and no terminal obeys it."""

from __future__ import annotations

import pytest
from rich.text import Text

from seawall.cli.console import print_table, stdout_console


def test_a_key_that_would_move_the_cursor_is_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes, a bell, a carriage's return, text that runs backwards: by their numbers."""
    key = "seawall/\x1b[2J\x1b]0;owned\u202egol"

    print_table(("key",), [(Text(key, style="red"),)])
    stdout_console().print(f"{key}\x07\r")

    printed = capsys.readouterr().out
    assert printed.count("seawall/\\x1b[2J\\x1b]0;owned\\u202egol") == 2
    assert "\\x07\\x0d" in printed
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(printed)


def test_plain_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Letters of any language, and lines."""
    stdout_console().print("tørke\nüber 日本")

    assert capsys.readouterr().out == "tørke\nüber 日本\n"
