"""What is waited for in the evidence: each a question to one event of `__seawall_audit`.

Owns these questions. The events are the agent's own, and those of the commands that the story runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from audit_engine.wire import Envelope
from rules.events import ConfigEffective, Event, Heartbeat, TierState

Awaited: TypeAlias = Callable[[Envelope], bool]


def about(
    kind: type[Event], topic: str, *, piece: tuple[int, int] | None = None, broker_id: int | None = None
) -> Awaited:
    """An event of this kind about this topic; of this segment, said by this broker's agent."""

    def is_it(said: Envelope) -> bool:
        event = said.event
        if not isinstance(event, kind) or getattr(event, "topic", None) != topic:
            return False
        lies = (getattr(event, "base_offset", None), getattr(event, "end_offset", None))
        return piece in (None, lies) and broker_id in (None, said.emitter.broker_id)

    return is_it


def setting(topic: str, key: str, value: str, *, since_ms: int) -> Awaited:
    """This value in force, and seen after a moment."""

    def is_it(said: Envelope) -> bool:
        event = said.event
        if not isinstance(event, ConfigEffective) or said.observed_at_ms <= since_ms:
            return False
        return (event.topic, event.key, event.new_value) == (topic, key, value)

    return is_it


def beat(broker_id: int, *, after_ms: int) -> Awaited:
    """An agent was heard after a moment: all that it saw until then has been told."""

    def is_it(said: Envelope) -> bool:
        is_after = isinstance(said.event, Heartbeat) and said.event.occurred_at_ms > after_ms
        return is_after and said.emitter.broker_id == broker_id

    return is_it


def agree(said: Iterable[Envelope], topic: str, brokers: set[int], *, since_ms: int) -> bool:
    """Whether these agents told the digest of a new record of the topic's log, and the same one."""
    digests: dict[int, dict[int, str]] = {}
    for each in said:
        event = each.event
        if isinstance(event, TierState) and event.topic == topic and each.observed_at_ms > since_ms:
            digests.setdefault(event.metadata_offset, {})[each.emitter.broker_id] = event.digest
    last = digests[max(digests)] if digests else {}
    return set(last) == brokers and len(set(last.values())) == 1
