"""What one run sees: offsets of the topic of events, and the moment as of which it judges.

    offsets   from where the run before ended to where the table ended when this one began; what was taken up
              from the quarantine since, wherever it lies; and of the run before, what was observed past its
              moment: it was read then, and not judged
    decisions the number of the last that people took about findings
    as_of_ms  by default a quarter of an hour ago: what emitters are still publishing comes before it

Both are stored with the run. A rerun reads the same offsets as of the same moment, so that it comes to the
same; no rule asks a clock.

Owns the arithmetic. Refuses a moment before the one of the run before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from audit_engine.run.errors import AsOfBeforeLastRun
from audit_engine.tables.marks import Offsets, Range

AS_OF_BEHIND_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """`run` counts from 1. `begin_offsets` and `since_ms` are the run before's; of the first, nothing.

    `commit` is the last of ingest's that it sees; `versions`: the last of each table's own history.
    """

    run: int
    as_of_ms: int
    begin_offsets: Offsets
    end_offsets: Offsets
    since_ms: int | None
    commit: int
    replayed: Mapping[int, Sequence[Range]]
    decisions: int = 0
    versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def previous(self) -> int | None:
        return self.run - 1 if self.run > 1 else None

    def as_json(self) -> str:
        members = {
            "begin": {str(partition): offset for partition, offset in sorted(self.begin_offsets.items())},
            "end": {str(partition): offset for partition, offset in sorted(self.end_offsets.items())},
            "since_ms": self.since_ms,
            "commit": self.commit,
            "replayed": {str(partition): each for partition, each in sorted(self.replayed.items())},
            "decisions": self.decisions,
            "versions": dict(self.versions),
        }
        return json.dumps(members, separators=(",", ":"), sort_keys=True)


def cut_of(run: int, as_of_ms: int, told: str) -> Cut:
    """A cut as a run's row has it."""
    members: Mapping[str, Any] = json.loads(told)
    return Cut(
        run=run,
        as_of_ms=as_of_ms,
        begin_offsets={int(partition): offset for partition, offset in members["begin"].items()},
        end_offsets={int(partition): offset for partition, offset in members["end"].items()},
        since_ms=members["since_ms"],
        commit=members["commit"],
        replayed={
            int(partition): [(start, end) for start, end in each]
            for partition, each in members["replayed"].items()
        },
        decisions=members.get("decisions", 0),  # runs of before there were any
        versions=members.get("versions", {}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far the table of events goes: offsets, the last commit, and what came from the quarantine since."""

    offsets: Offsets
    commit: int
    replayed: Mapping[int, Sequence[Range]]
    decisions: int = 0
    versions: Mapping[str, int] = field(default_factory=dict)


def next_cut(last: Cut | None, reach: Reach, as_of_ms: int) -> Cut:
    """The cut after `last`, None for the first run. Raises AsOfBeforeLastRun."""
    if last is not None and as_of_ms < last.as_of_ms:
        raise AsOfBeforeLastRun(run=last.run, last_ms=last.as_of_ms, as_of_ms=as_of_ms)
    return Cut(
        run=1 if last is None else last.run + 1,
        as_of_ms=as_of_ms,
        begin_offsets={} if last is None else dict(last.end_offsets),
        end_offsets=dict(reach.offsets),
        since_ms=None if last is None else last.as_of_ms,
        commit=reach.commit,
        replayed={} if last is None else reach.replayed,
        decisions=reach.decisions,
        versions=dict(reach.versions),
    )
