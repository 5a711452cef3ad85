"""Reads a rule set's file. Whatever is wrong with it is told with the file's name, all of it at once."""

from __future__ import annotations

import sys
from pathlib import Path

from audit_engine.run.errors import RuleSetFileRefused
from rules.ruleset import RuleSet, RuleSetRefused, read_rule_set

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]  # mypy runs on newer ones too


def read_file(path: Path) -> RuleSet:
    """RuleSetFileRefused if it is no TOML, or no rule set."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise RuleSetFileRefused(path=str(path), problems=str(failure)) from failure
    try:
        return read_rule_set(tree)
    except RuleSetRefused as refused:
        raise RuleSetFileRefused(path=str(path), problems=str(refused)) from refused
