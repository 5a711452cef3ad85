"""A watermark that rose over an empty log: out of nothing, or over records that came and went unseen.

A broker that loads a log whose start is said to lie above its end empties it and begins there: the offsets
between were never filled (KAFKA_FACTS 5). That happens as it starts, and at no other time; records that
expired between two looks leave the same picture at any. So HWM-03 wants the start of the broker beside the
rise, whichever of the two is heard first.

Owns both. Invariant: what comes and goes while a broker runs is START-02's to judge, never this rule's.
"""

from __future__ import annotations

from rules.events import BrokerStarted, HighWatermark
from rules.machine.findings import happened
from rules.machine.spans import span
from rules.machine.state import EmptyRise, LogState, Replica
from rules.machine.terms import Terms


def rose(
    state: LogState,
    replica: Replica,
    event: HighWatermark,
    before: int | None,
    before_bytes: int | None,
    terms: Terms,
) -> None:
    if before is None or before_bytes is None or event.size_bytes is None:
        return
    # No compression makes records of nothing; what retention took meanwhile was subtracted already.
    if event.high_watermark > before and event.size_bytes == 0 and event.log_start >= event.high_watermark:
        rise = EmptyRise(
            broker_id=replica.broker_id,
            before=before,
            watermark=event.high_watermark,
            not_before_ms=event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms,
            at_ms=event.occurred_at_ms,
        )
        if rise not in state.empty_rises:
            state.empty_rises.append(rise)
        _judge(state, terms)


def started(state: LogState, event: BrokerStarted, terms: Terms) -> None:
    since_ms = event.occurred_at_ms if event.not_before_ms is None else event.not_before_ms
    starts = state.broker_starts.setdefault(event.broker_id, [])
    if (since_ms, event.occurred_at_ms) not in starts:
        starts.append((since_ms, event.occurred_at_ms))
        starts.sort()
    _judge(state, terms)


def pruned(state: LogState, horizon_ms: int) -> None:
    state.empty_rises = [each for each in state.empty_rises if each.at_ms >= horizon_ms]
    state.broker_starts = {
        broker_id: kept
        for broker_id, starts in state.broker_starts.items()
        if (kept := [each for each in starts if each[1] >= horizon_ms])
    }


def _judge(state: LogState, terms: Terms) -> None:
    for rise in [*state.empty_rises]:
        starts = state.broker_starts.get(rise.broker_id, ())
        if not any(
            since_ms - terms.clock_tolerance_ms <= rise.at_ms
            and rise.not_before_ms <= at_ms + terms.settle_ms
            for since_ms, at_ms in starts
        ):
            continue
        state.empty_rises.remove(rise)
        happened(
            state,
            "HWM-03",
            subject=f"replica {rise.broker_id}",
            anchor=str(rise.before),
            severity="C",
            ranges=span(rise.before, rise.watermark),
            interval=(rise.not_before_ms, rise.at_ms),
            note=f"the high watermark rose to {rise.watermark} over an empty log",
        )
