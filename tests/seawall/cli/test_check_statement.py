"""Signed statements: who has the secret takes those that were signed with it, as they were."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from seawall.audit.signed import StatementsNotBelieved, checked, signed
from tests.seawall.cli.calling import call

KEY = b"k" * 32
STATED: list[dict[str, Any]] = [
    {
        "topic": "orders",
        "partition": 0,
        "verdict": "VIOLATION",
        "run": 7,
        "statement_hash": "ab",
        "missing": [],
    },
    {
        "topic": "orders",
        "partition": 1,
        "verdict": "PASS",
        "run": 7,
        "statement_hash": "cd",
        "missing": ["ø"],
    },
]


def test_what_was_signed_reads_back() -> None:
    """All statements, in their order; none is a statement, too."""
    assert checked(signed(STATED, KEY).encode(), KEY, "s.json") == STATED
    assert checked(signed([], KEY).encode(), KEY, "s.json") == []


@pytest.mark.parametrize("change", ["verdict", "run", "left out", "order", "added", "key", "no signature"])
def test_any_change_is_refused(change: str) -> None:
    """A verdict, the run it is of, a statement less, another order, a member more, another's key, none."""
    whole = json.loads(signed(STATED, b"o" * 32 if change == "key" else KEY))
    statements = whole["seawall_statements"]
    if change == "verdict":
        statements[0]["verdict"] = "PASS"
    elif change == "run":
        statements[0]["run"] = 8
    elif change == "left out":
        statements.pop(0)
    elif change == "order":
        statements.reverse()
    elif change == "added":
        whole["note"] = "all is well"
    elif change == "no signature":
        whole["signature"] = None

    with pytest.raises(StatementsNotBelieved):
        checked(json.dumps(whole).encode(), KEY, "s.json")


def test_the_verb_says_what_was_signed(tmp_path: Path) -> None:
    """One line a statement and 0; with another secret 78; what is no such file, 78."""
    for name, key in (("mine", KEY), ("another", b"o" * 32)):
        (tmp_path / name).write_text("whsec_" + base64.b64encode(key).decode())
    (tmp_path / "s.json").write_text(signed(STATED, KEY))
    (tmp_path / "other.json").write_text("[]")

    def check(file: str, secret: str) -> tuple[int, str]:
        called = call(
            "audit", "check-statement", str(tmp_path / file), "--signed-with", str(tmp_path / secret)
        )
        return called.status, called.stdout

    assert check("s.json", "mine") == (
        0,
        "orders-0: VIOLATION, by run 7; hash ab\norders-1: PASS, by run 7; hash cd\n",
    )
    assert check("s.json", "another") == (78, "")
    assert check("other.json", "mine") == (78, "")
