"""What the tables of results need from time to time: fewer files, and none that nobody asks for any more.

    runs     of a finished run's rows, many small files become few; a table without runs is one such part
    windows  as of the evidence: what was there on a day can be read again for as long, set where it is not
    files    what no version of the window names any more is removed: of states that were spent, most of it

Owns what each table is declared to be. Invariant: no row is changed, and a run that is at work finds the
tables as it left them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from audit_engine.tables.maintenance import DayFiles
from audit_engine.tables.results import DECISIONS, EMITTERS, FINDINGS, OUTBOX, RUNS, STATE, STATEMENTS

TABLES = (RUNS, STATE, EMITTERS, FINDINGS, STATEMENTS, OUTBOX, DECISIONS)
BY_RUN = frozenset({STATE, EMITTERS, FINDINGS, STATEMENTS})
WINDOWS: Mapping[str, str] = {
    "delta.logRetentionDuration": "interval 400 days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
WHOLE = "all runs"  # what a table without parts calls its only one


def named(run: str | None) -> str:
    return WHOLE if run is None else f"run {run}"


def due(parts: Iterable[tuple[str | None, int, int]], last_run: int) -> tuple[DayFiles, ...]:
    """`parts`: the run, files, bytes. Of runs that are finished, those with more files than they need."""
    found = [
        DayFiles(day=named(run), files=files, size_bytes=size_bytes)
        for run, files, size_bytes in sorted(parts, key=lambda each: int(each[0] or 0))
        if run is None or int(run) <= last_run
    ]
    return tuple(each for each in found if each.files > each.files_wanted)
