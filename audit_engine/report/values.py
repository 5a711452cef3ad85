"""What a report is made of: one run, the runs before it, and what each log, finding and emitter came to.

    Gathered    everything, as the tables hold it; rows are what `audit_runs` and its kin say, their JSON read
    Subject     what a finding is about, taken apart

Owns the values. Refuses to look anything up: `spark` gathers. Invariant: of what is left out for its number,
the number is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from rules.identity import LogId
from rules.machine.state import LogState
from rules.severities import GRAVEST_FIRST

Row: TypeAlias = Mapping[str, Any]

COURSE_MAX = 30  # runs of which a log's offsets are drawn
RUNS_MAX = 60  # of the trend: two months of days
LOGS_MAX = 50_000  # of the table, the worst; all are counted
WORST_FIRST = ("VIOLATION", "INDETERMINATE", "SUSPECT", "PASS")
SEVERITIES = GRAVEST_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a run stated of a log. Offsets None: not known then."""

    run: int
    at_ms: int
    start: int | None
    watermark: int | None


@dataclass(frozen=True, kw_only=True)  # no slots: `topics` is kept
class Gathered:
    """`runs`: finished ones up to the one that is reported, which is the last. `before`: the verdicts of the
    run before, None where there was none. `statements`: the worst first, at most LOGS_MAX."""

    runs: Sequence[Row]
    statements: Sequence[Row] = ()
    before: Mapping[LogId, str] | None = None
    findings: Sequence[Row] = ()
    changes: Sequence[Row] = ()  # findings, each with its `change`
    emitters: Sequence[Row] = ()
    states: Mapping[LogId, LogState] = field(default_factory=dict)
    courses: Mapping[LogId, Sequence[Moment]] = field(default_factory=dict)  # the oldest run first

    @property
    def run(self) -> Row:
        return self.runs[-1]

    @cached_property
    def topics(self) -> dict[tuple[str, str], str]:
        """Names, by cluster and id: a finding's subject has only ids."""
        found = {(each["cluster_id"], each["topic_id"]): str(each["topic"]) for each in self.statements}
        return found | {(log.cluster_id, log.topic_id): state.topic for log, state in self.states.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`partition` None: a topic. `topic_id` None: no log at all, and `rest` says what."""

    cluster_id: str
    topic_id: str | None
    partition: int | None
    rest: str = ""

    @property
    def log(self) -> LogId | None:
        if self.topic_id is None or self.partition is None:
            return None
        return LogId(self.cluster_id, self.topic_id, self.partition)


def subject_of(text: str) -> Subject:
    """The way back from how `rules.machine.findings` and emitters spell it."""
    cluster_id, _, about = text.partition("/")
    topic_id, _, beneath = about.partition("/")
    if not about or about.startswith("emitter "):
        return Subject(cluster_id=cluster_id, topic_id=None, partition=None, rest=about or text)
    partition, _, rest = beneath.partition("/")
    if not partition.isdecimal():
        return Subject(cluster_id=cluster_id, topic_id=topic_id, partition=None, rest=beneath)
    return Subject(cluster_id=cluster_id, topic_id=topic_id, partition=int(partition), rest=rest)


def log_of(row: Row) -> LogId:
    return LogId(row["cluster_id"], row["topic_id"], row["partition"])
