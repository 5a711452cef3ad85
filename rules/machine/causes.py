"""One fault, one incident: which finding is the root, and which are its children (RULES, "Causality").

    RET-03 ─► START-02 ─► RET-01, RET-02, DEL-01 ─► SEG-*        OPS-03 ─► SEG-06
    OPS-01 ─► START-02                                           META-02 ─► META-01 ─► SEG-02
    START-03, START-02 ─► START-01, START-04, START-05           HWM-01 ─► HWM-02, EPO-01

A child lies in the range of its parent, or one of the two has none. The first parent that fits counts, in the
order below.

Owns this table. Invariant: a finding has at most one parent, and no finding is its own ancestor.
"""

from __future__ import annotations

from collections.abc import Mapping

from rules.machine.spans import meet
from rules.machine.state import Found, LogState

# By child, the parents that explain it, the nearest root first.
EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    "START-01": ("START-03",),
    "START-02": ("OPS-01", "RET-03"),
    "START-04": ("START-03", "START-02", "RET-03"),
    "START-05": ("START-02",),
    "START-06": ("START-02",),
    "RET-01": ("START-02", "RET-03"),
    "RET-02": ("START-02", "RET-03"),
    "DEL-01": ("START-02",),
    "SEG-02": ("START-02", "DEL-01", "SEG-09", "META-01", "OPS-03"),
    "SEG-06": ("OPS-03", "DEL-01"),
    "SEG-09": ("START-02",),
    "SEG-11": ("START-02", "SEG-09"),
    "META-01": ("META-02",),
    "HWM-02": ("HWM-01",),
    "HWM-03": ("START-03",),
    "EPO-01": ("HWM-01",),
    "OPS-02": ("OPS-01", "RET-03", "START-02"),
}


def parents(state: LogState) -> dict[str, str]:
    """By key of a child, the key of its parent."""
    found: dict[str, str] = {}
    for key, child in sorted(state.findings.items()):
        for rule_id in EXPLAINED_BY.get(child.rule_id, ()):
            fitting = [
                other
                for other, each in sorted(state.findings.items())
                if each.rule_id == rule_id and each.closed_by != "withdrawn" and _fits(child, each)
            ]
            if fitting:
                found[key] = fitting[0]
                break
    return found


def root_of(key: str, by_child: Mapping[str, str]) -> str:
    while key in by_child:
        key = by_child[key]
    return key


def _fits(child: Found, parent: Found) -> bool:
    # A topic's finding, or one about a table, explains wherever it is.
    if not child.ranges or not parent.ranges:
        return True
    return bool(meet(child.ranges, parent.ranges)) or _begins_at(child, parent)


def _begins_at(child: Found, parent: Found) -> bool:
    """A start inside a segment lies at the very end of what went (START-05)."""
    return child.ranges[0][0] == parent.ranges[-1][1]
