"""Writes a policy as policy.toml, with the units that people use.

Owns the little of TOML that a policy needs: tables of flags, numbers, texts and lists of texts. The standard
library reads TOML and does not write it.

Invariant: what is written here, `file.read_file` reads back as an equal policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from rules.policy import KEYS, Policy
from rules.policy.declared import VERSION, Table
from rules.policy.errors import table_of
from rules.policy.values import Plain


def as_toml(policy: Policy) -> str:
    return (
        "\n\n".join([f"version = {VERSION}", *("\n".join(_lines(table)) for table in policy.tables)]) + "\n"
    )


def _lines(table: Table) -> Iterator[str]:
    yield table_of(table.pattern.text)
    for key, value in table.values:
        yield f"{key} = {_literal(KEYS[key].form.human(value))}"


def _literal(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    # A JSON string of printable characters is a TOML string, too.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
