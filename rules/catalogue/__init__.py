"""The static rules as data: what the audit judges by, in the order in which they are shown.

    rule         the shape
    start, retention, segments, replication, operations, evidence    the rules
    page         docs/rules, made from these

Owns the list and its hash. The machine refuses a finding of a rule that is not here.

Invariant: ids are stable for ever, and no two rules share one. With the same hash, the same evidence is
judged alike: it covers what is decided by (not the words for people), and the version of the meaning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache

from rules.catalogue import evidence, operations, replication, retention, segments, start
from rules.catalogue.rule import Deployment, Grace, Rule, Severity, Sort

__all__ = ["RULES", "Deployment", "Grace", "Rule", "Severity", "Sort", "rule", "rule_set_hash"]

# Rises when the machine judges the same evidence otherwise without any rule's `major` saying so.
MEANING = 2

RULES: tuple[Rule, ...] = (
    *start.RULES,
    *retention.RULES,
    *segments.RULES,
    *replication.RULES,
    *operations.RULES,
    *evidence.RULES,
)
_BY_ID: Mapping[str, Rule] = {each.id: each for each in RULES}


def rule(rule_id: str) -> Rule:
    """KeyError if there is none of this id."""
    return _BY_ID[rule_id]


@cache
def rule_set_hash() -> str:
    """SHA-256, as 64 hexadecimal digits."""
    decides = [
        {
            "id": each.id,
            "major": each.major,
            "severity": each.severity.value,
            "sort": each.sort.value,
            "grace": each.grace.value,
            "applies": [deployment.value for deployment in each.applies],
        }
        for each in sorted(RULES, key=lambda each: each.id)
    ]
    told = json.dumps({"meaning": MEANING, "rules": decides}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(told.encode()).hexdigest()
