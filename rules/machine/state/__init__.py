"""What is carried of one log from one run to the next: numbers that are still needed, nothing of the past.

    replicas      one life a broker: start, watermark, what lies closed on its disk, what it advanced over
    tier          the live copies, and those that are being deleted
    config, policy  timelines of what was in force and what was declared, inside the horizon
    obligations   rises of the log's start, removals, copies, deviations: each waits for what may justify it
    findings      those that are open, and inside the horizon those that are not any more
    gaps          where evidence is missing

Owns the values. Everything is bounded by what lives (segments), by the horizon (timelines, what was decided),
or by a cap that stands here; a history of any length leaves a state of the same size.

Invariant: only `fold` changes a state, and only one that it made itself; whoever is given one may keep it.
"""

from __future__ import annotations

from rules.machine.state.declared import Declared, Hold, Permit, Setting
from rules.machine.state.found import Found, Gap, Pending
from rules.machine.state.log import LogState, missing, newborn
from rules.machine.state.obligations import CopyAbove, Deviation, EmptyRise, Fallback, Removal, Rise
from rules.machine.state.replicas import Advance, Replica, Segment
from rules.machine.state.tier import LEGAL, Buried, Copy

EPOCHS_KEPT = 16
DIGESTS_KEPT = 8  # as agents remember: so far may one table be behind another
TIMELINE_MAX = 64
FINDINGS_MAX = 1_000  # of one log; the rest is counted
REMOVALS_MAX = 10_000
RUNS_KEPT = 8  # of one emitter

__all__ = [
    "DIGESTS_KEPT",
    "EPOCHS_KEPT",
    "FINDINGS_MAX",
    "LEGAL",
    "REMOVALS_MAX",
    "RUNS_KEPT",
    "TIMELINE_MAX",
    "Advance",
    "Buried",
    "Copy",
    "CopyAbove",
    "Declared",
    "Deviation",
    "EmptyRise",
    "Fallback",
    "Found",
    "Gap",
    "Hold",
    "LogState",
    "Pending",
    "Permit",
    "Removal",
    "Replica",
    "Rise",
    "Segment",
    "Setting",
    "missing",
    "newborn",
]
