"""The holds of a run, placed when it is committed: a step beside the job, as alerts are (decision 0025).

Owns what a run does with them. Nothing of it keeps a run from its verdict: what could not be placed is said,
and is placed by the next run or by `seawall hold findings`, as long as the finding is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seawall.holds.from_findings import CRITICAL, Wanted, wanted
from seawall.holds.opened import OpenedHolds, opened
from seawall.holds.service import Bound
from seawall.settings import Settings
from tiering.errors import StatedError


def place_for(settings: Settings, findings: Sequence[Mapping[str, Any]], say: Callable[[str], None]) -> bool:
    """Place what the findings ask for; whether all that could be held is."""
    critical = [each for each in findings if each["severity"] == CRITICAL and each["status"] == "open"]
    if not critical:
        return True
    if settings.kafka.bootstrap is None:
        say(f"{len(critical)} critical findings place no hold: kafka.bootstrap is not set")
        return True
    try:
        with opened(settings, say) as found:
            done = [_placed(found, each, say) for each in wanted(findings, found.cluster.cluster_id)]
            return all(done)
    except (StatedError, OSError) as failed:
        say(f"no hold was placed: {failed}")
        return False


def _placed(found: OpenedHolds, each: Wanted, say: Callable[[str], None]) -> bool:
    is_whole = True
    for place in found.places(each):
        try:
            if found.holds.was_released(place, each.asked.hold_id):
                continue
            bound = found.holds.place(place, each.asked)
        except StatedError as failed:
            say(f"{place}: no hold was placed: {failed}")
            is_whole = False
            continue
        if bound.is_new or not bound.is_in_force:
            say(_line(bound))
        is_whole = is_whole and (bound.versions is None or bound.versions.trouble is None)
    return is_whole


def _line(bound: Bound) -> str:
    if not bound.is_in_force:
        why = "; ".join(filter(None, (bound.trouble, bound.kafka.why)))
        return f"{bound.place}: nothing can be held: {why}"
    held = ["agents"] if bound.agents else []
    if bound.versions is not None and bound.versions.held:
        held.append(f"{bound.versions.held} object versions")
    if bound.kafka.is_held:
        held.append("Kafka's retention")
    left = f"; NOT Kafka's own retention: {bound.kafka.why}" if not bound.kafka.is_held else ""
    trouble = bound.versions.trouble if bound.versions is not None else None
    left += f"; NOT all object versions: {trouble}" if trouble else ""
    return f"{bound.place} is held by {bound.hold.hold_id} ({bound.hold.reason}): {', '.join(held)}{left}"
