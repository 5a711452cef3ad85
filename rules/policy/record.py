"""A declared change as bytes: the value of a record of the topic `__seawall_policy`.

UTF-8 JSON, one object; names that a reader does not know are ignored.

    name            type             what it is
    version         int              1; a reader that does not know it takes nothing else for known
    event_id        text             stable across retries, of this change alone
    cluster_id      text             the cluster that it was declared for
    occurred_at_ms  int              when, by the clock of whoever applied it
    principal       text             who declared it, by their own word
    change_id       text             the ticket, merge request or the like that carries the reasons
    base            object or null   what it was compared with: `offset` and `policy_hash` of the change that
                                     was in force; null for the first
    policy_hash     text             the content hash of `policy`
    policy          object           the whole policy, as `Policy.tree()` gives it: never a difference
    held_topic      object           only of a change that a hold made (docs/HOLDS.md): `HeldTopic`'s fields

Owns this table. Refuses a value of another version (`RecordTooNew`), and one that contradicts itself
(`RecordMalformed`). Which changes count is `timeline`'s.

Invariant: `decode(encode(change)) == change`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from rules.policy.declared import Policy
from rules.policy.errors import PolicyRefused
from rules.policy.reading import read_policy

VERSION = 1

T = TypeVar("T")


class Base(NamedTuple):
    """The change that another one was compared with, by its place and by what it declared."""

    offset: int
    policy_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBy:
    """A hold, as whoever placed it says it; of one partition, or of all (None)."""

    hold_id: str
    partition: int | None
    reason: str
    placed_by: str
    placed_at_ms: int
    finding_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTopic:
    """Kafka's own retention of a topic is unlimited while any of `holds` stands; of none, it is put back.

    What was there before the first of them, so that it can be: `kafka_before` are the topic's own settings
    (null: it had none), `declared_before` the plain values of the policy's table for it (null: none).
    """

    topic: str
    topic_id: str
    holds: tuple[HeldBy, ...]
    kafka_before: Mapping[str, str | None]
    declared_before: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredChange:
    event_id: str
    cluster_id: str
    occurred_at_ms: int
    principal: str
    change_id: str
    base: Base | None
    policy: Policy
    held_topic: HeldTopic | None = None


class RecordMalformed(Exception):
    """Nothing that any version of Seawall has written."""


class RecordTooNew(Exception):
    """Written by a newer Seawall: it may well count, and what it says is not known here."""


def declared_change(
    *,
    policy: Policy,
    base: Base | None,
    cluster_id: str,
    principal: str,
    change_id: str,
    occurred_at_ms: int,
    held_topic: HeldTopic | None = None,
) -> DeclaredChange:
    """The change with its id: the same for the same act, however often it is tried."""
    told = [cluster_id, principal, change_id, str(occurred_at_ms), policy.content_hash, str(base)]
    return DeclaredChange(
        event_id=hashlib.sha256("\n".join(told).encode()).hexdigest()[:32],
        cluster_id=cluster_id,
        occurred_at_ms=occurred_at_ms,
        principal=principal,
        change_id=change_id,
        base=base,
        policy=policy,
        held_topic=held_topic,
    )


def encode(change: DeclaredChange) -> bytes:
    tree = {
        "version": VERSION,
        "event_id": change.event_id,
        "cluster_id": change.cluster_id,
        "occurred_at_ms": change.occurred_at_ms,
        "principal": change.principal,
        "change_id": change.change_id,
        "base": change.base._asdict() if change.base is not None else None,
        "policy_hash": change.policy.content_hash,
        "policy": change.policy.tree(),
        **({} if change.held_topic is None else {"held_topic": asdict(change.held_topic)}),
    }
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()


def decode(value: bytes | None) -> DeclaredChange:
    tree = _object(value)
    version = _field(tree, "version", int)
    if version > VERSION:
        raise RecordTooNew(f"version {version}; this Seawall reads {VERSION}")
    if version != VERSION:
        raise RecordMalformed(f"version {version}")
    base = tree.get("base")
    change = DeclaredChange(
        event_id=_field(tree, "event_id", str),
        cluster_id=_field(tree, "cluster_id", str),
        occurred_at_ms=_field(tree, "occurred_at_ms", int),
        principal=_field(tree, "principal", str),
        change_id=_field(tree, "change_id", str),
        base=_base(base) if base is not None else None,
        policy=_policy(_field(tree, "policy", dict)),
        held_topic=_held_topic(_field(tree, "held_topic", dict)) if "held_topic" in tree else None,
    )
    if change.policy.content_hash != _field(tree, "policy_hash", str):
        raise RecordMalformed("policy_hash is not that of the policy")
    return change


def _object(value: bytes | None) -> Mapping[str, Any]:
    if value is None:
        raise RecordMalformed("no value")
    try:
        tree = json.loads(value)
    except (ValueError, RecursionError) as failure:  # UnicodeDecodeError is a ValueError
        raise RecordMalformed(f"not JSON: {failure}") from None
    if not isinstance(tree, dict):
        raise RecordMalformed("not an object")
    return tree


def _field(tree: Mapping[str, Any], name: str, kind: type[T]) -> T:
    found = tree.get(name)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise RecordMalformed(f"{name} is missing, or not of its type")
    return found


def _base(tree: object) -> Base:
    if not isinstance(tree, dict):
        raise RecordMalformed("base is not an object")
    return Base(_field(tree, "offset", int), _field(tree, "policy_hash", str))


def _held_topic(tree: Mapping[str, Any]) -> HeldTopic:
    declared = tree.get("declared_before")
    if declared is not None and not isinstance(declared, dict):
        raise RecordMalformed("declared_before is not an object")
    return HeldTopic(
        topic=_field(tree, "topic", str),
        topic_id=_field(tree, "topic_id", str),
        holds=tuple(_held_by(_object_of(each)) for each in _field(tree, "holds", list)),
        kafka_before=_field(tree, "kafka_before", dict),
        declared_before=declared,
    )


def _held_by(tree: Mapping[str, Any]) -> HeldBy:
    partition, finding_id = tree.get("partition"), tree.get("finding_id")
    return HeldBy(
        hold_id=_field(tree, "hold_id", str),
        partition=None if partition is None else _field(tree, "partition", int),
        reason=_field(tree, "reason", str),
        placed_by=_field(tree, "placed_by", str),
        placed_at_ms=_field(tree, "placed_at_ms", int),
        finding_id=None if finding_id is None else _field(tree, "finding_id", str),
    )


def _object_of(tree: object) -> Mapping[str, Any]:
    if not isinstance(tree, dict):
        raise RecordMalformed("a hold is not an object")
    return tree


def _policy(tree: Mapping[str, Any]) -> Policy:
    try:
        return read_policy(tree)
    except PolicyRefused as refused:
        # A key of tomorrow. Whoever wrote it had read it as a policy, so it is not for us to call it void.
        raise RecordTooNew(f"its policy cannot be read here: {refused.problems[0]}") from refused
