"""Segments and their copies: the rules SEG-*."""

from __future__ import annotations

from rules.catalogue.rule import ALL, OBJECTS, TIERED, Grace, Rule, Severity, Sort

RULES = (
    Rule(
        id="SEG-01",
        invariant="A copy's states follow each other as the lifecycle allows.",
        evidence=("copy_started", "copy_finished", "delete_started", "delete_finished"),
        severity=Severity.ERROR,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=TIERED,
        remedy="Reconcile the metadata with the objects.",
        why=(
            "The lifecycle is Kafka's own: started, finished, being deleted, deleted; a started copy "
            "may be cleaned up, and every step may be told again."
        ),
        example="DELETE_FINISHED was followed by COPY_FINISHED under one id.",
    ),
    Rule(
        id="SEG-02",
        invariant=(
            "In the leader's view the tier and the leader's local segments cover [log_start, high "
            "watermark), and inside a never-compacted segment the data ends where the segment does, "
            "with a record for each offset."
        ),
        evidence=(
            "segment_closed",
            "segment_deleted_local",
            "copy_finished",
            "delete_started",
            "leader_changed",
            "tier_set",
        ),
        severity=Severity.CRITICAL,
        sort=Sort.STATE,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy="Copy the range from another replica, re-upload it, or restore it.",
        why=(
            "Kafka loads a log whose middle is gone without a word, and a consumer passes over it "
            "without an error. Coverage is what the leader's own table and disk hold, since that is "
            "what is served."
        ),
        example=(
            "One closed segment's files were lost while the broker was down; [4000, 5000) can be read "
            "nowhere on it."
        ),
    ),
    Rule(
        id="SEG-03",
        invariant="Two live segments of one leader epoch do not claim the same offsets.",
        evidence=("copy_finished", "delete_started"),
        severity=Severity.WARNING,
        sort=Sort.STATE,
        grace=Grace.SETTLE,
        applies=TIERED,
        remedy="Pick by commit order.",
        why=(
            "Overlap at a leader change is normal, since replicas roll at other offsets. Within one "
            "epoch it means that a copy was made twice, and size retention may count it twice."
        ),
        example="Segment 1 was committed twice in epoch 5.",
    ),
    Rule(
        id="SEG-04",
        invariant=(
            "A segment's record can be true: base below end, data, count and epochs inside, a sane time."
        ),
        evidence=("copy_started", "copy_finished"),
        severity=Severity.ERROR,
        sort=Sort.STATE,
        grace=Grace.NONE,
        applies=TIERED,
        remedy="Rebuild the record from the object.",
        why="What reads by such a record reads something else.",
        example="A copy claims 1,200 records in 1,000 offsets.",
    ),
    Rule(
        id="SEG-05",
        invariant="A delete names a known segment.",
        evidence=("delete_started",),
        severity=Severity.ERROR,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=TIERED,
        remedy="Find out whose segment that was.",
        why=(
            "Of a copy that never finished a delete is the clean-up after it, and no finding. Of one "
            "that nobody ever started it is a sign of another writer."
        ),
        example="DELETE_STARTED under an id that has no COPY_STARTED.",
    ),
    Rule(
        id="SEG-06",
        invariant="Finished and not deleted means that the object is there.",
        evidence=("inventory", "scrubbed"),
        severity=Severity.CRITICAL,
        sort=Sort.STATE,
        grace=Grace.OBJECT,
        applies=OBJECTS,
        remedy="Restore the version, or upload it again from a replica.",
        why=(
            "The metadata says that the data is safe; then it had better be. One reading is not "
            "enough, and an error of the store is never `missing`."
        ),
        example="Two listings, ten minutes apart, do not have segment 2's object.",
    ),
    Rule(
        id="SEG-07",
        invariant="An object that is there is known to the metadata.",
        evidence=("inventory",),
        severity=Severity.WARNING,
        sort=Sort.STATE,
        grace=Grace.OBJECT,
        applies=OBJECTS,
        remedy="Quarantine it, then collect it (`seawall tier orphans`).",
        why="It costs money, and it may be data whose record was lost.",
        example="A key under the log's prefix belongs to no attempt that is on record.",
    ),
    Rule(
        id="SEG-08",
        invariant=(
            "An object's bytes are what was committed: size, checksum, and in a deep scrub every batch."
        ),
        evidence=("scrubbed",),
        severity=Severity.CRITICAL,
        sort=Sort.STATE,
        grace=Grace.NONE,
        applies=OBJECTS,
        remedy="Restore the version.",
        why="A copy that cannot be read back is none.",
        example="A deep scrub found a batch whose CRC is wrong.",
    ),
    Rule(
        id="SEG-09",
        invariant=(
            "On a log that is tiered, local offsets go only when finished segments cover them, or as "
            "a justified loss of the log itself."
        ),
        evidence=("segment_deleted_local", "copy_finished", "policy_declared"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=TIERED,
        remedy="Copy it from another replica now: its retention will come, too.",
        why=(
            "Local retention is set short because the tier holds the rest. If it does not, the disk "
            "was the last place."
        ),
        example="Broker 1 dropped segment 9 while its copy had only started.",
    ),
    Rule(
        id="SEG-10",
        invariant="Nothing that was uploaded proves to be above the high watermark.",
        evidence=("copy_started", "high_watermark", "truncated"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.WATERMARK,
        applies=TIERED,
        remedy="Discard the segment.",
        why=(
            "What is not committed may be truncated, and other records written in its place. "
            "Watermarks are written down every five seconds, so that only a later reading of the "
            "leader's proves it."
        ),
        example="A copy ends at 11000; a minute later the leader's watermark is 10500.",
    ),
    Rule(
        id="SEG-11",
        invariant="A started copy finishes within its deadline.",
        evidence=("copy_started", "copy_finished", "copy_failed"),
        severity=Severity.WARNING,
        sort=Sort.STATE,
        grace=Grace.COPY,
        applies=TIERED,
        remedy="Retry it.",
        why=("A copy that hangs holds up all behind it, and local retention does not wait."),
        example="COPY_STARTED an hour ago, and nothing since.",
    ),
)
