"""What is committed stays: the rules HWM-*, EPO-01 and META-*."""

from __future__ import annotations

from rules.catalogue.rule import ALL, OURS, Grace, Rule, Severity, Sort

RULES = (
    Rule(
        id="META-01",
        invariant=("Leader and follower tables of the tier agree at the same metadata offset."),
        evidence=("tier_state",),
        severity=Severity.ERROR,
        rises_when="the odd one leads",
        sort=Sort.STATE,
        grace=Grace.NONE,
        applies=OURS,
        remedy="Rebuild its table from the topic.",
        why=(
            "A table that lacks a segment serves a hole, and trims by what it believes. Digests "
            "compare at equal offsets only, so that a table that lags is not one that is wrong."
        ),
        example="Broker 2's table lacks segment 4 although it has read past it.",
    ),
    Rule(
        id="META-02",
        invariant="One segment id has one content.",
        evidence=("tier_set",),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=OURS,
        remedy="Quarantine both, and find out which the bucket holds.",
        why=("Two tables that hold different records under one id cannot both be what was written."),
        example="Broker 3 holds segment 4's id with another end offset.",
    ),
    Rule(
        id="HWM-01",
        invariant=(
            "The log's high watermark, over replicas and earlier epochs, never goes back, elections included."
        ),
        evidence=("high_watermark", "log_baseline", "leader_changed"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.WATERMARK,
        applies=ALL,
        remedy=("Find the replica, or the tier on the old lineage, that holds the suffix."),
        why=(
            "What was acknowledged was lost. A new leader's watermark trails by a fetch (KIP-207), so "
            "that it must be read low twice. That an unclean election was enabled, or declared, is a "
            "note and no excuse."
        ),
        example=("10500 was published; since the unclean election the leader says 10200."),
    ),
    Rule(
        id="HWM-02",
        invariant=(
            "Within one incarnation a replica does not truncate below a high watermark that it published."
        ),
        evidence=("truncated", "high_watermark"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Recover it from the old leader's disk before that is overwritten.",
        why=(
            "Truncation takes what was not committed. A replica that was away and comes back cuts its "
            "own tail, which it never published as committed."
        ),
        example="Broker 2 published 10500, and its log now ends at 10200.",
    ),
    Rule(
        id="HWM-03",
        invariant=("High watermark and log end rise only over offsets that records were seen to fill."),
        evidence=("high_watermark",),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Stop the broker; restore what was there.",
        why=(
            "A rise with no bytes behind it is fabricated: a broker that loads a checkpoint above its "
            "log's end wipes the log and lifts watermark and end to it."
        ),
        example=("The watermark rose from 30000 to 99999, and there is not a byte on disk."),
    ),
    Rule(
        id="EPO-01",
        invariant=(
            "Epochs strictly rise, each has one leader, and none begins below a high watermark "
            "published in an earlier one."
        ),
        evidence=("leader_changed", "epoch_started", "high_watermark"),
        severity=Severity.CRITICAL,
        sort=Sort.HAPPENED,
        grace=Grace.NONE,
        applies=ALL,
        remedy="Fence the broker that should not have led.",
        why=(
            "A start below an earlier epoch's start is normal: a leader that died before it "
            "replicated began higher. Below what was committed, it overwrites."
        ),
        example="Epoch 6 begins at 10200, and 10500 was published in epoch 5.",
    ),
)
