"""The prefix put back into the tier: planned as `seawall backup plan --finding`, done as `backup apply`.

    prospect     a plan that fits the world now; that nothing is left to do; or why there is no plan
    carry_out    that plan, with its events and its signed report:
                 <state dir>/restore-<plan>.json     `seawall backup report` reads it

Owns the joining. Refuses the other targets: brokers that stop together, and topics that are written anew, are
for a person with `backup restore-logdir` and `restore-topic`.

Invariant: `prospect` changes nothing; what `carry_out` does is the plan that it is given.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from audit_engine.spool import Spool
from backup.catalogue.choose import choose
from backup.catalogue.copies import LogCatalogue
from backup.errors import BackupError, NothingToRestore
from backup.plan import AskedBy, Plan
from backup.plan.make import Wish, make_plan
from backup.plan.render import size
from backup.plan.values import Origin
from backup.report import members_of, signed
from backup.tier.apply import apply
from backup.tier.check import check
from seawall.backup.finding import Found, found_of
from seawall.backup.keys import report_key
from seawall.backup.opened import Opened, now_ms, opened
from seawall.holds.service import NO_STORE
from seawall.remedies.steps import Prospect, command_of
from seawall.settings import Settings
from seawall.tier.scrub import NoEvents, evidence, state_folder
from tiering.errors import StatedError
from tiering.segments.errors import SegmentsTopicMissing

BACKUP = "backup"  # the sort of emitter and state folder, as `seawall backup apply` has it


def prospect(settings: Settings, finding: Mapping[str, Any]) -> Prospect | None:
    """What can be put back for it now; None where a restore is no remedy."""
    if command_of(finding) is None:
        return None
    if settings.s3.bucket is None:
        return Prospect(why=NO_STORE)
    try:
        found = found_of(finding)
        with opened(settings) as world:
            return _prospect(world, found)
    except (BackupError, SegmentsTopicMissing) as refused:
        return Prospect(why=_first_line(refused))
    except StatedError as failed:
        return Prospect(unknown=f"what can be put back: {_first_line(failed)}")


def _prospect(world: Opened, found: Found) -> Prospect:
    catalogue = world.catalogue(found.log)
    wish = Wish(by=AskedBy.FINDING, text=found.text, range=found.range, details=found.details)
    policy = world.policy(catalogue.topic)
    try:
        made = make_plan(catalogue, wish, policy, now_ms=now_ms(), bucket=world.store.bucket)
    except NothingToRestore as nothing:
        is_there = _is_there(catalogue, found)
        return Prospect(is_there=is_there, why="" if is_there else _first_line(nothing))
    check(made, world.ports(NoEvents(), "nobody", None))
    return Prospect(plan=made)


def _is_there(catalogue: LogCatalogue, found: Found) -> bool:
    chosen = choose(catalogue, found.range)
    return (
        catalogue.start <= found.range.start
        and not chosen.lost
        and all(each.origin is Origin.TIER for each in chosen.pieces)
    )


def carry_out(settings: Settings, plan: Plan, who: str, say: Callable[[str], None]) -> None:
    """Raises what keeps it, as `seawall backup apply` does; the same plan goes on from there."""
    with opened(settings) as world:
        folder = state_folder(None, world.cluster_id, os.environ, BACKUP)
        key = report_key(None, folder)
        with evidence(settings, folder, world.cluster_id, BACKUP) as kept:
            done = apply(plan, world.ports(kept, who, None))
            waiting = kept.close(_beat) + kept.lost
    report = folder / f"restore-{plan.hash[:16]}.json"
    report.write_text(signed(members_of(done, who), key), encoding="ascii")
    log = f"{plan.body.topic}-{plan.body.log.partition}"
    ranges = " ".join(f"[{each.start}, {each.end})" for each in done.ranges)
    say(f"{log}: {ranges} can be read from the tier again")
    say(f"{done.objects_put_back} objects put back, {size(done.size_bytes)}; signed report: {report}")
    if waiting:
        say(f"Kafka does not have {waiting} events of it yet; the next verb of backup sends what waits")


def _beat(spool: Spool) -> None:
    spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=now_ms())


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
