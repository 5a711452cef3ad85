"""What keeps an audit run from judging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audit_engine.errors import AuditError


@dataclass(kw_only=True, eq=False)
class AuditRunError(AuditError):
    """the audit could not be run"""

    exit_code: ClassVar[int] = 55


@dataclass(kw_only=True, eq=False)
class AsOfBeforeLastRun(AuditRunError):
    """run {run} judged as of {last_ms} ms, and {as_of_ms} ms is before that

    A run goes on from the one before; `seawall audit run --again {run}` judges that one anew.
    """

    run: int
    last_ms: int
    as_of_ms: int


@dataclass(kw_only=True, eq=False)
class AsOfAhead(AuditRunError):
    """{as_of_ms} ms is still to come: a run cannot judge as of then"""

    as_of_ms: int


@dataclass(kw_only=True, eq=False)
class NothingIngested(AuditRunError):
    """{table} holds no events to judge

    `seawall audit ingest` fills it. An empty table is no evidence that nothing was lost.
    """

    table: str


@dataclass(kw_only=True, eq=False)
class SliceIncomplete(AuditRunError):
    """by the commits of {table} {wanted} rows are to be judged, and {found} were read; nothing was judged

    Rows were removed from the table, or its log is damaged: Delta's history of it says by whom.
    """

    table: str
    wanted: int
    found: int


@dataclass(kw_only=True, eq=False)
class StatesGone(AuditRunError):
    """run {run} cannot be judged again: the states of {logs} logs that it went on from were removed

    `seawall audit maintain` keeps those that later runs can need. `--from` and `--to` judge the past without.
    """

    run: int
    logs: int


@dataclass(kw_only=True, eq=False)
class NoSuchRun(AuditRunError):
    """there is no run {run} in {table}: it was never finished, or is not there any more"""

    run: int
    table: str


@dataclass(kw_only=True, eq=False)
class NoSuchFinding(AuditRunError):
    """{wanted} names {count} findings of the last run, and has to name one

    `seawall audit findings --all` lists them; the first letters of an id are enough.
    """

    wanted: str
    count: int


@dataclass(kw_only=True, eq=False)
class FindingClosed(AuditRunError):
    """finding {finding_id} is {status}: there is nothing left to decide about it"""

    finding_id: str
    status: str


@dataclass(kw_only=True, eq=False)
class DecisionNotKept(AuditRunError):
    """others decided at the same time, again and again, and nothing was added to {table}; try again"""

    table: str


@dataclass(kw_only=True, eq=False)
class RuleSetFileRefused(AuditRunError):
    """{path} is no rule set that can be judged by:
    {problems}
    """

    path: str
    problems: str


@dataclass(kw_only=True, eq=False)
class RunOvertaken(AuditRunError):
    """another run was committed to {table} as number {run} while this one judged; nothing of this one counts

    Two schedules run against the same tables. Let one of them go.
    """

    run: int
    table: str
