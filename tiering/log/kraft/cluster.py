"""Tables of the metadata records about the cluster as a whole, and about the log itself.

How a table is written: `tiering.log.schema`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from tiering.log.schema import (
    ArrayOf,
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Struct,
    Tag,
    UuidField,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    """A feature runs at this level from here on; 0: no longer."""

    api_key: ClassVar[int] = 12
    versions: ClassVar[range] = range(1)

    name: String
    feature_level: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """A broker was given a block of producer ids, up to `next_producer_id`."""

    api_key: ClassVar[int] = 15
    versions: ClassVar[range] = range(1)

    broker_id: Int32
    broker_epoch: Int64
    next_producer_id: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntity:
    """Whom a quota binds; a name of None is the default."""

    entity_type: String
    entity_name: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord:
    """A quota was set or removed."""

    api_key: ClassVar[int] = 14
    versions: ClassVar[range] = range(1)

    entity: Annotated[tuple[QuotaEntity, ...], ArrayOf(Struct(QuotaEntity))]
    key: String
    value: Float64
    remove: Bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord:
    """An access right was granted or denied; the numbers are those of Kafka's AdminClient."""

    api_key: ClassVar[int] = 18
    versions: ClassVar[range] = range(1)

    id: UuidField
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord:
    """An access right was taken back."""

    api_key: ClassVar[int] = 19
    versions: ClassVar[range] = range(1)

    id: UuidField


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMigrationStateRecord:
    """Where a migration from ZooKeeper stood, in logs older than Kafka 4."""

    api_key: ClassVar[int] = 21
    versions: ClassVar[range] = range(1)

    zk_migration_state: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord:
    """The active controller is alive."""

    api_key: ClassVar[int] = 20
    versions: ClassVar[range] = range(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord:
    """What follows counts only once an EndTransactionRecord comes."""

    api_key: ClassVar[int] = 23
    versions: ClassVar[range] = range(1)

    name: Annotated[NullableString, Tag(0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord:
    """What came since BeginTransactionRecord counts."""

    api_key: ClassVar[int] = 24
    versions: ClassVar[range] = range(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord:
    """What came since BeginTransactionRecord does not count."""

    api_key: ClassVar[int] = 25
    versions: ClassVar[range] = range(1)

    reason: Annotated[NullableString, Tag(0)] = None
