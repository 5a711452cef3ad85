"""Tables of the metadata records about brokers and controllers: who runs, since when, on which directories.

How a table is written: `tiering.log.schema`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from tiering.log.schema import (
    ArrayOf,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    NullableUuids,
    Since,
    String,
    Struct,
    Tag,
    Uint16,
    UuidField,
    Uuids,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a broker or controller listens."""

    name: String
    host: String
    port: Uint16
    security_protocol: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeature:
    """The levels of a feature that a broker or controller can run."""

    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    """A broker process came up: a new incarnation, a new epoch, these log directories."""

    api_key: ClassVar[int] = 0
    versions: ClassVar[range] = range(5)

    broker_id: Int32
    is_migrating_zk_broker: Annotated[Bool, Since(2)] = False
    incarnation_id: UuidField
    broker_epoch: Int64
    end_points: Annotated[tuple[Endpoint, ...], ArrayOf(Struct(Endpoint))]
    features: Annotated[tuple[SupportedFeature, ...], ArrayOf(Struct(SupportedFeature))]
    rack: NullableString
    fenced: Bool
    in_controlled_shutdown: Annotated[Bool, Since(1)] = False
    log_dirs: Annotated[Uuids, Since(3), Tag(0)] = ()
    cordoned_log_dirs: Annotated[NullableUuids, Since(4), Tag(1)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord:
    """A broker was taken out of the cluster."""

    api_key: ClassVar[int] = 1
    versions: ClassVar[range] = range(1)

    broker_id: Int32
    broker_epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    """A registration changed. `fenced`: 1 now, -1 no longer, 0 as it was; empty `log_dirs`: as they were."""

    api_key: ClassVar[int] = 17
    versions: ClassVar[range] = range(4)

    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[Int8, Tag(0)] = 0
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0
    log_dirs: Annotated[Uuids, Since(2), Tag(2)] = ()
    cordoned_log_dirs: Annotated[NullableUuids, Since(3), Tag(3)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord:
    """A broker was fenced (written before BrokerRegistrationChangeRecord existed)."""

    api_key: ClassVar[int] = 7
    versions: ClassVar[range] = range(1)

    id: Int32
    epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord:
    """A broker was unfenced (written before BrokerRegistrationChangeRecord existed)."""

    api_key: ClassVar[int] = 8
    versions: ClassVar[range] = range(1)

    id: Int32
    epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord:
    """A controller process came up."""

    api_key: ClassVar[int] = 27
    versions: ClassVar[range] = range(1)

    controller_id: Int32
    incarnation_id: UuidField
    zk_migration_ready: Bool
    end_points: Annotated[tuple[Endpoint, ...], ArrayOf(Struct(Endpoint))]
    features: Annotated[tuple[SupportedFeature, ...], ArrayOf(Struct(SupportedFeature))]
