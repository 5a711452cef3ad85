"""Findings as runs leave them, made by hand, and what is asked of a cluster around a hold."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    ConfigResource,
    ResourceType,
)

from rules.identity import LogId
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.kafka import admin_client
from seawall.settings import KafkaSettings, S3Settings, Settings
from tests.faults.test_whole_system import replayed
from tests.seawall.cli import calling
from tiering.segments.records import LogRecord


def finding(log: LogId, **given: Any) -> dict[str, Any]:
    """A critical loss of a log's head, as `audit_findings` has it."""
    return {
        "finding_id": "f" * 32,
        "rule_id": "START-02",
        "severity": "C",
        "subject": f"{log.cluster_id}/{log.topic_id}/{log.partition}",
        "anchor": "0",
        "ranges": [[0, 100]],
        "status": "open",
        "opened_ms": 1_000,
        "ended_ms": None,
        "note": "the log's start rose, and nothing justifies it",
        "incident": "f" * 32,
        "parent": None,
        "recoverable_offsets": 0,
        "lost_offsets": 100,
        "held_by": [],
        "suppressed_by": None,
        **given,
    }


def settings_of(cluster: LocalCluster, bucket: LocalBucket, prefix: str) -> Settings:
    at = bucket.address
    return Settings(
        kafka=KafkaSettings(bootstrap=cluster.bootstrap),
        s3=S3Settings(bucket=at.bucket, prefix=prefix, endpoint_url=at.endpoint_url, region=at.region),
    )


def environ_of(cluster: LocalCluster, bucket: LocalBucket, prefix: str, state_home: str) -> dict[str, str]:
    """Of a verb as a user calls it."""
    return calling.environ_of(cluster, bucket.address, prefix) | {
        "XDG_STATE_HOME": state_home,
        "COLUMNS": "200",
    }


def record_of(cluster: LocalCluster, topic: str) -> LogRecord | None:
    """The log's record, by the metadata topic as it is now."""
    table = replayed(cluster)
    for log in table.logs():
        view = table.view(log)
        if view is not None and view.record is not None and view.record.topic == topic:
            return view.record
    return None


def first_local(cluster: LocalCluster, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": topic})
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        return int(low)
    finally:
        consumer.close()


def own_config(cluster: LocalCluster, topic: str, name: str) -> str | None:
    """What the topic itself says; None where it leaves it to the brokers."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_client(cluster.bootstrap)
    entry = admin.describe_configs([resource])[resource].result(30)[name]
    return str(entry.value) if entry.source == 1 else None  # DYNAMIC_TOPIC_CONFIG
