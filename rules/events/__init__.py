"""Every kind of event: one frozen value a kind, named once; all else about events is derived from these.

    kind                   said when
    segment_rejected       a closed segment's bytes are not fit to leave the broker
    copy_started           the metadata topic holds COPY_STARTED, before the first object
    copy_finished          the metadata topic holds COPY_FINISHED: from here on the copy counts
    copy_failed            an attempt ended without COPY_FINISHED; what it left is named
    upload_stalled         a log's frontier did not move although there was something to copy
    retention_warning      the broker's own retention will reach the frontier before the upload does
    delete_started         the metadata topic holds DELETE_STARTED, before any object goes
    delete_finished        the metadata topic holds DELETE_FINISHED, after the last object went
    leadership_claimed     a new leader's agent has read its own claim back
    gap_recorded           the frontier may pass a hole, because the bytes are on no replica
    tier_state             what one table holds of a log, at one offset of the metadata topic
    tier_set               the same in full, record by record, where digests disagree
    trim_certified         what justifies a DeleteRecords, durable before the request
    trim_outcome           what came of it, read back from the broker
    record_refused         a record of the metadata topic that a table does not follow, and why

    segment_closed         the broker rolled: a segment's files take no more records
    segment_deleted_local  a closed segment's files left a directory that stays
    log_start_advanced     a replica's log start moved, up or down
    high_watermark         a replica's high watermark and log end, with changes and now and then
    truncated              a replica's log ends earlier than it did, in the same life
    replica_started        a new life of a replica began: a baseline, no change
    replica_removed        a replica's directory went as a whole, or its broker is not assigned any more
    epoch_started          a replica's epoch history has an entry more
    log_baseline           the whole state of one replica, at a start, after a gap, every six hours

    topic_created          a topic id is there that was not
    partitions_added       a topic has more logs
    topic_deleted          a topic id is there no more
    leader_changed         a partition has another leader, or the same in a new epoch
    isr_changed            other replicas are in sync than before
    replica_added          a broker was assigned a replica
    config_effective       one key's value in force, of a topic or a broker
    broker_started         a broker runs again, after a clean stop or not
    directory_offline      a log dir cannot be read: evidence is missing, not data

    policy_declared        one key of one table of the policy was declared
    operation_authorised   somebody allowed a deletion, for a while
    records_delete_requested  through Seawall, somebody asked for a deletion of records
    hold_placed            our agents neither trim nor delete in a range
    hold_released          they may again
    restored               a range was put back and read back
    scrubbed               one object was looked at
    inventory              a log's objects by a listing, against the metadata
    loss_accepted          somebody takes the loss of a range as it is

    heartbeat              the emitter lives, and how far it has counted
    evidence_gap           the emitter knows that it did not see part of a source
    emitter_closed         a command ends, having said so many events
    emitter_retired        another emitter will say nothing more

`base` has the shapes, `tiering`, `replicas`, `metadata`, `operators` and `emitters` the kinds by who can know
them. The wire form, docs/EVENTS.md and the test vectors are derived from the fields; a class's docstring says
when the kind is said and what it does not say.

Owns the names and fields, nothing else. Invariant: an event is a fact with its own time and id, complete in
itself; a retry repeats both. Ranges are half-open. No event carries an opinion.
"""

from __future__ import annotations

from rules.events.base import (
    ClusterEvent,
    Event,
    EventSink,
    EvidenceSink,
    LogEvent,
    PartitionMetadataEvent,
    ReplicaEvent,
    SegmentEvent,
    Source,
    TopicEvent,
)
from rules.events.emitters import (
    EmitterClosed,
    EmitterRetired,
    EvidenceGap,
    Heartbeat,
)
from rules.events.metadata import (
    BrokerStarted,
    ConfigEffective,
    ConfigResource,
    ConfigSource,
    DirectoryOffline,
    IsrChanged,
    LeaderChanged,
    PartitionsAdded,
    ReplicaAdded,
    TopicCreated,
    TopicDeleted,
)
from rules.events.operators import (
    HoldPlaced,
    HoldReleased,
    Inventory,
    LossAccepted,
    Operation,
    OperationAuthorised,
    PolicyDeclared,
    RecordsDeleteRequested,
    Restored,
    Scrubbed,
)
from rules.events.replicas import (
    BaselineOccasion,
    EpochStarted,
    HighWatermark,
    LogBaseline,
    LogStartAdvanced,
    ReplicaAppearance,
    ReplicaRemoval,
    ReplicaRemoved,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
    SegmentRemoval,
    TimestampBasis,
    Truncated,
)
from rules.events.tiering import (
    CopyFailed,
    CopyFinished,
    CopyStarted,
    DeleteCause,
    DeleteFinished,
    DeleteStarted,
    GapRecorded,
    LeadershipClaimed,
    RecordRefused,
    RetentionWarning,
    SegmentRejected,
    TierSet,
    TierState,
    TrimCertified,
    TrimOutcome,
    TrimResult,
    UploadStalled,
)
from rules.words import GapCause, RestoreTarget, ScrubDepth, ScrubOutcome

KINDS: tuple[type[Event], ...] = (
    SegmentRejected,
    CopyStarted,
    CopyFinished,
    CopyFailed,
    UploadStalled,
    RetentionWarning,
    DeleteStarted,
    DeleteFinished,
    LeadershipClaimed,
    GapRecorded,
    TierState,
    TierSet,
    TrimCertified,
    TrimOutcome,
    RecordRefused,
    SegmentClosed,
    SegmentDeletedLocal,
    LogStartAdvanced,
    HighWatermark,
    Truncated,
    ReplicaStarted,
    ReplicaRemoved,
    EpochStarted,
    LogBaseline,
    TopicCreated,
    PartitionsAdded,
    TopicDeleted,
    LeaderChanged,
    IsrChanged,
    ReplicaAdded,
    ConfigEffective,
    BrokerStarted,
    DirectoryOffline,
    PolicyDeclared,
    OperationAuthorised,
    RecordsDeleteRequested,
    HoldPlaced,
    HoldReleased,
    Restored,
    Scrubbed,
    Inventory,
    LossAccepted,
    Heartbeat,
    EvidenceGap,
    EmitterClosed,
    EmitterRetired,
)

__all__ = [
    "KINDS",
    "BaselineOccasion",
    "BrokerStarted",
    "ClusterEvent",
    "ConfigEffective",
    "ConfigResource",
    "ConfigSource",
    "CopyFailed",
    "CopyFinished",
    "CopyStarted",
    "DeleteCause",
    "DeleteFinished",
    "DeleteStarted",
    "DirectoryOffline",
    "EmitterClosed",
    "EmitterRetired",
    "EpochStarted",
    "Event",
    "EventSink",
    "EvidenceGap",
    "EvidenceSink",
    "GapCause",
    "GapRecorded",
    "Heartbeat",
    "HighWatermark",
    "HoldPlaced",
    "HoldReleased",
    "Inventory",
    "IsrChanged",
    "LeaderChanged",
    "LeadershipClaimed",
    "LogBaseline",
    "LogEvent",
    "LogStartAdvanced",
    "LossAccepted",
    "Operation",
    "OperationAuthorised",
    "PartitionMetadataEvent",
    "PartitionsAdded",
    "PolicyDeclared",
    "RecordRefused",
    "RecordsDeleteRequested",
    "ReplicaAdded",
    "ReplicaAppearance",
    "ReplicaEvent",
    "ReplicaRemoval",
    "ReplicaRemoved",
    "ReplicaStarted",
    "RestoreTarget",
    "Restored",
    "RetentionWarning",
    "ScrubDepth",
    "ScrubOutcome",
    "Scrubbed",
    "SegmentClosed",
    "SegmentDeletedLocal",
    "SegmentEvent",
    "SegmentRejected",
    "SegmentRemoval",
    "Source",
    "TierSet",
    "TierState",
    "TimestampBasis",
    "TopicCreated",
    "TopicDeleted",
    "TopicEvent",
    "TrimCertified",
    "TrimOutcome",
    "TrimResult",
    "Truncated",
    "UploadStalled",
]
