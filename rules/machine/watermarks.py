"""Watermarks: what was published of each epoch, and what is held against it.

Owns EPO-01, HWM-01 and SEG-10.
"""

from __future__ import annotations

from rules.events import HighWatermark, ReplicaEvent
from rules.machine import lives
from rules.machine.findings import happened
from rules.machine.spans import span
from rules.machine.state import EPOCHS_KEPT, LogState, Replica
from rules.machine.terms import Terms


def taken(
    state: LogState, replica: Replica, event: ReplicaEvent, watermark: int | None, *, is_filled: bool
) -> None:
    if watermark is None:
        return
    replica.watermark = watermark
    published(state, event, watermark, is_filled=is_filled)


def published(state: LogState, event: ReplicaEvent, watermark: int | None, *, is_filled: bool) -> None:
    if watermark is None or not is_filled:
        return
    epoch = event.leader_epoch if event.leader_epoch >= 0 else state.leader_epoch
    if watermark > state.watermarks.get(epoch, -1):
        state.watermarks[epoch] = watermark
        bound(state.watermarks)
    state.watermark = max(state.watermark or 0, watermark)
    check_epochs(state, (lives.since(event), event.occurred_at_ms))
    state.above = [each for each in state.above if each.end > watermark]


def check_epochs(state: LogState, interval: tuple[int, int]) -> None:
    """An epoch begins at or above what was committed before it, whichever of the two was heard first."""
    for epoch, start in state.epoch_starts.items():
        before = max((mark for old, mark in state.watermarks.items() if old < epoch), default=0)
        if start < before and f"EPO-01|log|{epoch}" not in state.findings:
            happened(
                state,
                "EPO-01",
                subject="log",
                anchor=str(epoch),
                severity="C",
                ranges=span(start, before),
                interval=interval,
                note=f"epoch {epoch} begins at {start}, below {before}, committed in an earlier one",
            )


def bound(by_epoch: dict[int, int]) -> None:
    while len(by_epoch) > EPOCHS_KEPT:
        del by_epoch[min(by_epoch)]


def low(state: LogState, replica: Replica, event: HighWatermark, terms: Terms) -> None:
    """The leader's, below what was published: twice, a grace apart, since a new leader's trails (KIP-207)."""
    if replica.broker_id != state.leader_id or state.watermark is None:
        return
    if event.high_watermark >= state.watermark:
        replica.low_since_ms = None
        return
    if replica.low_since_ms is None:
        replica.low_since_ms = event.occurred_at_ms
    elif event.occurred_at_ms - replica.low_since_ms >= terms.watermark_ms:
        unclean = ", elected uncleanly" if state.leader_epoch in state.unclean_epochs else ""
        happened(
            state,
            "HWM-01",
            subject="log",
            anchor=str(event.high_watermark),
            severity="C",
            ranges=span(event.high_watermark, state.watermark),
            interval=(replica.low_since_ms, event.occurred_at_ms),
            note=f"broker {replica.broker_id} leads with {event.high_watermark}{unclean}; "
            f"{state.watermark} was published",
        )


def uncommitted(state: LogState, replica: Replica, event: HighWatermark, terms: Terms) -> None:
    """Copies above every watermark, and still so when the leader wrote down another (KAFKA_FACTS 18)."""
    if replica.broker_id != state.leader_id:
        return
    # A reading that reaches a copy says nothing against it, even where it is not believed: behind a start
    # above all that was published, which a busy topic's own retention brings about within minutes, too.
    proved = [
        each
        for each in state.above
        if event.high_watermark < each.end and event.occurred_at_ms - each.at_ms >= terms.watermark_ms
    ]
    for copy in proved:
        happened(
            state,
            "SEG-10",
            subject="log",
            anchor=copy.segment_id,
            severity="C",
            ranges=span(max(copy.base, state.watermark or 0), copy.end),
            interval=(copy.at_ms, event.occurred_at_ms),
            note=f"uploaded up to {copy.end}; the high watermark is {state.watermark} still",
        )
    state.above = [each for each in state.above if each not in proved]
