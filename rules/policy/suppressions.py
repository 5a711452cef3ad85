"""A suppression as a line of the policy: which rule, until when, who answers for it, and why.

    "RET-05 until 2026-12-31 by team-orders: the disk is being replaced"

Owns the line's form. Refuses one without an end: what is let be for ever is a rule that nobody wants. Refuses
a rule that does not exist: a misspelt one would be judged on, unnoticed.

Invariant: `read_line(line).text` is the one way to write it, and reads back to the same value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rules.catalogue import RULES
from rules.moments import read_moment, write_moment

ALLOWED = '"RULE until 2026-12-31 by WHO: WHY" (the day in UTC, or a time such as 2026-12-31T06:00Z)'
_LINE = re.compile(r"(?P<rule>[A-Z]+-\d\d) until (?P<until>\S+) by (?P<owner>[^:]+): (?P<why>.+)")
_TEXT_MAX = 400


class SuppressedByPolicy(NamedTuple):
    rule_id: str
    expires_at_ms: int
    owner: str
    reason: str

    @property
    def text(self) -> str:
        return f"{self.rule_id} until {write_moment(self.expires_at_ms)} by {self.owner}: {self.reason}"


def read_line(line: str) -> SuppressedByPolicy:
    """ValueError, in words that fit after "must be"."""
    parts = _LINE.fullmatch(line)
    if parts is None or len(line) > _TEXT_MAX or not line.isprintable():
        raise ValueError(ALLOWED)
    owner, why = parts["owner"].strip(), parts["why"].strip()
    if not owner or not why:
        raise ValueError(ALLOWED)
    if parts["rule"] not in {each.id for each in RULES}:
        raise ValueError(f"{ALLOWED}, and there is no rule {parts['rule']}")
    try:
        expires_at_ms = read_moment(parts["until"])
    except ValueError:
        raise ValueError(ALLOWED) from None
    return SuppressedByPolicy(parts["rule"], expires_at_ms, owner, why)
