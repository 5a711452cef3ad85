"""What an agent remembers of what its earlier runs told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from audit_engine.spool import EmitterName, Spool
from audit_engine.spool.spool import KEEP_MS
from rules.events import LeadershipClaimed
from rules.identity import LogId
from seawall.agent.told import told_before

NOW_MS = 1_763_458_000_000
CLAIMED = LeadershipClaimed(
    event_id="00000000-0000-0000-0000-000000000001",
    occurred_at_ms=NOW_MS,
    log=LogId("MkU3OEVBNTcwNTJENDM2Qk", "CgkTzsXgRlOwPTRJHnL2yg", 0),
    topic="orders",
    leader_epoch=3,
    broker_id=1,
    metadata_offset=7,
)


def spool_in(folder: Path) -> Spool:
    name = EmitterName("MkU3OEVBNTcwNTJENDM2Qk", 1, "agent")
    return Spool(folder / "spool.sqlite", name, now_ms=lambda: NOW_MS)


def test_what_an_earlier_run_spooled_was_told_whether_kafka_has_it_or_not(tmp_path: Path) -> None:
    """The spool outlives its process; an act that it never took was not told."""
    with spool_in(tmp_path) as before:
        before.emit(CLAIMED)
        other = replace(CLAIMED, event_id="00000000-0000-0000-0000-000000000002")
    with spool_in(tmp_path) as spool:
        was_told = told_before(spool, lambda: NOW_MS)

        assert was_told(CLAIMED)
        assert not was_told(other)


def test_what_is_older_than_the_spool_keeps_is_not_told_at_every_start(tmp_path: Path) -> None:
    """A claim of last year that nobody can remember is no news."""
    with spool_in(tmp_path) as spool:
        was_told = told_before(spool, lambda: NOW_MS + KEEP_MS + 1)

        assert was_told(CLAIMED)
