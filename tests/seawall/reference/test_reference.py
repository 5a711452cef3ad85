"""The pages that are made from the code are as the code makes them, and name everything."""

from __future__ import annotations

from pathlib import Path

from seawall.cli.app import VERBS
from seawall.reference import commands, settings
from seawall.settings.model import Settings

DOCS = Path(__file__).parents[3] / "docs"


def test_the_commands_are_those_of_the_program() -> None:
    """Made anew whenever a verb changes: python -m seawall.reference.commands > docs/COMMANDS.md."""
    assert (DOCS / "COMMANDS.md").read_text(encoding="utf-8") == commands.page()
    assert {f"## seawall {verb}" for verb in VERBS} <= set(commands.page().splitlines())


def test_the_settings_are_those_of_the_model() -> None:
    """Made anew whenever a setting changes: python -m seawall.reference.settings > docs/SETTINGS.md."""
    assert (DOCS / "SETTINGS.md").read_text(encoding="utf-8") == settings.page()
    assert {f"## [{table}]" for table in Settings.model_fields} <= set(settings.page().splitlines())
