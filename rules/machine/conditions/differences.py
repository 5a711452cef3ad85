"""META-01, and RET-03 of brokers' defaults: where brokers should say the same, and do not.

Owns these predicates.
"""

from __future__ import annotations

from collections.abc import Iterator

from rules.machine import authority
from rules.machine.conditions.condition import Condition
from rules.machine.spans import NONE, Spans, join, span
from rules.machine.state import LogState
from rules.machine.terms import Terms


def of_tables(state: LogState) -> Iterator[Condition]:
    for broker_id, offset in sorted(state.odd_tables.items()):
        leads = broker_id == state.leader_id
        yield Condition(
            rule_id="META-01",
            subject=f"replica {broker_id}",
            anchor="table",
            severity="C" if leads else "E",
            grace_ms=0,
            ranges=_lacked(state, broker_id),
            note=f"broker {broker_id}'s table disagrees at offset {offset}"
            + (", and it leads" if leads else ""),
        )


def _lacked(state: LogState, broker_id: int) -> Spans:
    ids = state.lacking.get(broker_id, ())
    return join(
        NONE, *(span(state.tier[each].base, state.tier[each].end) for each in ids if each in state.tier)
    )


def of_defaults(state: LogState, terms: Terms) -> Iterator[Condition]:
    """RET-03 too: two brokers that would delete one log differently."""
    for key in ("retention.ms", "retention.bytes"):
        defaults = authority.defaults_now(state, key)
        if len(set(defaults.values())) > 1:
            told = ", ".join(f"broker {each}: {value}" for each, value in sorted(defaults.items()))
            yield Condition(
                rule_id="RET-03",
                subject="topic",
                anchor=f"{key}@brokers",
                severity="E",
                grace_ms=terms.settle_ms,
                note=f"brokers would delete one log differently: {key} {told}",
            )
