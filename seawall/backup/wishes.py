"""What a wish means for the two targets that are not the tier.

    log directory   up to where the leader's own log begins, since an offline restore leaves no hole;
                    the plan names what must stop and what goes offline
    topic           without a range, all that can be had, live or not

Owns this fitting. Refuses what the cluster cannot tell.
"""

from __future__ import annotations

from dataclasses import replace

from backup.catalogue.choose import extent
from backup.catalogue.copies import LogCatalogue
from backup.errors import NothingToRestore
from backup.logdir.prospect import look
from backup.plan import Range
from backup.plan.make import Wish
from rules.events import RestoreTarget
from seawall.connections import open_cluster
from seawall.settings import Settings


def fitted(settings: Settings, catalogue: LogCatalogue, wish: Wish) -> Wish:
    """The wish as the plan is made from it."""
    if wish.target is RestoreTarget.TIER:
        return wish
    whole = extent(catalogue if wish.at_ms is None else catalogue.at(wish.at_ms))
    if whole is None:
        raise NothingToRestore(log=catalogue.log, why="no version of any copy is left")
    found = wish.range or Range(whole.start, whole.end)
    if wish.target is RestoreTarget.TOPIC:
        return replace(wish, range=found)
    cluster = open_cluster(settings, client_id="seawall-backup")
    prospect = look(cluster, catalogue.log, catalogue.topic)
    if found.start >= prospect.log_start:
        why = (
            f"the leader's own log begins at {prospect.log_start}, so that [{found.start}, …) is on its disk"
        )
        raise NothingToRestore(log=catalogue.log, why=why)
    return replace(
        wish,
        range=Range(found.start, prospect.log_start),
        details={**wish.details, **prospect.details()},
    )
