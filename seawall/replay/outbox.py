"""What people are told, made twice from the outbox in the tables, and held against this host's record of it.

Owns the folders of the two that are made. Invariant: the live record is read and never written to.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audit_engine.alerts.news import RunNews
from audit_engine.alerts.proof import AgainstRecord, against, steps
from audit_engine.alerts.record import Record
from audit_engine.alerts.record_file import FILE_NAME
from workers.proof import Compared, compared


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxProof:
    runs: int
    again: Compared
    live: AgainstRecord | None


def prove(news: Sequence[RunNews], state_dir: Path | None) -> OutboxProof:
    """`news` are all that finished runs left, in order."""
    with tempfile.TemporaryDirectory(prefix="seawall-replay-") as name:
        first, second = (Record(Path(name, each)) for each in ("first", "second"))
        try:
            again = compared(steps(first, news), steps(second, news))
        finally:
            first.close()
            second.close()
        return OutboxProof(runs=len(news), again=again, live=_live(news, state_dir, Path(name, "known")))


def _live(news: Sequence[RunNews], state_dir: Path | None, folder: Path) -> AgainstRecord | None:
    if state_dir is None or not (state_dir / FILE_NAME).exists():
        return None
    live, rebuilt = Record(state_dir), Record(folder)
    try:
        taken = live.taken()
        known = [each for each in news if taken.get(each.run) == each.attempt]
        for _ in steps(rebuilt, known):
            pass
        return against(rebuilt, live, news)
    finally:
        live.close()
        rebuilt.close()
