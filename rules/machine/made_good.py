"""What was missing and is not any more: it was heard after all, or somebody takes it as lost.

Whoever listens to emitters tells a log by an `evidence_gap` that it may miss something, and by another of the
same words that it does not any more: the log itself need not hear anything late for it. An observer that
could not look, and can again, has told what changed meanwhile, and says so in the same way; else every log of
its broker would be in doubt until its next baseline.

Owns how such a gap ends. Invariant: only what is told in the same words ends, at the moment that is told.
"""

from __future__ import annotations

from rules.events import EvidenceGap
from rules.events.emitters import MADE_GOOD
from rules.machine import cluster
from rules.machine.state import LogState
from rules.machine.terms import Terms
from rules.machine.told import Speaker


def evidence_gap(state: LogState, event: EvidenceGap, terms: Terms, speaker: Speaker) -> None:
    """One more, or the end of one."""
    if event.problem == MADE_GOOD:
        _ends(state, event, speaker)
    else:
        cluster.evidence_gap(state, event, terms, speaker)


def _ends(state: LogState, event: EvidenceGap, speaker: Speaker) -> None:
    """Numbers of this very log that were passed over are told by the log's own gap, in words of its own."""
    words, _, why = event.detail.partition("; ")
    numbered = words.removeprefix("numbers of ").partition(" ")[0].removesuffix(":")
    for gap in state.gaps:
        if gap.closed_ms is not None or gap.broker_id not in (None, speaker.broker_id):
            continue
        is_own = gap.sort == "sequence" and gap.detail.startswith(f"{numbered} numbers ")
        if words in (gap.detail, gap.sort) or (is_own and event.partition is not None):
            gap.closed_ms = event.occurred_at_ms
            gap.detail = f"{gap.detail}; {why}" if why else gap.detail
