"""What was allowed and what was in force, at some instant of an interval.

    authorised   what people decided: the policy's events; where none declares retention, first sight's value
    effective    what brokers do: the topic's own value, else each hosting broker's default
    permitted    what may be destroyed on request: standing permissions and authorisations

A declaration authorises what was done up to its grace before or after it, so that the looser of two policies
counts for a while on both sides of a change. Beside a stock broker that we tier, the broker's own deletions
are held against *local* retention and the log as a whole against *total* (KAFKA_FACTS 17).

Owns these questions. Invariant: an answer that evidence does not give is None, never a default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from rules.machine.spans import NONE, Spans, join, span
from rules.machine.state import Declared, LogState, Permit, Setting
from rules.machine.terms import Terms, terms_in
from rules.policy.declared import Table, resolve
from rules.policy.keys import KEYS
from rules.policy.patterns import Pattern
from rules.policy.quantities import Unlimited
from rules.policy.topic import TopicPolicy
from rules.policy.values import Permission

UNLIMITED = -1  # as Kafka writes it
TOTAL = "total"
LOCAL = "local"
_BROKER_KEYS = {"retention.bytes": "log.retention.bytes", "local.retention.ms": "log.local.retention.ms"}
_TIME_DEFAULTS = (
    ("log.retention.ms", 1),
    ("log.retention.minutes", 60_000),
    ("log.retention.hours", 3_600_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeps:
    """How long and how much; UNLIMITED is no limit."""

    ms: int
    bytes: int

    def expires(self, max_timestamp_ms: int, at_ms: int) -> bool:
        return self.ms != UNLIMITED and at_ms - max_timestamp_ms >= self.ms

    def exceeds(self, bytes_at_most: int, size_bytes: int) -> bool:
        return self.bytes != UNLIMITED and bytes_at_most - size_bytes >= self.bytes


def deployment(state: LogState) -> str:
    """none, ours or kip405."""
    if state.is_kip405:
        return "kip405"
    return "ours" if state.is_tiered or policy_now(state).tiering else "none"


def policy_now(state: LogState) -> TopicPolicy:
    """It is asked for several times an event, and changes with a declaration only."""
    last = state.policy[-1].policy_offset if state.policy else -1
    key = (len(state.policy), last, state.policy_base_offset)
    if state.policy_memo is None or state.policy_memo[0] != key:
        state.policy_memo = (key, _policy(state.topic, _frozen(state, state.policy)))
    policy: TopicPolicy = state.policy_memo[1]
    return policy


def terms_here(state: LogState, terms: Terms) -> Terms:
    """Of this log: its brokers' intervals, as they were told, and what its policy says of deadlines."""
    return terms_in(terms, state.intervals, hosts(state), policy_now(state).copy_deadline_ms)


def policies(state: LogState, from_ms: int, to_ms: int) -> list[tuple[int, TopicPolicy]]:
    """Those in force at some instant of `[from_ms, to_ms]`, grace included, each with its policy offset."""
    changes = sorted({(each.policy_offset, each.at_ms) for each in state.policy})
    found: list[tuple[int, TopicPolicy]] = []
    for at, (offset, at_ms) in enumerate([(-1, -(2**62)), *changes]):
        policy = _policy(state.topic, _frozen(state, _until(state.policy, offset)))
        until = changes[at][1] if at < len(changes) else 2**62
        grace = policy.declare_grace_ms
        if at_ms - grace <= to_ms and from_ms <= until + grace:
            found.append((offset, policy))
    return found


def authorised(state: LogState, sort: str, from_ms: int, to_ms: int) -> list[tuple[int, Keeps]]:
    """What could be kept least, rightly, at some instant; empty where nothing says anything."""
    found = []
    for offset, policy in policies(state, from_ms, to_ms):
        keeps = _kept_under(state, policy, sort)
        if keeps is not None:
            found.append((offset, keeps))
    return found


def authorised_now(state: LogState, sort: str) -> Keeps | None:
    return _kept_under(state, policy_now(state), sort)


def effective(state: LogState, key: str, from_ms: int, to_ms: int) -> list[int]:
    """The values of a topic's key in force at some instant, on any broker that holds a replica."""
    own = list(_in_force(state.config.get(f"topic|{key}", ()), from_ms, to_ms))
    found = [int(each.value) for each in own if each.value is not None]
    if any(not each.is_own for each in own) or not own:
        for broker_id in hosts(state):
            found += _defaults_of(state, broker_id, key, from_ms, to_ms)
    return found


def defaults_now(state: LogState, key: str) -> dict[int, int]:
    """Each hosting broker's own default, where the topic has no value of its own."""
    timeline = state.config.get(f"topic|{key}")
    if timeline and timeline[-1].is_own:
        return {}
    now = state.clock_ms
    found = {each: _defaults_of(state, each, key, now, now) for each in hosts(state)}
    return {broker_id: values[-1] for broker_id, values in found.items() if values}


def hosts(state: LogState) -> tuple[int, ...]:
    return state.assigned if state.assigned is not None else tuple(sorted(state.replicas))


def least(values: Iterable[int]) -> int | None:
    """The one that keeps least; UNLIMITED keeps most."""
    limited = list(values)
    return min(limited, key=lambda each: 2**63 if each == UNLIMITED else each, default=None)


def keeps_less(one: int, other: int) -> bool:
    return one != UNLIMITED and (other == UNLIMITED or one < other)


def permitted(state: LogState, from_ms: int, to_ms: int, end: int, terms: Terms) -> Spans:
    """What may have been deleted on request below `end` in an interval."""
    every = [policy for _, policy in policies(state, from_ms, to_ms)]
    if any(policy.record_deletion is Permission.FREE for policy in every):
        return span(0, end)
    found = NONE
    for permit in state.permits:
        if not _is_valid(permit, from_ms, to_ms, terms):
            continue
        reach = end if permit.end is None else permit.end
        if permit.sort == "trim" or (
            permit.sort == "delete_records" and any(_may_allow(each, permit) for each in every)
        ):
            found = join(found, span(permit.start or 0, reach))
    return found


def may_delete_topic(state: LogState, from_ms: int, to_ms: int, terms: Terms) -> bool:
    every = [policy for _, policy in policies(state, from_ms, to_ms)]
    if any(policy.topic_deletion is Permission.FREE for policy in every):
        return True
    return any(
        permit.sort == "delete_topic"
        and _is_valid(permit, from_ms, to_ms, terms)
        and any(
            policy.topic_deletion is Permission.AUTHORISED and policy.may_be_authorised_by(permit.principal)
            for policy in every
        )
        for permit in state.permits
    )


def _may_allow(policy: TopicPolicy, permit: Permit) -> bool:
    allowed = policy.record_deletion is Permission.AUTHORISED
    return allowed and policy.may_be_authorised_by(permit.principal)


def _is_valid(permit: Permit, from_ms: int, to_ms: int, terms: Terms) -> bool:
    tolerance = terms.clock_tolerance_ms
    return permit.from_ms - tolerance <= to_ms and from_ms <= permit.to_ms + tolerance


def _kept_under(state: LogState, policy: TopicPolicy, sort: str) -> Keeps | None:
    """Where nobody declared a total for what we tier, nothing of the log may go: only the disk's part may."""
    if policy.declares_retention:
        return _declared(policy, sort)
    if policy.tiering and sort == TOTAL:
        return Keeps(ms=UNLIMITED, bytes=UNLIMITED)
    return _adopted(state)


def _declared(policy: TopicPolicy, sort: str) -> Keeps | None:
    ms = getattr(policy, f"{sort}_retention_ms")
    size = getattr(policy, f"{sort}_retention_bytes")
    if ms is None or size is None:
        return None
    return Keeps(ms=_plain(ms), bytes=_plain(size))


def _plain(limit: object) -> int:
    if isinstance(limit, Unlimited):
        return UNLIMITED
    assert isinstance(limit, int)
    return limit


def _adopted(state: LogState) -> Keeps | None:
    """As it was at first sight (AUDIT_FACTS 18)."""
    ms, size = (_adopted_value(state, key) for key in ("retention.ms", "retention.bytes"))
    if ms is None and size is None:
        return None
    return Keeps(ms=UNLIMITED if ms is None else ms, bytes=UNLIMITED if size is None else size)


def _adopted_value(state: LogState, key: str) -> int | None:
    """The topic's own, else what its brokers went by when it was first seen."""
    own = state.adopted.get(key)
    if own is not None:
        return int(own)
    born_ms = state.clock_ms if state.born_ms is None else state.born_ms
    return least(
        each
        for broker_id in hosts(state)
        for each in _defaults_of(state, broker_id, key, born_ms, born_ms)[:1]
    )


def _in_force(timeline: Sequence[Setting], from_ms: int, to_ms: int) -> Iterator[Setting]:
    for at, setting in enumerate(timeline):
        until = timeline[at + 1].at_ms if at + 1 < len(timeline) else 2**62
        if setting.not_before_ms <= to_ms and from_ms <= until:
            yield setting


def _defaults_of(state: LogState, broker_id: int, key: str, from_ms: int, to_ms: int) -> list[int]:
    if key != "retention.ms":
        timeline = state.config.get(f"broker:{broker_id}|{_broker_key(key)}", ())
        return [int(each.value) for each in _in_force(timeline, from_ms, to_ms) if each.value is not None]
    for name, unit_ms in _TIME_DEFAULTS:
        timeline = state.config.get(f"broker:{broker_id}|{name}", ())
        if not timeline:  # of nearly all, and asked after each event
            continue
        told = [each.value for each in _in_force(timeline, from_ms, to_ms) if each.value is not None]
        if told:
            return [int(each) * unit_ms if int(each) >= 0 else UNLIMITED for each in told]
    return []


def _until(declared: Iterable[Declared], offset: int) -> list[Declared]:
    return [each for each in declared if each.policy_offset <= offset]


def _frozen(state: LogState, declared: Iterable[Declared]) -> tuple[tuple[str, str, str], ...]:
    tables = {pattern: dict(keys) for pattern, keys in state.policy_base.items()}
    for each in declared:
        if each.after is None:
            tables.get(each.pattern, {}).pop(each.key, None)
        else:
            tables.setdefault(each.pattern, {})[each.key] = each.after
    return tuple(
        (pattern, key, after)
        for pattern, keys in sorted(tables.items())
        for key, after in sorted(keys.items())
    )


@lru_cache(maxsize=4_096)
def _policy(topic: str, entries: tuple[tuple[str, str, str], ...]) -> TopicPolicy:
    by_pattern: dict[str, list[tuple[str, Any]]] = {}
    for pattern, key, after in entries:
        if key in KEYS:  # a newer policy's key says nothing here
            by_pattern.setdefault(pattern, []).append((key, KEYS[key].form.read(json.loads(after))))
    tables = [Table(pattern=Pattern(pattern), values=tuple(values)) for pattern, values in by_pattern.items()]
    resolved = resolve(topic, tables)
    return TopicPolicy(topic=topic, origins=resolved.origins, **resolved.values)


def matches(pattern: str, topic: str) -> bool:
    return Pattern(pattern).matches(topic)


def authorised_before(state: LogState, sort: str, offset: int) -> Keeps | None:
    """Under the policy as of an offset of its topic; -1: before the first that is kept."""
    policy = _policy(state.topic, _frozen(state, _until(state.policy, offset)))
    return _kept_under(state, policy, sort)


def effective_now(state: LogState, key: str) -> int | None:
    """What the hosting broker that keeps least does, as far as is known."""
    timeline = state.config.get(f"topic|{key}")
    last = timeline[-1] if timeline else None
    if last is not None and last.is_own:
        return None if last.value is None else int(last.value)
    defaults = defaults_now(state, key)
    if defaults:
        return least(defaults.values())
    return None if last is None or last.value is None else int(last.value)


def declared_within(state: LogState, sort: str, from_ms: int, to_ms: int) -> list[Keeps]:
    """Under each policy that was in force at some instant, without any grace: the interval is the grace."""
    found = []
    changes = sorted({(each.policy_offset, each.at_ms) for each in state.policy})
    line = [(-1, -(2**62)), *changes, (0, 2**62)]
    for (offset, since_ms), (_, until_ms) in pairwise(line):
        if since_ms <= to_ms and until_ms > from_ms:
            policy = _policy(state.topic, _frozen(state, _until(state.policy, offset)))
            keeps = _kept_under(state, policy, sort)
            found += [] if keeps is None else [keeps]
    return found


def changes_since(state: LogState, key: str, at_ms: int) -> int:
    """How often a key's value changed from then on, that change included. Who tells it does not matter."""
    names = [f"topic|{key}", *(f"broker:{each}|{_broker_key(key)}" for each in hosts(state))]
    told = (each for name in names for each in state.config.get(name, ()))
    return max(1, sum(each.at_ms >= at_ms for each in told))


def is_as_first_told(state: LogState, key: str) -> bool:
    """No value that this one depends on was seen to change."""
    defaults = [name for name, _ in _TIME_DEFAULTS] if key == "retention.ms" else [_broker_key(key)]
    names = [f"topic|{key}", *(f"broker:{broker}|{name}" for broker in hosts(state) for name in defaults)]
    return all(len(state.config.get(name, ())) <= 1 for name in names)


def _broker_key(key: str) -> str:
    return _BROKER_KEYS.get(key, f"log.{key}")
