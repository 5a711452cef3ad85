"""The records of KRaft's metadata log, `__cluster_metadata-0`, and of its snapshots, as values.

Every record type that Kafka 4.3 knows, in every version it knows; their tables stand in `topics`, `nodes`
and `cluster`, and the frame around them is described in `tiering.log.framed`. Snapshots
(`<offset>-<epoch>.checkpoint`) and `bootstrap.checkpoint` hold the same records in the same batches; what
the batches' control records say is read by `control`.

Refuses: to read SCRAM credentials and delegation tokens, which are counted as skipped; to say what is
committed (no file says it: that takes the quorum's high watermark); to fold the records into a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from tiering.log.framed import FramedMessage, SkippedRecord, read_framed
from tiering.log.kraft.cluster import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    ZkMigrationStateRecord,
)
from tiering.log.kraft.nodes import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from tiering.log.kraft.topics import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tiering.log.wire import Buffer

MetadataRecord: TypeAlias = (
    TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | ClearElrRecord
    | ConfigRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | RegisterControllerRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | ClientQuotaRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | ZkMigrationStateRecord
    | NoOpRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
)
METADATA_RECORDS: Mapping[int, type[FramedMessage]] = {
    record.api_key: record for record in MetadataRecord.__args__
}
# DelegationTokenRecord, UserScramCredentialRecord, and their removals.
CREDENTIAL_RECORDS = frozenset({10, 11, 22, 26})


def read_metadata_record(value: Buffer) -> MetadataRecord | SkippedRecord:
    """The metadata record that a record's value holds, or why it was not read."""
    return cast(
        "MetadataRecord | SkippedRecord", read_framed(value, METADATA_RECORDS, withheld=CREDENTIAL_RECORDS)
    )
