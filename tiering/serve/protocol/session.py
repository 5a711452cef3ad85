"""The tables of what a client asks of an endpoint as such: what it knows, who it is, who coordinates a group.

FindCoordinator   10   versions 0-6   flexible from 3
SaslHandshake     17   versions 0-1   never flexible
ApiVersions       18   versions 0-4   flexible from 3; its answer's header never is (KIP-511)
InitProducerId    22   versions 0-6   flexible from 2; only ever refused
DescribeAcls      29   versions 1-3   flexible from 2; asked by us, never answered
SaslAuthenticate  36   versions 0-2   flexible from 2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tiering.log.schema import (
    ArrayOf,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    Primitive,
    Since,
    String,
    Struct,
    Tag,
)
from tiering.log.wire import read_compact_string
from tiering.serve.protocol.forms import Bytes, Until

_STRING = Primitive("string", read_compact_string, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    """Which requests are known, and who asks."""

    client_software_name: Annotated[String, Since(3)] = ""
    client_software_version: Annotated[String, Since(3)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    """The versions of one request."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeature:
    """Which versions of a feature a broker could have."""

    name: Annotated[String, Since(3)] = ""
    min_version: Annotated[Int16, Since(3)] = 0
    max_version: Annotated[Int16, Since(3)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeature:
    """Which versions of a feature the cluster has agreed on."""

    name: Annotated[String, Since(3)] = ""
    max_version_level: Annotated[Int16, Since(3)] = 0
    min_version_level: Annotated[Int16, Since(3)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    """Which requests are known."""

    error_code: Int16
    api_keys: Annotated[tuple[ApiVersion, ...], ArrayOf(Struct(ApiVersion))]
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    supported_features: Annotated[
        tuple[SupportedFeature, ...], ArrayOf(Struct(SupportedFeature)), Since(3), Tag(0)
    ] = ()
    finalized_features_epoch: Annotated[Int64, Since(3), Tag(1)] = -1
    finalized_features: Annotated[
        tuple[FinalizedFeature, ...], ArrayOf(Struct(FinalizedFeature)), Since(3), Tag(2)
    ] = ()
    zk_migration_ready: Annotated[Bool, Since(3), Tag(3)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest:
    """Who coordinates these groups (type 0) or transactions (1)."""

    key: Annotated[String, Until(3)] = ""
    key_type: Annotated[Int8, Since(1)] = 0
    coordinator_keys: Annotated[tuple[str, ...], ArrayOf(_STRING), Since(4)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """Who coordinates one of them."""

    key: Annotated[String, Since(4)] = ""
    node_id: Annotated[Int32, Since(4)] = -1
    host: Annotated[String, Since(4)] = ""
    port: Annotated[Int32, Since(4)] = -1
    error_code: Annotated[Int16, Since(4)] = 0
    error_message: Annotated[NullableString, Since(4)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    """Who coordinates."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Annotated[Int16, Until(3)] = 0
    error_message: Annotated[NullableString, Since(1), Until(3)] = None
    node_id: Annotated[Int32, Until(3)] = -1
    host: Annotated[String, Until(3)] = ""
    port: Annotated[Int32, Until(3)] = -1
    coordinators: Annotated[tuple[Coordinator, ...], ArrayOf(Struct(Coordinator)), Since(4)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    """An identity for a producer."""

    transactional_id: NullableString
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, Since(3)] = -1
    producer_epoch: Annotated[Int16, Since(3)] = -1
    enable2_pc: Annotated[Bool, Since(6)] = False
    keep_prepared_txn: Annotated[Bool, Since(6)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse:
    """An identity for a producer."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16 = -1
    ongoing_txn_producer_id: Annotated[Int64, Since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, Since(6)] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeRequest:
    """The mechanism that the client wants."""

    mechanism: String


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeResponse:
    """The mechanisms that there are."""

    error_code: Int16
    mechanisms: Annotated[tuple[str, ...], ArrayOf(_STRING)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateRequest:
    """What the mechanism says."""

    auth_bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateResponse:
    """What the mechanism says in turn."""

    error_code: Int16
    error_message: NullableString = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, Since(1)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsRequest:
    """A filter: what fits all of it is answered."""

    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Annotated[Int8, Since(1)] = 3
    principal_filter: NullableString = None
    host_filter: NullableString = None
    operation: Int8
    permission_type: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """Who may, or may not, do what from where."""

    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class AclResource:
    """What it is that may be done to."""

    resource_type: Int8
    resource_name: String
    pattern_type: Annotated[Int8, Since(1)] = 3
    acls: Annotated[tuple[Acl, ...], ArrayOf(Struct(Acl))]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResponse:
    """What fits the filter."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: NullableString = None
    resources: Annotated[tuple[AclResource, ...], ArrayOf(Struct(AclResource))]
