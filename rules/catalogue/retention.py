"""What may expire, and what does: the rules RET-* and DEL-01."""

from __future__ import annotations

from rules.catalogue.rule import ALL, TIERED, Grace, Rule, Severity, Sort

RULES = (
    Rule(
        id="RET-01",
        invariant=(
            "A time deletion removes only what had expired under the authorised retention at that moment."
        ),
        evidence=("segment_deleted_local", "delete_started", "config_effective", "policy_declared"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy="Revert the setting, then restore the segments.",
        why=(
            "What brokers do and what people decided are two things. A removal that only the "
            "effective setting explains is a deletion that nobody decided."
        ),
        example=(
            "Retention was set from seven days to one hour without a declaration; each of nine "
            "segments that went is a finding."
        ),
    ),
    Rule(
        id="RET-02",
        invariant=(
            "A size deletion happens only while the log's unique bytes (each offset counted once, "
            "whatever the tier) minus the segment are at least the authorised retention bytes."
        ),
        evidence=(
            "segment_deleted_local",
            "delete_started",
            "high_watermark",
            "copy_finished",
            "policy_declared",
        ),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy="Restore the segments; upgrade the broker (KAFKA-20732, KAFKA-17062).",
        why=(
            "A fresh leader that counts local and remote bytes twice deletes live data in both tiers "
            "on every replica. So bytes are counted by offset, and the count is laid beside the "
            "limit."
        ),
        example=(
            "10.5 MiB of unique bytes under a limit of 15 MiB: the new leader counted 20.5 MiB and "
            "deleted five segments."
        ),
    ),
    Rule(
        id="RET-03",
        invariant=(
            "Effective retention, of the topic and of every hosting broker, keeps at least what the "
            "policy declares, and alike on each of them."
        ),
        evidence=("config_effective", "policy_declared"),
        severity=Severity.ERROR,
        rises_when=("it is already deleting, or ten topics changed within a quarter of an hour"),
        sort=Sort.STATE,
        grace=Grace.DECLARE,
        applies=ALL,
        remedy="Revert it, or declare it; hold deletions meanwhile.",
        why=(
            "A wrong retention deletes nothing at first, and everything at the next check. A "
            "declaration may come up to its grace before or after the change. Growth is free: what "
            "keeps more loses nothing. A topic without a policy is held against what it had at first "
            "sight."
        ),
        example=(
            "7 d, then 1 h, then 7 d again within ten minutes, undeclared: one finding, changes=2, reverted."
        ),
    ),
    Rule(
        id="RET-04",
        invariant="An authorised shrink that deletes is shown for review.",
        evidence=("policy_declared", "segment_deleted_local", "delete_started"),
        severity=Severity.WARNING,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy="Confirm it (accept the loss), or undo it while the versions are kept.",
        why=(
            "People decide wrongly, too. What only the newest change of the policy allows to go is "
            "shown once, while it can be put back."
        ),
        example=("Retention was declared down to one hour under CHG-1, and nine segments went by it."),
    ),
    Rule(
        id="RET-05",
        invariant=(
            "What has expired is gone within grace, judged on the running maximum timestamp from the head."
        ),
        evidence=("segment_closed", "copy_finished", "policy_declared", "config_effective"),
        severity=Severity.WARNING,
        sort=Sort.STATE,
        grace=Grace.RETENTION,
        applies=ALL,
        remedy="See what keeps the deleter from it (KAFKA-16511).",
        why=(
            "Data that should be gone costs money, and can be an offence. Deletion is by prefix: one "
            "late timestamp rightly keeps all that is behind it."
        ),
        example=("The head of the log expired two hours ago, and no check has removed it."),
    ),
    Rule(
        id="RET-06",
        invariant="No record's timestamp lies so far ahead that it can never expire.",
        evidence=("segment_closed", "copy_finished"),
        severity=Severity.WARNING,
        sort=Sort.STATE,
        grace=Grace.NONE,
        applies=ALL,
        remedy=("Repair the producer's clock; the segment stays until its time, and so does all behind it."),
        why=(
            "Time retention waits for the newest timestamp of the segment at the head. One from the "
            "next century keeps the log for ever."
        ),
        example=("A producer sent microseconds for milliseconds: the segment expires in the year 57000."),
    ),
    Rule(
        id="DEL-01",
        invariant=(
            "Every tier deletion that is not time or size is justified by a topic deletion, by a log "
            "start that is itself justified, by a failed copy, or by another finished segment."
        ),
        evidence=("delete_started", "copy_finished", "log_start_advanced", "topic_deleted"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=TIERED,
        remedy="Restore the segment from its object's version.",
        why=(
            "With KIP-405 the broker deletes from the tier whatever lies below the log start, without "
            "looking at retention: a corrupt start takes the tier with it."
        ),
        example=(
            "The start went to 3000 for no reason, and then segments 0, 1 and 2 were deleted from the tier."
        ),
    ),
)
