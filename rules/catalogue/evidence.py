"""Whether the evidence is whole: the rules AUD-*."""

from __future__ import annotations

from rules.catalogue.rule import ALL, Grace, Rule, Severity, Sort

RULES = (
    Rule(
        id="AUD-01",
        invariant="An emitter's sequence has no hole.",
        evidence=("heartbeat", "evidence_gap", "emitter_closed"),
        severity=Severity.ERROR,
        sort=Sort.STATE,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Replay its spool, or accept the gap.",
        why=(
            "A lost event may be the one that would have condemned, or justified. Its logs are "
            "INDETERMINATE until a baseline says that nothing is missing."
        ),
        example="Number 41 of broker 2's observer never came.",
        judged_by="emitters",
    ),
    Rule(
        id="AUD-02",
        invariant="One event id has one payload.",
        evidence=("every kind",),
        severity=Severity.ERROR,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Report the emitter's defect.",
        why=(
            "An event that is told again is the same event. Two contents under one id cannot both be "
            "the fact."
        ),
        example="Number 41 came twice, with another range the second time.",
        judged_by="emitters",
    ),
    Rule(
        id="AUD-03",
        invariant="Every live emitter has reached the run's watermark.",
        evidence=("heartbeat", "emitter_retired"),
        severity=Severity.WARNING,
        sort=Sort.STATE,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy="Run again when it is complete.",
        why="Silence is not peace. Whoever says nothing has seen nothing.",
        example="Broker 3's observer was last heard forty minutes before the cut.",
        judged_by="emitters",
    ),
    Rule(
        id="AUD-04",
        invariant="The audit table's own history holds only allowed operations.",
        evidence=("table history",),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=ALL,
        remedy=("Treat it as tampering: keep the table's files, and compare with the topic."),
        why="`appendOnly` can be unset and set again; the history shows it.",
        example="A DELETE on audit_events, between two ingest commits.",
        judged_by="run",
    ),
    Rule(
        id="AUD-05",
        invariant="Every live log was judged, and scrubbed, within its cadence.",
        evidence=("statements", "scrubbed"),
        severity=Severity.WARNING,
        sort=Sort.STATE,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Schedule it.",
        why="A log that no run looked at has no finding, either.",
        example="orders-7 was last judged three days ago; a copy was read 40 days ago, and 30 are declared.",
        judged_by="run, log",
    ),
    Rule(
        id="AUD-06",
        invariant="No event comes later than the lateness horizon.",
        evidence=("every kind",),
        severity=Severity.WARNING,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Look after the spool that held it; its statements stand as they were.",
        why=(
            "Past the horizon an event may open, withdraw or close a finding, and rewrites no "
            "statement (AUDIT_FACTS 2)."
        ),
        example="A spool was found after a week.",
        judged_by="run",
    ),
    Rule(
        id="AUD-07",
        invariant="The canary's injected fault is found, exactly, in every run.",
        evidence=("the canary's own cluster",),
        severity=Severity.CRITICAL,
        sort=Sort.STATE,
        grace=Grace.NONE,
        applies=ALL,
        remedy="The auditor is blind: believe no PASS until it is found again.",
        why="A judge that finds nothing may have stopped looking (AUDIT_FACTS 19).",
        example="Today's canary was fault 10, and the run found nothing.",
        judged_by="run",
    ),
)
