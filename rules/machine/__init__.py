"""The state machine that judges one log: values in, values out. No I/O, no clock, no Kafka, no Spark.

    told         an event and its place; the one order
    terms        graces, suppressions, scope
    state, codec what is carried, and as canonical bytes
    spans        sets of offsets
    coverage, authority      what is where; what was allowed and what was in force
    replicas, tier, cluster  events taken into the state, by who can know them
    obligations, conditions  rules about what happened; rules about a state of things
    untrue       whether a copy's record can be true
    findings, causes         findings, and one incident of a root and its children
    fold         the machine
    verdict      what a log's day comes to, and the statement of it
    emitters     whether the evidence itself is whole
    made_good    the end of a gap in the evidence
    fleet        rules over many logs
    explained    the events and the arithmetic behind a finding
    saying       what this process knows itself, as events
    gate         whether an agent may delete

Invariant: with the same events and terms, the same bytes.
"""

from rules.machine.codec import StateTooNew, decode, encode, state_hash
from rules.machine.fold import fold, fold_line, is_late, step
from rules.machine.state import LogState, newborn
from rules.machine.terms import RuleTerms, Suppression, Terms, is_audited
from rules.machine.told import Reading, Speaker, Told, concerns, has_own_clock, in_line, in_order

__all__ = [
    "LogState",
    "Reading",
    "RuleTerms",
    "Speaker",
    "StateTooNew",
    "Suppression",
    "Terms",
    "Told",
    "concerns",
    "decode",
    "encode",
    "fold",
    "fold_line",
    "has_own_clock",
    "in_line",
    "in_order",
    "is_audited",
    "is_late",
    "newborn",
    "state_hash",
    "step",
]
