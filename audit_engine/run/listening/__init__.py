"""What an emitter said, out of what was summed up of it.

    one row a run         its numbers, as `ranges`; those of logs that are not told which (`elsewhere`); how
                          far a heartbeat says that it had counted (`told_to`)
    and one of its logs   `logs`, JSON: of each the numbers in it, as ranges

Ranges are starts and ends, one behind the other. So an emitter's day is two rows, in whatever order and
however often its events were delivered.

Owns the way from rows to spans. Invariant: it is what `rules.machine.emitters.summed` makes of the events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rules.machine.emitters import RunSaid, Said
from rules.machine.spans import Spans, normal


def said_of(broker_id: int, component: str, rows: Iterable[Mapping[str, Any]]) -> Said | None:
    """None of nothing."""
    runs: dict[int, Mapping[str, Any]] = {}
    logs: dict[int, dict[str, Spans]] = {}
    for row in rows:
        of_run = logs.setdefault(row["incarnation"], {})
        if row["logs"] is not None:
            of_run |= {log: _ranges(ends) for log, ends in json.loads(row["logs"]).items()}
            continue
        runs[row["incarnation"]] = row
        if row["elsewhere"]:
            of_run[""] = _ranges(row["elsewhere"])
    if not runs:
        return None
    return Said(
        broker_id=broker_id,
        component=component,
        runs=tuple(_run(row, logs[incarnation]) for incarnation, row in sorted(runs.items())),
        follows=tuple(sorted({pair for row in runs.values() for pair in _pairs(row["follows"])})),
        watches_disks=any(row["watches_disks"] for row in runs.values()),
    )


def _run(row: Mapping[str, Any], log_numbers: Mapping[str, Spans]) -> RunSaid:
    numbers = _ranges(row["ranges"])
    return RunSaid(
        incarnation=row["incarnation"],
        numbers=numbers,
        told_to=max(row["told_to"] or 0, numbers[-1][1]),
        last_ms=row["last_ms"],
        log_numbers=log_numbers,
    )


def _ranges(ends: Sequence[int]) -> Spans:
    return normal(_pairs(ends))


def _pairs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(numbers[::2], numbers[1::2], strict=True)
