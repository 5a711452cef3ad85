"""A declared change as audit events, one for each key of each table: kind `policy_declared` (DESIGN §7).

Owns the making of them; their fields are in `rules.events`. A declaration is about patterns, and about logs
that do not exist yet. The judge lays what brokers did beside these.

Invariant: the events follow from the records of `__seawall_policy` alone, ids included. Whoever makes them
again, makes the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from rules.events import PolicyDeclared
from rules.policy.declared import EMPTY, Policy
from rules.policy.difference import changes
from rules.policy.keys import KEYS
from rules.policy.timeline import Applied
from rules.policy.values import Value


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
            before=_as_json(each.key, each.before),
            after=_as_json(each.key, each.after),
        )


def _as_json(key: str, value: Value | None) -> str | None:
    return None if value is None else json.dumps(KEYS[key].form.plain(value))
