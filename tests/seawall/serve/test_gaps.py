"""A gap on record that readers come to is in the log once an hour, with the event that said it first."""

from __future__ import annotations

from typing import Any

from seawall.serve.gaps import AGAIN_S, GapsMet
from tests.tiering.reader.tier import T0_MS
from tests.tiering.segments.strategies import LOG
from tests.tiering.segments.topic import TOPIC
from tests.tiering.serve.scene import a_log
from tests.tiering.serve.test_seam import tiered
from tiering.reader.errors import GapInRange
from tiering.segments.records import Gap, GapCause
from tiering.serve.tier import TierTable


class Lines:
    def __init__(self) -> None:
        self.warned: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.warned.append((event, facts))


def test_it_is_told_once_an_hour_with_its_event() -> None:
    """However often consumers come to it; two gaps are two lines, and what is on no record is none."""
    log = a_log(20)
    tier = tiered(log, 0, 4)
    tier.gaps += [
        Gap(
            start_offset=start,
            end_offset=start + 4,
            cause=GapCause.RETENTION_OVERTOOK,
            leader_epoch=0,
            event_id=f"lost-{start}",
            recorded_at_ms=T0_MS,
        )
        for start in (8, 20)
    ]
    tier.claim(log)
    now_s, lines = [100.0], Lines()
    met = GapsMet(TierTable(tier.table, TOPIC.cluster_id), lines, clock=lambda: now_s[0])
    for start in (8, 10, 20, 8, 14):
        met.tell(GapInRange(log=LOG, start=start, end=start + 2))
    assert [facts["event_id"] for _, facts in lines.warned] == ["lost-8", "lost-20"]
    event, facts = lines.warned[0]
    assert event == "gap_met"
    assert (facts["start_offset"], facts["end_offset"], facts["partition"]) == (8, 12, LOG.partition)
    now_s[0] += AGAIN_S
    met.tell(GapInRange(log=LOG, start=8, end=12))
    assert [facts["event_id"] for _, facts in lines.warned] == ["lost-8", "lost-20", "lost-8"]
