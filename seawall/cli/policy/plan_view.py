"""A plan as people and as programs read it; what weakens a protection is marked, and said again last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import typer
from rich.text import Text

from rules.policy import KEYS
from rules.policy.difference import Affected, Change, Effect
from rules.policy.errors import table_of
from rules.policy.events import policy_declared
from rules.policy.timeline import Applied
from rules.policy.weakening import Weakening
from seawall.cli.console import print_table
from seawall.cli.policy import options
from seawall.policy.plan import Plan

NOTHING = "-"
MARKS = {
    Weakening.SHRINKS: Text("SHRINKS", style="bold red"),
    Weakening.OPENS: Text("OPENS", style="bold red"),
    Weakening.ENDS: Text("ENDS", style="bold red"),
    None: Text(""),
}


def print_plan(planned: Plan) -> None:
    if planned.is_empty:
        since = f" since {options.named(planned.base)}" if planned.base is not None else ""
        typer.echo(f"nothing to change: this policy is in force{since}")
        return
    base = f"on top of {options.named(planned.base)}" if planned.base is not None else "the first policy"
    typer.echo(f"plan {planned.plan_id}: {base}")
    typer.echo()
    changes = [_change_row(planned, change) for change in planned.changes]
    print_table(("change", "table", "key", "before", "after", ""), changes)
    typer.echo()
    typer.echo(f"{len(planned.affected)} of {planned.topic_count} topics are affected")
    if planned.affected:
        effects = [_effect_row(each, effect) for each in planned.affected for effect in each.effects]
        print_table(("topic", "key", "before", "after", "from", ""), effects)
    for line in _loud(planned):
        typer.echo(line)


def _change_row(planned: Plan, change: Change) -> tuple[Text, ...]:
    return (
        Text(_verb(change)),
        Text(change.pattern),
        Text(change.key),
        Text(_declared(change.key, change.before)),
        Text(_declared(change.key, change.after)),
        MARKS[_weakening(planned, change)],
    )


def _verb(change: Change) -> str:
    if change.before is None:
        return "added"
    return "removed" if change.after is None else "changed"


def _declared(key: str, value: Any) -> str:
    return NOTHING if value is None else KEYS[key].spoken(value)


def _weakening(planned: Plan, change: Change) -> Weakening | None:
    """What the change of a table comes to for some topic, be it one that does not exist yet."""
    for kind in planned.kinds:
        for effect in kind.effects:
            patterns = (*effect.before_origin.patterns, *effect.after_origin.patterns)
            if effect.key == change.key and change.pattern in patterns and effect.weakening is not None:
                return effect.weakening
    return None


def _effect_row(affected: Affected, effect: Effect) -> tuple[Text, ...]:
    spoken = KEYS[effect.key].spoken
    return (
        Text(affected.topic),
        Text(effect.key),
        Text(spoken(effect.before)),
        Text(spoken(effect.after)),
        Text(str(effect.after_origin)),
        MARKS[effect.weakening],
    )


def _loud(planned: Plan) -> Iterator[str]:
    """What nobody should miss, last."""
    for weakening, what in (
        (Weakening.SHRINKS, "RETENTION SHRINKS"),
        (Weakening.OPENS, "DELETION OPENS"),
        (Weakening.ENDS, "PROTECTION ENDS"),
    ):
        weakened = [
            each.topic
            for each in planned.affected
            if any(effect.weakening is weakening for effect in each.effects)
        ]
        if weakened:
            yield f"{what} for {len(weakened)} of {planned.topic_count} topics"


def plan_as_json(planned: Plan, applied: Applied | None) -> dict[str, Any]:
    return {
        "plan_id": planned.plan_id,
        "base": options.as_json(planned.base),
        "policy_hash": planned.policy.content_hash,
        "changes": [
            {
                "change": _verb(change),
                "table": table_of(change.pattern),
                "pattern": change.pattern,
                "key": change.key,
                "before": _plain(change.key, change.before),
                "after": _plain(change.key, change.after),
                "weakening": _weakening(planned, change),
            }
            for change in planned.changes
        ],
        "topics": planned.topic_count,
        "affected": [_affected_as_json(each) for each in planned.affected],
        "applied": options.as_json(applied),
        "events": [asdict(each) for each in policy_declared(planned.base, applied)] if applied else [],
    }


def _affected_as_json(affected: Affected) -> dict[str, Any]:
    return {
        "topic": affected.topic,
        "effects": [
            {
                "key": effect.key,
                "before": _plain(effect.key, effect.before),
                "after": _plain(effect.key, effect.after),
                "from": effect.after_origin.patterns,
                "weakening": effect.weakening,
            }
            for effect in affected.effects
        ],
    }


def _plain(key: str, value: Any) -> Any:
    return None if value is None else KEYS[key].form.plain(value)
