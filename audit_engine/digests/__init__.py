"""What every agent's table holds of a log, said after each record and compared at equal offsets.

    emitter    says it: a `tier_state` after each record that this agent's table applied, a `tier_set` in full
    states     hears it: the last few of each broker and log, and whether they agree
    kafka      reads them from `__seawall_audit`

Owns the comparison while it is news; the audit makes its own from the same events, later and of all of them.

Invariant: digests are compared only at equal offsets of the same partition, as said by each broker's newest
incarnation. What was not said is missing, and never agreement.
"""

from audit_engine.digests.emitter import TierStateEmitter
from audit_engine.digests.states import Disagreement, StateAt, TierStates, agreement, disagreement

__all__ = ["Disagreement", "StateAt", "TierStateEmitter", "TierStates", "agreement", "disagreement"]
