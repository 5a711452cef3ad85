"""Effective retention against declared: RET-03.

A change that keeps less than was declared is remembered at once and said once no declaration can come any
more: one that is made up to its grace before or after authorises it. Where it is undone meanwhile it is said
all the same, as reverted. It is critical once it deletes. Brokers' defaults may be told before a topic's own
values are: what only seemed to be in force until then never deviated.

Owns deviations. Invariant: one that is declared in time, or that lasted no time, leaves nothing.
"""

from __future__ import annotations

from rules.events import ConfigEffective, ConfigResource, PolicyDeclared
from rules.machine import authority
from rules.machine.authority import LOCAL, TOTAL
from rules.machine.cluster import RETENTION_KEYS
from rules.machine.findings import close, opened, worse
from rules.machine.justified import is_blocked
from rules.machine.spans import NONE
from rules.machine.state import Deviation, Found, LogState
from rules.machine.terms import Terms

SAME_AS_TOTAL = -2  # local.retention.*


def track(state: LogState, event: ConfigEffective | PolicyDeclared) -> None:
    """After a setting or the policy was told."""
    mode = authority.deployment(state)
    for key in RETENTION_KEYS:
        if key.startswith("local.") and mode != "kip405":
            continue
        alive = next(
            (each for each in state.deviations if each.key == key and each.reverted_ms is None), None
        )
        now = authority.effective_now(state, key)
        keeps = authority.authorised_now(state, _sort_of(key, mode))
        if now is None or keeps is None or now == SAME_AS_TOTAL:
            continue
        limit = keeps.ms if key.endswith(".ms") else keeps.bytes
        if alive is not None:
            alive.changes = authority.changes_since(state, key, alive.since_ms)
        if authority.keeps_less(now, limit):
            _deviates(state, alive, key, event, now)
        elif alive is not None:
            _agrees_again(state, alive, event)


def _deviates(
    state: LogState, alive: Deviation | None, key: str, event: ConfigEffective | PolicyDeclared, now: int
) -> None:
    if alive is not None:
        alive.least = now if authority.keeps_less(now, alive.least) else alive.least
        return
    grace_ms = authority.policy_now(state).declare_grace_ms
    state.deviations.append(
        Deviation(
            key=key,
            anchor=f"{key}@{_anchor(event)}",
            since_ms=event.occurred_at_ms,
            due_ms=event.occurred_at_ms + grace_ms,
            least=now,
            changes=1,
        )
    )


def _anchor(event: ConfigEffective | PolicyDeclared) -> str:
    if isinstance(event, PolicyDeclared):
        return f"policy:{event.policy_offset}"
    return str(event.occurred_at_ms if event.metadata_offset is None else event.metadata_offset)


def _agrees_again(state: LogState, alive: Deviation, event: ConfigEffective | PolicyDeclared) -> None:
    at_ms = event.occurred_at_ms
    is_declared = isinstance(event, PolicyDeclared)
    never_was = isinstance(event, ConfigEffective) and _lasted_no_time(state, alive, event)
    if is_declared or never_was:
        state.deviations.remove(alive)
    else:
        alive.reverted_ms = at_ms
    known = state.findings.get(f"RET-03|topic|{alive.anchor}")
    if known is not None and known.closed_ms is None:
        _note(known, alive)
        if never_was or (is_declared and at_ms <= alive.due_ms):
            close(known, at_ms, "withdrawn")
        else:
            known.cleared_ms = at_ms


def _lasted_no_time(state: LogState, alive: Deviation, event: ConfigEffective) -> bool:
    """It is undone no later than it began, or by the first sight of the topic's own value, which is in force
    for as long as anybody can tell, where nothing beside it was ever seen to change."""
    if event.occurred_at_ms <= alive.since_ms:
        return True
    is_topic = event.resource is ConfigResource.TOPIC and event.key == alive.key
    return is_topic and event.is_first_sight and authority.is_as_first_told(state, alive.key)


def _sort_of(key: str, mode: str) -> str:
    return LOCAL if mode == "ours" or key.startswith("local.") else TOTAL


def decide(state: LogState, terms: Terms, now_ms: int) -> None:
    mode = authority.deployment(state)
    for each in list(state.deviations):
        is_due = now_ms >= each.due_ms and not is_blocked(state, None, each.since_ms, each.due_ms)
        if each.is_open or not is_due:
            continue
        allowed = authority.declared_within(state, _sort_of(each.key, mode), each.since_ms, each.due_ms)
        limits = [keeps.ms if each.key.endswith(".ms") else keeps.bytes for keeps in allowed]
        if any(not authority.keeps_less(each.least, limit) for limit in limits):
            state.deviations.remove(each)
            continue
        each.is_open = True
        found = opened(
            state,
            "RET-03",
            subject="topic",
            anchor=each.anchor,
            severity="E",
            ranges=NONE,
            interval=(each.since_ms, each.since_ms),
            note="",
            at_ms=each.due_ms,
        )
        if found is not None:
            found.cleared_ms = each.reverted_ms
            _note(found, each)


def _note(found: Found, each: Deviation) -> None:
    reverted = ", reverted" if each.reverted_ms is not None else ""
    found.note = f"{each.key} was {each.least}, less than was declared; changes={each.changes}{reverted}"


def worsen(state: LogState) -> None:
    """RET-03 is C once it deletes."""
    for each in state.deviations:
        known = state.findings.get(f"RET-03|topic|{each.anchor}")
        if known is None:
            continue
        _note(known, each)
        if any(
            found.rule_id in ("RET-01", "RET-02") and found.happened[1] >= each.since_ms
            for found in state.findings.values()
        ):
            known.severity = worse(known.severity, "C")
