"""What people ask for: the rules OPS-*, HLD-01 and RST-01."""

from __future__ import annotations

from rules.catalogue.rule import ALL, OBJECTS, OURS, TIERED, Grace, Rule, Severity, Sort

RULES = (
    Rule(
        id="OPS-01",
        invariant=("Record and topic deletions have an authorisation, or their topic a standing permission."),
        evidence=("topic_deleted", "records_delete_requested", "operation_authorised", "policy_declared"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy="Restore it, from the tier if it was tiered.",
        why=(
            "No source says who deleted. So a deletion is laid against what somebody allowed: the "
            "log, the range, the time. Kafka Streams purges its repartition topics all day under a "
            "standing permission. What is asked of a broker behind our back shows only as a start "
            "that nothing justifies (START-02)."
        ),
        example=("The topic was deleted and made again under the same name; nobody had authorised it."),
    ),
    Rule(
        id="OPS-02",
        invariant="Deletions in an hour stay under the topic's declared blast limit.",
        evidence=("delete_started", "segment_deleted_local", "policy_declared"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Hold deletions, and look what makes them.",
        why=(
            "Any one deletion may be right, and five hundred in an hour are not. Expiry under the "
            "authorised retention does not count, nor does a topic with a standing permission."
        ),
        example=(
            "Three hundred segments of a topic went within an hour, on request, where a hundred are allowed."
        ),
        judged_by="fleet",
    ),
    Rule(
        id="OPS-03",
        invariant="An object that was deleted has a delete event.",
        evidence=("inventory", "delete_started"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.OBJECT,
        applies=OBJECTS,
        remedy="Restore the version under the delete marker.",
        why="Whoever deletes in the bucket by hand leaves no event, and a marker.",
        example="Segments 2 and 3 were removed from the bucket by hand.",
    ),
    Rule(
        id="HLD-01",
        invariant="Nothing of ours is deleted or trimmed under a standing hold.",
        evidence=("hold_placed", "hold_released", "delete_started", "trim_certified"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=OURS,
        remedy="Restore the range, and stop the agent that did it.",
        why=(
            "A hold is a record of the same partition of the metadata topic as the deletes, so that "
            "their order is certain (AUDIT_FACTS 12). The clean-up of a copy that never finished is no "
            "deletion: it never counted."
        ),
        example=("The hold stands from offset 120; a DELETE_STARTED of the range is at 131."),
    ),
    Rule(
        id="RST-01",
        invariant=("A restore matches its plan: range, checksums, no overlap with live data."),
        evidence=("restored", "scrubbed"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=TIERED,
        remedy="Roll it back.",
        why=("A restore closes findings, so that a bad one would turn a loss into a PASS."),
        example="What was put back fails its deep scrub.",
    ),
)
