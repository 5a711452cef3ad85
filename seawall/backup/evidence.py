"""Events of `seawall backup` that need no run to themselves: said when what they tell of is done.

Owns the saying. Refuses to undo what stands because its event could not be kept: that is told.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from rules.events import Event
from seawall.backup.opened import now_ms
from seawall.cli.backup.options import BACKUP
from seawall.settings import Settings
from seawall.tier.scrub import evidence, state_folder
from tiering.errors import StatedError


def say(
    settings: Settings,
    cluster_id: str,
    events: Sequence[Event],
    state_dir: Path | None,
    tell: Callable[[str], None],
) -> None:
    """Put them into the spool of backups, and give Kafka some time to take them."""
    if not events:
        return
    try:
        folder = state_folder(state_dir, cluster_id, os.environ, BACKUP)
        with evidence(settings, folder, cluster_id, BACKUP) as kept:
            kept.emit_many(events)
            left = kept.close(lambda spool: spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=now_ms()))
        if left:
            tell(f"Kafka does not have {left} events yet; the next verb of backup sends them")
    except (StatedError, OSError) as failed:
        tell(f"it is done, and its event was not kept: {failed}")
