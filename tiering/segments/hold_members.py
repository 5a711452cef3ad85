"""Holds as members of a log's record: those that stand, and the latest that were released.

Owns their JSON. What came after the first version (`finding_id`, `versions`, `released_holds`) is left out
where there is nothing to say, so that records without it keep their bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiering.segments.json_fields import Fields, merged
from tiering.segments.records import HeldVersions, Hold, Json, ReleasedHold

RELEASED = "released_holds"


def hold_members(hold: Hold) -> dict[str, Json]:
    known: dict[str, Json] = {
        "end_offset": hold.end_offset,
        "hold_id": hold.hold_id,
        "placed_at_ms": hold.placed_at_ms,
        "placed_by": hold.placed_by,
        "reason": hold.reason,
        "start_offset": hold.start_offset,
    }
    if hold.finding_id is not None:
        known["finding_id"] = hold.finding_id
    if hold.versions is not None:
        known["versions"] = _versions_members(hold.versions)
    return merged(known, hold.unrecognised)


def read_hold(fields: Fields) -> Hold:
    return Hold(
        hold_id=fields.text("hold_id"),
        start_offset=fields.integer("start_offset"),
        end_offset=fields.optional_integer("end_offset"),
        reason=fields.text("reason"),
        placed_by=fields.text("placed_by"),
        placed_at_ms=fields.integer("placed_at_ms"),
        finding_id=fields.optional_text("finding_id"),
        versions=_versions(fields.optional_inner("versions")),
        unrecognised=fields.left(),
    )


def released_members(released: Sequence[ReleasedHold]) -> dict[str, Json]:
    """The member of a log's record, or none."""
    if not released:
        return {}
    told = [
        merged(
            {
                "hold_id": each.hold_id,
                "reason": each.reason,
                "released_at_ms": each.released_at_ms,
                "released_by": each.released_by,
            },
            each.unrecognised,
        )
        for each in released
    ]
    return {RELEASED: told}


def read_released(fields: Fields) -> tuple[ReleasedHold, ...]:
    found = (Fields("a hold that was released", each) for each in fields.optional_items(RELEASED))
    return tuple(
        ReleasedHold(
            hold_id=each.text("hold_id"),
            released_by=each.text("released_by"),
            reason=each.text("reason"),
            released_at_ms=each.integer("released_at_ms"),
            unrecognised=each.left(),
        )
        for each in found
    )


def _versions_members(versions: HeldVersions) -> dict[str, Json]:
    known: dict[str, Json] = {
        "at_ms": versions.at_ms,
        "end_offset": versions.end_offset,
        "held": versions.held,
        "missing": versions.missing,
        "start_offset": versions.start_offset,
        "trouble": versions.trouble,
    }
    return merged(known, versions.unrecognised)


def _versions(fields: Fields | None) -> HeldVersions | None:
    if fields is None:
        return None
    return HeldVersions(
        start_offset=fields.integer("start_offset"),
        end_offset=fields.optional_integer("end_offset"),
        held=fields.integer("held"),
        missing=fields.integer("missing"),
        at_ms=fields.integer("at_ms"),
        trouble=fields.optional_text("trouble"),
        unrecognised=fields.left(),
    )
