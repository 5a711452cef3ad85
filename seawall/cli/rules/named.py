"""A rule by the id that a user wrote, and as JSON."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

from rules.catalogue import RULES, Rule

RuleId: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="As `seawall rules list` names it, such as START-02.")
]


def named(rule_id: str) -> Rule:
    """A usage error if there is none."""
    found = next((each for each in RULES if each.id == rule_id.upper()), None)
    if found is None:
        raise typer.BadParameter(f"{rule_id!r} is no rule; see: seawall rules list", param_hint="ID")
    return found


def as_json_object(each: Rule) -> dict[str, Any]:
    return {
        "id": each.id,
        "major": each.major,
        "invariant": each.invariant,
        "evidence": [*each.evidence],
        "severity": each.severity.value,
        "critical_when": each.rises_when or None,
        "closes": each.sort.value,
        "grace": each.grace.value,
        "applies": [one.value for one in each.applies],
        "remedy": each.remedy,
        "judged_by": each.judged_by,
        "page": each.page,
    }
