"""What people say to the audit: an event on this disk, then at the topic.

    <state dir>/events.sqlite, emitter     until the topic has it, and a week longer

Owns this joining. Refuses to take an event for said that is on no disk: then the verb failed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from rules.events import Event
from seawall.settings import Settings
from seawall.tier.scrub import evidence, now_ms, state_folder

SORT = "operator"


def say(settings: Settings, cluster_id: str, events: Sequence[Event], state_dir: Path | None) -> int:
    """How many events Kafka does not have yet; the next verb of this folder sends them. Raises SpoolError,
    AuditTopicError, ClusterError."""
    folder = state_folder(state_dir, cluster_id, os.environ, SORT)
    with evidence(settings, folder, cluster_id, SORT) as kept:
        kept.emit_many(events)
        left = kept.close(lambda spool: spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=now_ms()))
        return left + kept.lost
