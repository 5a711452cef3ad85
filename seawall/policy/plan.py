"""What applying a file would change: in the policy, for which topics, and whether it may be done.

Owns the plan as a value, and its id. The id names the policy in force and the one to come, so that whoever
confirms a plan that somebody read confirms that one and no other. Refuses nothing itself: what stands in the
way of a plan is part of it, and is shown with it.

Invariant: a plan without changes is never applied, and one with an obstacle neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rules.policy import EMPTY, Policy
from rules.policy.difference import Affected, Change, affected, affected_kinds, changes
from rules.policy.errors import table_of
from rules.policy.timeline import Applied
from seawall.policy.cluster import SeenTopic
from seawall.policy.compare import Kind, unsuited
from seawall.policy.errors import NotAnAuthoriser, PolicyNotApplied, TopicsNotKnown, TrimRefused
from tiering.cluster.interface import Unknown

PLAN_ID_LETTERS = 12
NAMED_AT_MOST = 5  # topics or tables in one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`affected` are topics that exist; `kinds` stand for all that could."""

    plan_id: str
    base: Applied | None
    policy: Policy
    changes: tuple[Change, ...]
    affected: tuple[Affected, ...]
    kinds: tuple[Affected, ...]
    topic_count: int
    obstacles: tuple[PolicyNotApplied, ...]

    @property
    def is_empty(self) -> bool:
        return not self.changes


def plan(
    policy: Policy,
    base: Applied | None,
    seen: Mapping[str, SeenTopic | Unknown],
    *,
    cluster_id: str,
    principal: str,
) -> Plan:
    """What `policy` would change for the topics of a cluster where `base` is in force."""
    before = base.policy if base is not None else EMPTY
    kinds = tuple(affected_kinds(before, policy))
    return Plan(
        plan_id=_plan_id(cluster_id, base, policy),
        base=base,
        policy=policy,
        changes=tuple(changes(before, policy)),
        affected=tuple(affected(before, policy, seen)),
        kinds=kinds,
        topic_count=len(seen),
        obstacles=(*_unauthorised(kinds, principal), *_unsafe(policy, seen)),
    )


def _plan_id(cluster_id: str, base: Applied | None, policy: Policy) -> str:
    told = "\n".join([cluster_id, str(base and base.as_base), policy.content_hash])
    return hashlib.sha256(told.encode()).hexdigest()[:PLAN_ID_LETTERS]


def _unauthorised(kinds: tuple[Affected, ...], principal: str) -> Iterator[PolicyNotApplied]:
    """The policy in force says who may change it, for each kind of topics; the new one has no say yet."""
    closed = [kind for kind in kinds if not kind.before.may_be_authorised_by(principal)]
    if closed:
        tables = {pattern for kind in closed for pattern in kind.before.origins["authorisers"].patterns}
        names = {name for kind in closed for name in kind.before.authorisers}
        yield NotAnAuthoriser(
            principal=principal,
            tables=named(sorted(map(table_of, tables))),
            authorisers=named(sorted(names)) or "nobody",
        )


def _unsafe(policy: Policy, seen: Mapping[str, SeenTopic | Unknown]) -> Iterator[PolicyNotApplied]:
    refused: list[str] = []
    unknown: dict[str, str] = {}
    for topic, found in seen.items():
        declared = policy.effective(topic)
        if not declared.trim:
            continue
        if isinstance(found, Unknown):
            unknown[topic] = found.reason
        elif any(finding.kind is Kind.TRIM_REFUSED for finding in unsuited(declared, found.settings)):
            refused.append(topic)
    if refused:
        yield TrimRefused(topics=named(refused))
    if unknown:
        yield TopicsNotKnown(topics=named(list(unknown)), why=next(iter(unknown.values())))


def named(things: list[str]) -> str:
    """A few of them, and how many more there are."""
    more = f" and {len(things) - NAMED_AT_MOST} more" if len(things) > NAMED_AT_MOST else ""
    return ", ".join(things[:NAMED_AT_MOST]) + more
