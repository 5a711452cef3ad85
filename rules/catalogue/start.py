"""Where a log starts: the rules START-*."""

from __future__ import annotations

from rules.catalogue.rule import ALL, Deployment, Grace, Rule, Severity, Sort

RULES = (
    Rule(
        id="START-01",
        invariant=(
            "Within one incarnation a replica's log start never goes back, except by a restore, or "
            "after an unclean restart within the checkpoint interval."
        ),
        evidence=("log_start_advanced", "high_watermark", "log_baseline", "restored", "broker_started"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy=("Place a hold, and compare the replicas before any of them is restarted."),
        why=(
            "A start that falls offers records that were deleted, or that another replica does not "
            "have. Kafka writes starts down every minute, so that a crash may rightly forget the last "
            "of them; a replica that is built anew starts at other offsets altogether, which is "
            "another incarnation and compares to nothing."
        ),
        example=(
            "Broker 3 said that its log starts at 10600, and a minute later at 0, without a restore "
            "and in the same directory."
        ),
    ),
    Rule(
        id="START-02",
        invariant=(
            "Every rise of a log's own start, across elections and restarts, is covered by justified "
            "removals."
        ),
        evidence=(
            "log_start_advanced",
            "segment_deleted_local",
            "segment_closed",
            "leader_changed",
            "copy_finished",
            "config_effective",
            "policy_declared",
            "operation_authorised",
            "records_delete_requested",
            "trim_certified",
        ),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy=(
            "Stop the brokers before the next retention check deletes the followers' files; then "
            "restore the prefix (`seawall backup plan`)."
        ),
        why=(
            "This is the loss that the audit exists for (Kora, 4.6.3): a corrupt start trims a "
            "prefix, and the followers copy it within seconds. An advance that a replica made as a "
            "follower, or while it restarted, becomes the log's when it is elected, and none is ever "
            "made by a leader; so each replica's advances are kept with their causes, and the log's "
            "start is judged when it rises. Until it leads, an uncovered advance of a follower is "
            "START-04."
        ),
        example=(
            "Broker 1 restarts with log start 3000 where it was 0, leads again, and the others "
            "follow. No segment below 3000 had expired, and nobody was allowed to delete records: [0, "
            "3000)."
        ),
    ),
    Rule(
        id="START-03",
        invariant=(
            "No replica's log start exceeds the highest high watermark published for the log before it."
        ),
        evidence=("log_start_advanced", "high_watermark", "log_baseline"),
        severity=Severity.CRITICAL,
        sort=Sort.STATE,
        grace=Grace.CHECKPOINT,
        applies=ALL,
        remedy=("Stop the broker: if it is elected, the log goes on where nothing was ever written."),
        why=(
            "Nothing is deleted before it is committed. A broker whose checkpoint lies above its "
            "log's end deletes every segment and starts an empty log there, raising its own watermark "
            "to it; what other replicas published, and readings a checkpoint interval apart, show it."
        ),
        example=("Broker 3 reads 10600 twice, a minute apart, where the highest watermark is 10500."),
    ),
    Rule(
        id="START-04",
        invariant=(
            "A replica's log start above the leader's is covered by that replica's own justified "
            "retention (with KIP-405 it is never above), and it is below the leader's only within "
            "grace."
        ),
        evidence=("log_start_advanced", "segment_deleted_local", "leader_changed", "isr_changed"),
        severity=Severity.ERROR,
        rises_when="it is above, uncovered, and the replica is in sync: it can be elected",
        sort=Sort.STATE,
        grace=Grace.RETENTION,
        applies=ALL,
        remedy=(
            "Keep the replica from leading: stop it or reassign it before a preferred election. After "
            "one, stop the brokers before the next retention check, and strip `.deleted` from the "
            "files before any restart."
        ),
        why=(
            "Beside a stock broker each replica runs retention by itself, and one that is ahead is "
            "normal. One that is ahead for no reason is a loss that waits for an election."
        ),
        example=("Broker 3's checkpoint says 4000, the leader starts at 0, and broker 3 is in the ISR."),
    ),
    Rule(
        id="START-05",
        invariant=(
            "A log start that is no segment's boundary (of this replica, the leader, the tier) has a "
            "record deletion or a leader's start behind it."
        ),
        evidence=("log_start_advanced", "segment_closed", "copy_finished", "operation_authorised"),
        severity=Severity.ERROR,
        sort=Sort.HAPPENED,
        grace=Grace.SETTLE,
        applies=ALL,
        remedy=("Look into the broker's recovery: what wrote this start was no retention."),
        why=(
            "Retention removes whole segments, so that its starts are segments' ends. A start in the "
            "middle of one was asked for, copied from a leader, or made up."
        ),
        example=("Segments 0 and 1 are gone and the log starts at 2500, inside segment 2."),
    ),
    Rule(
        id="START-06",
        invariant=("The offset at log start can be read in some tier: there is no gap at the head."),
        evidence=("log_start_advanced", "copy_finished", "delete_started", "log_baseline"),
        severity=Severity.CRITICAL,
        sort=Sort.STATE,
        grace=Grace.SETTLE,
        applies=(Deployment.NONE, Deployment.KIP405),
        remedy="Restore the head; or, if it has expired, advance the start over it.",
        why=(
            "A consumer that begins at the earliest offset gets an error there, for ever (KAFKA-16890 "
            "left such a start behind). Beside a stock broker with our tier the head is the tier's "
            "own, and a gap is SEG-02."
        ),
        example=(
            "Two overlapping copies expired together, and the start was set to 2000 where 3000 is the "
            "first offset that is left."
        ),
    ),
)
