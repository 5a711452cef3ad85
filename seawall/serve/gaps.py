"""Gaps on record that readers came to, in the log: a line an hour for each, with the event that said so.

The event is the recorder's (`gap_recorded`); a reader adds no evidence to it (docs/decisions/0030). A
consumer that waits at a gap asks again each second; whoever operates it is told once, and where to look.

Owns when a line is due. Refuses to hold up a client: it looks at the table, and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tiering.reader.errors import GapInRange
from tiering.serve.tier import TierTable

AGAIN_S = 3600.0
GAPS_MAX = 10_000  # remembered; of more, a line comes again


class GapsMet:
    """For one thread. `clock` is in seconds."""

    def __init__(self, tier: TierTable, log: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._tier = tier
        self._log = log
        self._clock = clock
        self._told_s: dict[str, float] = {}

    def tell(self, met: GapInRange) -> None:
        record = self._tier.log_record(met.log)
        on_record = [
            gap
            for gap in (() if record is None else record.gaps)
            if gap.start_offset < met.end and met.start < gap.end_offset
        ]
        for gap in on_record:
            if self._is_due(gap.event_id):
                assert record is not None
                self._log.warning(
                    "gap_met",
                    topic=record.topic,
                    partition=met.log.partition,
                    start_offset=gap.start_offset,
                    end_offset=gap.end_offset,
                    cause=gap.cause.value,
                    event_id=gap.event_id,
                    recorded_at_ms=gap.recorded_at_ms,
                )

    def _is_due(self, event_id: str) -> bool:
        now_s = self._clock()
        if now_s - self._told_s.get(event_id, -AGAIN_S) < AGAIN_S:
            return False
        self._told_s = {each: told_s for each, told_s in self._told_s.items() if now_s - told_s < AGAIN_S}
        if len(self._told_s) < GAPS_MAX:
            self._told_s[event_id] = now_s
        return True
