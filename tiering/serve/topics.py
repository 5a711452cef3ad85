"""Answers to ApiVersions and Metadata: what there is, with us in the place of every broker.

Owns the replacement of names: no answer has a real broker's address or id (KAFKA_FACTS 22). A partition whose
leader is away is said to be led by us all the same if some of it is in the store: that much can be read.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from tiering.log.wire import ZERO_UUID
from tiering.serve.client import Client
from tiering.serve.protocol.apis import API_VERSIONS, APIS, METADATA, Fate
from tiering.serve.protocol.asking import (
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataResponse,
    MetadataTopic,
)
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.session import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from tiering.serve.service import NODE_IDS_FROM, Service


async def api_versions(
    service: Service, client: Client, request: ApiVersionsRequest, version: int
) -> ApiVersionsResponse:
    """What is answered here, and of what is forwarded what the brokers know."""
    client.software = f"{request.client_software_name} {request.client_software_version}".strip()[:80]
    upstream = await service.cluster.any_own()
    listed = []
    for api in APIS.values():
        versions = api.versions
        if api.fate is Fate.FORWARDED:
            theirs = upstream.versions.get(api.key, range(0))
            versions = range(max(versions.start, theirs.start), min(versions.stop, theirs.stop))
        if api.fate is not Fate.ASKED and versions:
            listed.append(
                ApiVersion(api_key=api.key, min_version=versions.start, max_version=versions.stop - 1)
            )
    features = upstream.features
    return ApiVersionsResponse(
        error_code=Code.NONE,
        api_keys=tuple(listed),
        supported_features=features.supported_features if features else (),
        finalized_features_epoch=features.finalized_features_epoch if features else -1,
        finalized_features=features.finalized_features if features else (),
    )


def version_not_known() -> ApiVersionsResponse:
    """To an ApiVersions that is too new: in version 0, so that the client can read it and try again."""
    versions = APIS[API_VERSIONS].versions
    only = ApiVersion(api_key=API_VERSIONS, min_version=versions.start, max_version=versions.stop - 1)
    return ApiVersionsResponse(error_code=Code.UNSUPPORTED_VERSION, api_keys=(only,))


async def metadata(
    service: Service, client: Client, held: ExitStack, request: MetadataRequest, version: int
) -> MetadataResponse:
    """The brokers' answer to the client's own question, with us in their place. Nothing is made by asking."""
    upstream = await client.any_upstream()
    topics = None if version == 0 and request.topics == () else request.topics
    asked = replace(request, topics=topics, allow_auto_topic_creation=False)
    found: MetadataResponse = await upstream.ask(APIS[METADATA], asked, held=held)
    service.cluster.learn(found)
    return replace(
        found,
        brokers=tuple(
            MetadataBroker(node_id=NODE_IDS_FROM + number, host=node.host, port=node.port)
            for number, node in enumerate(service.nodes)
        ),
        controller_id=NODE_IDS_FROM,
        topics=tuple(_with_us(service, topic, version) for topic in found.topics),
    )


def _with_us(service: Service, topic: MetadataTopic, version: int) -> MetadataTopic:
    name = topic.name if topic.name is not None or version >= 12 else ""
    partitions = tuple(
        _led_by_us(service, topic.name or "", topic.topic_id, each) for each in topic.partitions
    )
    return replace(topic, name=name, partitions=partitions)


def _led_by_us(service: Service, topic: str, topic_id: str, found: MetadataPartition) -> MetadataPartition:
    is_led = found.leader_id >= 0
    in_store = topic_id != ZERO_UUID and service.tier.log(topic_id, found.partition_index) is not None
    if not is_led and not in_store:
        return replace(found, replica_nodes=(), isr_nodes=(), offline_replicas=())
    node = service.node_of(topic, found.partition_index)
    return replace(
        found,
        error_code=Code.NONE if in_store else found.error_code,
        leader_id=node,
        replica_nodes=(node,),
        isr_nodes=(node,),
        offline_replicas=(),
    )
