"""What a plan says, for people: a few lines, the same for the same plan.

Owns the words. Refuses to say more than PIECES_SHOWN pieces or lost ranges one by one: a plan of a thousand
segments is read by its sums.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from backup.plan.values import Origin, Plan
from rules.moments import write_moment

PIECES_SHOWN = 20
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def lines_of(plan: Plan) -> list[str]:
    return list(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    body = plan.body
    log = f"{body.topic}-{body.log.partition}"
    yield f"restore [{body.range.start}, {body.range.end}) of {log} to target {body.target.value}"
    yield f"cluster {body.log.cluster_id}, topic id {body.log.topic_id}"
    asked = body.asked
    yield f"asked by {asked.by.value}: {asked.text}: [{asked.range.start}, {asked.range.end})"
    yield f"made {write_moment(body.made_at_ms)}; joins the live log at {body.joins_at}"
    yield (
        f"{body.recoverable_offsets} offsets can be had back, {body.lost_offsets} are lost;"
        f" {len(body.pieces)} segments, {size(body.size_bytes)}"
    )
    cost = f"{body.requests} requests, about {body.estimated_ms / 1000:.0f} s"
    yield f"{cost}; kept for {days(body.keep_for_ms)}"
    for each in body.lost[:PIECES_SHOWN]:
        yield f"lost  [{each.start}, {each.end})  {each.because.value}: {each.detail}"
    if len(body.lost) > PIECES_SHOWN:
        yield f"lost  and {len(body.lost) - PIECES_SHOWN} more ranges"
    if body.gaps:
        what = (
            "are put on record and passed" if body.passes_gaps else "stand in the way of what is before them"
        )
        yield f"{len(body.gaps)} gaps {what}"
    for piece in body.pieces[:PIECES_SHOWN]:
        where = f"broker {piece.broker_id}" if piece.origin is Origin.REPLICA else piece.record.key_stem
        what = f"{piece.origin.value}  {size(piece.size_bytes)}  {where}"
        yield f"piece [{piece.start}, {piece.end})  {what}, version {piece.log_object.version_id}"
    if len(body.pieces) > PIECES_SHOWN:
        yield f"piece and {len(body.pieces) - PIECES_SHOWN} more"
    for name, value in sorted(body.details.items()):
        yield f"{name}: {value if isinstance(value, str) else json.dumps(value, sort_keys=True)}"
    prints = body.fingerprints
    yield f"made upon bucket {prints.bucket[:16]}, log {prints.log[:16]}, policy {prints.policy[:16]}"


def size(size_bytes: int) -> str:
    """Bytes for people."""
    shown, unit = float(size_bytes), 0
    while shown >= 1024 and unit < len(_UNITS) - 1:
        shown, unit = shown / 1024, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{shown:.1f} {_UNITS[unit]}"


def days(ms: int) -> str:
    """A span of time for people."""
    for unit, in_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= in_ms:
            return f"{ms / in_ms:g} {unit}"
    return f"{ms / 1000:g} s"
