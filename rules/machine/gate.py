"""Whether an agent may delete: what the audit would condemn is not done (issue 6, AUDIT_FACTS 24).

The agent folds what it knows of the log (its table, its policy, the holds, its own segments) into a state of
this machine, says the deletion as the event that it would become, and asks what the machine finds. Its view
is one replica's, so that everything that the machine cannot tell means keep.

Owns the question. Invariant: a deletion that is let pass here is justified by the facts it was asked with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rules.machine import authority
from rules.machine.fold import fold
from rules.machine.state import LogState
from rules.machine.terms import Terms
from rules.machine.told import Told

# What the mere passing of time brings about, whatever is deleted: that something waits to go, or to end.
_OF_WAITING = frozenset({"RET-05", "RET-06", "SEG-11"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MayDelete:
    """Nothing speaks against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What would be found, or what cannot be told."""

    reasons: tuple[str, ...]


def would_be(state: LogState, deletion: Iterable[Told], terms: Terms) -> MayDelete | Keep:
    """With all that can be decided about it decided: as of the end of every grace."""
    said = list(deletion)
    if not said:
        return Keep(reasons=("nothing was asked",))
    settle_ms = authority.terms_here(state, terms).settle_ms
    until_ms = max(each.observed_at_ms for each in said) + settle_ms + 1
    before = fold(state, [], terms, as_of_ms=max(state.clock_ms, min(each.observed_at_ms for each in said)))
    after = fold(before, said, terms, as_of_ms=until_ms)
    reasons = [
        f"{each.rule_id}: {each.note}"
        for key, each in after.findings.items()
        if key not in before.findings and each.rule_id not in _OF_WAITING
    ]
    reasons += [f"{each.sort}: {each.detail}" for each in after.gaps if each not in before.gaps]
    reasons += [f"{each.sort}: {each.detail}" for each in before.gaps if each.closed_ms is None]
    if any(not each.is_decided and each.was_led for each in after.removals):
        reasons.append("undecided: a cause may come yet")
    return Keep(reasons=tuple(sorted(set(reasons)))) if reasons else MayDelete()
