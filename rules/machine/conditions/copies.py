"""SEG-03, SEG-04, SEG-06, SEG-07, SEG-08, SEG-11, and AUD-05 of scrubs: what the tier holds, and should not.

Owns these predicates.
"""

from __future__ import annotations

from collections.abc import Iterator

from rules.machine import coverage, scrubs
from rules.machine.conditions.condition import Condition
from rules.machine.spans import span
from rules.machine.state import Copy, LogState
from rules.machine.terms import Terms
from rules.machine.untrue import untrue
from rules.policy.quantities import write_time


def in_the_tier(state: LogState, terms: Terms) -> Iterator[Condition]:
    live = sorted(coverage.finished(state), key=lambda each: (each.base, each.end, each.segment_id))
    for copy in state.tier.values():
        yield from _malformed(copy)
        if copy.state == coverage.STARTED and not copy.is_failed:
            yield _of_copy(
                copy,
                "SEG-11",
                "W",
                since_ms=copy.started_ms + terms.copy_deadline_ms,
                note="a copy was started, and has neither ended nor been given up",
            )
    for copy in live:
        if any(read_ms - since_ms >= terms.object_grace_ms for since_ms, read_ms in copy.missing.values()):
            yield _of_copy(copy, "SEG-06", "C", note="two readings found no object of a finished copy")
        if copy.corrupt:
            yield _of_copy(copy, "SEG-08", "C", note="its object is not what was committed")
    yield from _overlaps(live, terms)
    for key, (since_ms, read_ms) in sorted(state.unknown_keys.items()):
        if read_ms - since_ms >= terms.object_grace_ms:
            yield Condition(
                rule_id="SEG-07",
                subject="log",
                anchor=key,
                severity="W",
                grace_ms=0,
                note="an object is there that the metadata does not know",
            )


def unread(state: LogState) -> Iterator[Condition]:
    """AUD-05, of scrubs: one for the log, for as long as any copy waits longer than the policy says."""
    waits = scrubs.due(state)
    if waits is not None:
        yield Condition(
            rule_id="AUD-05",
            subject="log",
            anchor="scrub",
            severity="W",
            grace_ms=0,
            ranges=span(waits.copy.base, waits.copy.end),
            since_ms=waits.since_ms,
            note=f"no copy is to be unread for {write_time(waits.interval_ms)}, and this one is",
        )


def _of_copy(copy: Copy, rule_id: str, severity: str, *, note: str, since_ms: int | None = None) -> Condition:
    return Condition(
        rule_id=rule_id,
        subject="log",
        anchor=copy.segment_id,
        severity=severity,
        grace_ms=0,
        ranges=span(copy.base, copy.end),
        since_ms=since_ms,
        note=note,
    )


def _overlaps(live: list[Copy], terms: Terms) -> Iterator[Condition]:
    for at, copy in enumerate(live):
        for other in live[at + 1 :]:
            if other.base >= copy.end:
                break
            if other.leader_epoch == copy.leader_epoch and copy.leader_epoch >= 0:
                yield _overlap(copy, other, terms)


def _overlap(copy: Copy, other: Copy, terms: Terms) -> Condition:
    return Condition(
        rule_id="SEG-03",
        subject="log",
        anchor=str(other.base),
        severity="W",
        grace_ms=terms.settle_ms,
        ranges=span(other.base, min(copy.end, other.end)),
        note=f"copies {copy.segment_id} and {other.segment_id} of epoch {copy.leader_epoch} both claim it",
    )


def _malformed(copy: Copy) -> Iterator[Condition]:
    wrong = untrue(copy)
    if wrong is not None and not copy.state.startswith("DELETE"):
        yield _of_copy(copy, "SEG-04", "E", note=f"its record cannot be true: {wrong}")
