"""A declared change as audit events, one for each key of each table: kind `policy_declared` (DESIGN §7).

Owns names and fields, like `rules.events`, whose kinds are each about one log; a declaration is about
patterns, and about logs that do not exist yet. The judge lays what brokers did beside these.

Invariant: the events follow from the records of `__seawall_policy` alone, ids included. Whoever makes them
again, makes the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from rules.policy.declared import EMPTY, Policy
from rules.policy.difference import changes
from rules.policy.keys import KEYS
from rules.policy.timeline import Applied
from rules.policy.values import Plain, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDeclared:
    """`before` and `after` are None where the table did not, or does not, have the key."""

    kind: ClassVar[str] = "policy_declared"

    event_id: str
    occurred_at_ms: int
    cluster_id: str
    principal: str
    change_id: str
    policy_hash: str
    policy_offset: int  # in __seawall_policy
    pattern: str
    key: str
    before: Plain | None
    after: Plain | None


def policy_declared(before: Applied | None, applied: Applied) -> Iterator[PolicyDeclared]:
    """Of a change and the one that it followed."""
    old: Policy = before.policy if before is not None else EMPTY
    change = applied.change
    for each in changes(old, applied.policy):
        told = "\n".join([change.event_id, each.pattern, each.key])
        yield PolicyDeclared(
            event_id=hashlib.sha256(told.encode()).hexdigest()[:32],
            occurred_at_ms=change.occurred_at_ms,
            cluster_id=change.cluster_id,
            principal=change.principal,
            change_id=change.change_id,
            policy_hash=applied.policy.content_hash,
            policy_offset=applied.offset,
            pattern=each.pattern,
            key=each.key,
            before=_plain(each.key, each.before),
            after=_plain(each.key, each.after),
        )


def _plain(key: str, value: Value | None) -> Plain | None:
    return None if value is None else KEYS[key].form.plain(value)
