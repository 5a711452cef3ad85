"""What came of a run as events: each object that was looked at, each log that was listed.

Owns how these values become events (rules.events). They say up to where the metadata was read after the look.
"""

from __future__ import annotations

from collections.abc import Sequence

from rules.events import Inventory, Scrubbed
from tiering.scrub.damage import Checked, Damage
from tiering.scrub.inventory import Difference, Stock
from tiering.scrub.ports import Ports


def scrubbed(checked: Checked, ports: Ports) -> Scrubbed:
    """One object."""
    record, ref = checked.record, checked.ref
    return Scrubbed(
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
        log=record.log,
        topic=record.topic,
        leader_epoch=record.leader_epoch,
        segment_id=record.segment_id,
        base_offset=record.base_offset,
        end_offset=record.end_offset,
        object_key=checked.key,
        version_id=ref.version_id if ref is not None else None,
        size_bytes=ref.size_bytes if ref is not None else 0,
        scrub_depth=checked.depth,
        scrub_outcome=checked.ended,
        problem=checked.problem,
        detail=checked.detail,
        metadata_offset=ports.table.last_offset(record.log),
    )


def inventory(stock: Stock, standing: Sequence[Difference], ports: Ports) -> Inventory:
    """One log; `standing` are those of its differences that newer metadata does not explain."""

    def keys(damage: Damage) -> tuple[str, ...]:
        return tuple(each.key for each in standing if each.problem.kind == damage.value)

    table = ports.table
    return Inventory(
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
        log=stock.log,
        topic=table.label(stock.log) or "",
        leader_epoch=table.leader_epoch(stock.log),
        object_count=stock.object_count,
        size_bytes=stock.size_bytes,
        listing_digest=stock.digest,
        missing_keys=keys(Damage.MISSING),
        deleted_keys=keys(Damage.DELETED),
        unknown_keys=keys(Damage.UNKNOWN),
        differences_left_out=stock.left_out,
        metadata_offset=table.last_offset(stock.log),
    )
