"""The envelope: an event, who says it, and its place among all that this emitter says.

Owns the values. Refuses to hand out numbers: the spool does, since only what is on disk has one.

Invariant: within one (broker, component, incarnation), `emitter_seq` counts from 0 without a hole, `log_seq`
does so for each log (an event about none has none), and `observed_at_ms` never falls. A hole is lost
evidence; docs/decisions/0007 says why `occurred_at_ms` may fall, and why `event_id` is the act's and not this
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from rules.events import Event
from tiering.segments.records import Json

_NOTHING: Mapping[str, Json] = MappingProxyType({})


class Emitter(NamedTuple):
    """One run of one component beside one broker. A later run has a higher incarnation."""

    broker_id: int
    component: str
    incarnation: int


class Follows(NamedTuple):
    """The run before this one that said anything, and the number of the last that it said."""

    incarnation: int
    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An event of a kind, or with a value, that is not known here: kept as it came.

    `why` says what is not known. What is None is about no single log, or was not said.
    """

    kind: str
    event_id: str
    occurred_at_ms: int
    cluster_id: str
    topic_id: str | None
    topic: str | None
    partition: int | None
    leader_epoch: int | None
    body: Mapping[str, Json]
    why: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """`is_first`: of the first on disk. It tells what the incarnation `follows`; None: nothing is known.

    `replica` and `role` (leader, follower) say which replica an event is about, where it is about one.
    `unrecognised` are a newer writer's names, at the depth where they were found.
    """

    event: Event | Unread
    emitter: Emitter
    emitter_seq: int
    log_seq: int | None
    observed_at_ms: int
    is_first: bool = False
    follows: Follows | None = None
    replica: str | None = None
    role: str | None = None
    unrecognised: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)

    @property
    def kind(self) -> str:
        return self.event.kind
