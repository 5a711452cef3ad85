"""What was missing and is not any more: it was heard after all, or somebody takes it as lost.

Whoever listens to emitters tells a log by an `evidence_gap` that it may miss something, and by another of the
same words that it does not any more: the log itself need not hear anything late for it.

Owns how such a gap ends. Invariant: only what is told in the same words ends, at the moment that is told.
"""

from __future__ import annotations

from rules.events import EvidenceGap
from rules.machine import cluster
from rules.machine.state import LogState
from rules.machine.terms import Terms
from rules.machine.told import Speaker

MADE_GOOD = "made_good"


def evidence_gap(state: LogState, event: EvidenceGap, terms: Terms, speaker: Speaker) -> None:
    """One more, or the end of one."""
    if event.problem == MADE_GOOD:
        _ends(state, event)
    else:
        cluster.evidence_gap(state, event, terms, speaker)


def _ends(state: LogState, event: EvidenceGap) -> None:
    """Numbers of this very log that were passed over are told by the log's own gap, in words of its own."""
    words, _, why = event.detail.partition("; ")
    speaker = words.removeprefix("numbers of ").partition(" ")[0].removesuffix(":")
    for gap in state.gaps:
        is_own = gap.sort == "sequence" and gap.detail.startswith(f"{speaker} numbers ")
        if gap.closed_ms is None and (gap.detail == words or (is_own and event.partition is not None)):
            gap.closed_ms = event.occurred_at_ms
            gap.detail = f"{gap.detail}; {why}" if why else gap.detail
