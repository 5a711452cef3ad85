"""What a cluster is like, to be compared before and after; and what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from seawall.local import kafka
from tiering.cluster.quorum import messages

ANSWER_S = 30.0
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]


def state(bootstrap: str) -> dict[str, Any]:
    """Topics with partitions and replicas, every setting of topics and brokers, offsets, groups and ACLs."""
    admin = kafka.admin_client(bootstrap)
    metadata = admin.list_topics(timeout=ANSWER_S)
    parts = [(name, number) for name, topic in metadata.topics.items() for number in topic.partitions]
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in metadata.topics]
    resources += [ConfigResource(ResourceType.BROKER, str(each)) for each in metadata.brokers]
    configs = admin.describe_configs(resources) if resources else {}
    return {
        "topics": {
            name: {number: (each.replicas, each.isrs) for number, each in topic.partitions.items()}
            for name, topic in metadata.topics.items()
        },
        "settings": {
            (str(resource.restype), resource.name): {
                name: (entry.value, entry.source) for name, entry in future.result(ANSWER_S).items()
            }
            for resource, future in configs.items()
        },
        "ends": _offsets(admin, parts, LATEST),
        "starts": _offsets(admin, parts, EARLIEST),
        "groups": sorted(each.group_id for each in admin.list_consumer_groups().result(ANSWER_S).valid),
        "acls": acls(admin),
    }


def _offsets(
    admin: AdminClient, parts: list[tuple[str, int]], spec: OffsetSpec
) -> dict[tuple[str, int], int]:
    from confluent_kafka import TopicPartition

    if not parts:
        return {}
    futures = admin.list_offsets({TopicPartition(*each): spec for each in parts})
    return {(each.topic, each.partition): future.result(ANSWER_S).offset for each, future in futures.items()}


def acls(admin: AdminClient) -> list[str] | None:
    """None where brokers have no authorizer."""
    anyone: Any = None  # its stubs want a text
    every = AclBindingFilter(
        ResourceType.ANY,
        anyone,
        ResourcePatternType.ANY,
        anyone,
        anyone,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        return sorted(map(str, admin.describe_acls(every).result(ANSWER_S)))
    except KafkaException:
        return None


class Asked:
    """Names of the requests that clients sent, librdkafka's by its own log, ours by their keys."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: set[int] = set()
        request: Callable[..., bytes] = messages.request

        def noted(api_key: int, *rest: Any, **more: Any) -> bytes:
            self.keys.add(api_key)
            return request(api_key, *rest, **more)

        monkeypatch.setattr(messages, "request", noted)
        for module in ("seawall.init.kafka", "tiering.cluster.kafka"):
            monkeypatch.setattr(f"{module}.AdminClient", _loud)

    def names(self, stderr: str) -> set[str]:
        return set(re.findall(r"Sent (\w+)Request", stderr))


def _loud(settings: Mapping[str, Any], **_: Any) -> AdminClient:
    """Says every request on standard error: without a logger, librdkafka does."""
    return AdminClient({**settings, "debug": "protocol", "log_level": 7})
