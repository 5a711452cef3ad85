"""Why something is kept: one closed vocabulary for trim and expiry, for people, metrics and tests.

Owns the names. Refuses to rank them: whoever decides gives the first that holds, and nothing else stands
behind a `Keep`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(str, Enum):
    """Stable, for programs: they label metrics."""

    # of trim and of expiry
    OFF = "off"  # the policy does not ask for it
    UNLIMITED = "unlimited"  # it does, and keeps everything
    TABLE_DOUBTED = "table_doubted"  # behind, empty, or with records that cannot be read
    NOT_LEADING = "not_leading"  # the claim that stands is not this agent's
    HELD = "held"
    NOT_EXPIRED = "not_expired"
    AUDIT_WOULD_CONDEMN = "audit_would_condemn"  # the audit's own machine, asked before
    AT_FRONTIER = "at_frontier"  # all that is in the tier has gone, or may

    # of expiry
    KEEP_UNTIL = "keep_until"  # a restore asked for it
    TIMESTAMP_UNKNOWN = "timestamp_unknown"
    TIMESTAMP_IN_FUTURE = "timestamp_in_future"
    GRACE = "grace"  # readers may still be at it
    BLAST_LIMIT = "blast_limit"
    NOT_VERSIONED = "not_versioned"  # what is deleted in this bucket is gone for good
    TOPIC_UNKNOWN = "topic_unknown"  # nobody could say whether the topic is still there
    TOPIC_THERE = "topic_there"  # its deletion is on record, and the cluster has it

    # of trim
    CLAIM_UNREAD = "claim_unread"  # the topic's end was read before our own claim was in it
    EPOCH_UNCONFIRMED = "epoch_unconfirmed"
    SETTINGS_UNKNOWN = "settings_unknown"
    REPLICA_DOUBTED = "replica_doubted"  # some file of the leader's own cannot be read, or is not there
    REMOTE_STORAGE = "remote_storage"  # Kafka's own tier: DeleteRecords would delete the remote segments
    COMPACTED = "compacted"  # it is, or it was
    ANSWERS_TOO_OLD = "answers_too_old"
    EPOCHS_NOT_SAVED = "epochs_not_saved"  # trimming cuts the broker's history of epochs
    NOT_IN_TIER = "not_in_tier"  # the first local offset is in no finished copy of the lineage
    DIGEST_MISSING = "digest_missing"
    DIGEST_DIFFERS = "digest_differs"
    OBJECT_UNCONFIRMED = "object_unconfirmed"  # the store does not show the object that the record names
    CHANGED_MEANWHILE = "changed_meanwhile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Nothing is removed. `detail` is for people."""

    reason: Reason
    detail: str
