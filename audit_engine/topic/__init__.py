"""The topic `__seawall_audit`: what it must be like, and how the spool's events get there.

    fitness    the settings it is made with, and what is wrong with those found
    kafka      makes and checks it; the Publisher

Owns the topic's name and shape. Refuses to read what lies in it: ingest and `digests` do.

Invariant: events of one emitter that are about one log are in the topic in the order of their numbers, but
for repetitions, which carry the same number.
"""

from __future__ import annotations

from dataclasses import dataclass

TOPIC = "__seawall_audit"
PARTITIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTopic:
    """A topic of events that was found fit."""

    name: str
    topic_id: str
    partition_count: int
