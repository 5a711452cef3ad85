"""What the looks at the tier's objects say, taken into the state: scrubs of one object, listings of a log's.

Owns what is known against each object. Invariant: what was found against one object is made good by a look
at the same object alone, and what was read by another that reads it.
"""

from __future__ import annotations

import re

from rules.events import Inventory, Scrubbed, ScrubDepth, ScrubOutcome
from rules.machine import coverage, scrubs
from rules.machine.findings import happened
from rules.machine.spans import span
from rules.machine.state import Copy, LogState
from rules.machine.terms import Terms

GONE = frozenset({"missing", "deleted"})  # what a scrub says of an object that is not there
_KEY = re.compile(r"/\d{20}-([^/]+)\.(?:log|aux|json)$")


def scrubbed(state: LogState, event: Scrubbed, terms: Terms) -> None:
    copy = state.tier.get(event.segment_id)
    if copy is None or copy.state != coverage.FINISHED:
        return
    scrubs.looked_at(copy, event)
    at_ms, key = event.occurred_at_ms, event.object_key
    if event.scrub_outcome is ScrubOutcome.VERIFIED:
        copy.missing.pop(key, None)
        if event.scrub_depth is ScrubDepth.DEEP or copy.corrupt.get(key) == ScrubDepth.LISTED.value:
            copy.corrupt.pop(key, None)  # what was read is not made good by what the store states
    elif event.scrub_outcome is ScrubOutcome.FAILED and event.problem in GONE:
        _missing(copy, key, at_ms)
    elif event.scrub_outcome is ScrubOutcome.FAILED:
        deepest = {event.scrub_depth.value, copy.corrupt.get(key)}
        copy.corrupt[key] = (ScrubDepth.DEEP if ScrubDepth.DEEP.value in deepest else event.scrub_depth).value
        if copy.is_restored:
            happened(
                state,
                "RST-01",
                subject="log",
                anchor=str(copy.base),
                severity="C",
                ranges=span(copy.base, copy.end),
                interval=(at_ms, at_ms),
                note=f"what was restored is not what it should be: {event.problem}",
            )


def inventory(state: LogState, event: Inventory, terms: Terms) -> None:
    at_ms = event.occurred_at_ms
    gone: dict[str, list[str]] = {}
    for key in (*event.missing_keys, *event.deleted_keys):
        gone.setdefault(_segment_of(key), []).append(key)
    for copy in state.tier.values():
        is_counted = copy.state == coverage.FINISHED and min(copy.steps)[0] <= event.metadata_offset
        if not is_counted:
            continue
        keys = gone.get(copy.segment_id, [])
        for key in keys:
            _missing(copy, key, at_ms)
            _deleted_by_hand(state, copy, event, key)
        if not event.differences_left_out:
            copy.missing = {key: each for key, each in copy.missing.items() if key in keys}
    unknown = {key for key in event.unknown_keys if _segment_of(key) not in state.tier}
    kept = {key: (since, at_ms) for key, (since, _) in state.unknown_keys.items() if key in unknown}
    state.unknown_keys = {**dict.fromkeys(sorted(unknown), (at_ms, at_ms)), **kept}


def _deleted_by_hand(state: LogState, copy: Copy, event: Inventory, key: str) -> None:
    """A delete marker lies there for certain; an object without any version is looked for twice."""
    first, _ = copy.missing[key]
    is_certain = key in event.deleted_keys or first < event.occurred_at_ms
    if is_certain:
        happened(
            state,
            "OPS-03",
            subject="log",
            anchor=copy.segment_id,
            severity="C",
            ranges=span(copy.base, copy.end),
            interval=(first, event.occurred_at_ms),
            note=f"{key} was deleted, and no event says by whom",
        )


def _missing(copy: Copy, key: str, at_ms: int) -> None:
    since_ms, _ = copy.missing.get(key, (at_ms, at_ms))
    copy.missing[key] = since_ms, at_ms


def _segment_of(key: str) -> str:
    found = _KEY.search(key)
    return found[1] if found else key
