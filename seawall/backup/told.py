"""The events of restores that are not to the tier: who put what back where, for the next audit to see.

Owns this joining. Refuses to fail a restore that is done: events that wait for Kafka are in the spool.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from backup.plan import Plan
from backup.tier.check import own_id
from rules.events import Restored, RestoreTarget
from seawall.backup.opened import now_ms
from seawall.cli.backup.options import BACKUP
from seawall.settings import Settings
from seawall.tier.scrub import evidence, state_folder


def tell_restored(
    settings: Settings,
    planned: Plan,
    target: RestoreTarget,
    *,
    brokers: Iterable[int | None],
    principal: str,
    state_dir: Path | None,
) -> int:
    """Say that the plan's range was put back; how many events Kafka does not have yet."""
    body = planned.body
    folder = state_folder(state_dir, body.log.cluster_id, os.environ, BACKUP)
    events = [
        Restored(
            event_id=own_id(planned, f"restored-{target.value}-{broker_id}"),
            occurred_at_ms=now_ms(),
            log=body.log,
            topic=body.topic,
            leader_epoch=-1,
            restore_id=own_id(planned, "restore"),
            principal=principal,
            restore_target=target,
            start_offset=body.range.start,
            end_offset=body.range.end,
            broker_id=broker_id,
            generation=None,
            keep_until_ms=None,
            objects=(),
            plan_hash=planned.hash,
            planned_start=body.range.start,
            planned_end=body.range.end,
        )
        for broker_id in brokers
    ]
    with evidence(settings, folder, body.log.cluster_id, BACKUP) as kept:
        kept.emit_many(events)
        return kept.close(lambda spool: spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=now_ms()))
