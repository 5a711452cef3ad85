"""What is otherwise than after the run before: verdicts, findings, logs that are new or not judged any more.

Owns the comparison of verdicts; findings' changes are the run's own. Invariant: where there was no run
before, nothing is said to be unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from audit_engine.report.values import WORST_FIRST, Gathered, log_of
from rules.identity import LogId

NAMED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Logs that went from one verdict to another. `names`: the first NAMED_MAX."""

    before: str
    now: str
    logs: int
    names: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        return WORST_FIRST.index(self.now) < WORST_FIRST.index(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    moved: tuple[Moved, ...]
    new_logs: int
    gone_logs: int
    findings: Mapping[str, int]

    @property
    def is_nothing(self) -> bool:
        return not (self.moved or self.new_logs or self.gone_logs or self.findings)


def changed(gathered: Gathered) -> Changed | None:
    """None: there was no run before."""
    if gathered.before is None:
        return None
    now = {log_of(each): (str(each["verdict"]), str(each["topic"])) for each in gathered.statements}
    before: Mapping[LogId, str] = gathered.before
    by_step: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for log, (verdict, topic) in now.items():
        if before.get(log, verdict) != verdict:
            by_step.setdefault((before[log], verdict), []).append((topic, log.partition))
    moved = [
        Moved(
            before=was,
            now=verdict,
            logs=len(names),
            names=tuple(f"{topic}-{partition}" for topic, partition in sorted(names)[:NAMED_MAX]),
        )
        for (was, verdict), names in by_step.items()
    ]
    return Changed(
        moved=tuple(
            sorted(moved, key=lambda each: (not each.is_worse, WORST_FIRST.index(each.now), each.before))
        ),
        new_logs=sum(log not in before for log in now),
        gone_logs=_gone(gathered, now, before),
        findings=Counter(str(each["change"]) for each in gathered.changes),
    )


def _gone(gathered: Gathered, now: Mapping[LogId, object], before: Mapping[LogId, str]) -> int:
    """Where the table does not have every log, only the counts can tell."""
    if len(now) == gathered.run["counts"]["logs"]:
        return sum(log not in now for log in before)
    return max(0, len(before) - int(gathered.run["counts"]["logs"]))
