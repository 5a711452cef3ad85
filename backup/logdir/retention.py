"""Whether brokers would delete again what is put back into their log dirs (pure).

What counts is what is in effect on each broker that holds a replica: topic, dynamic defaults,
server.properties (KAFKA_FACTS 17). With Kafka's own tiered storage on, local.retention.* is what takes files
from the disk.

Owns the judgement. Refuses to be exact about sizes: what the log has and what is put back must fit together,
as the log grows on.

Invariant: without a complaint no retention in effect takes a segment of the range before `until_ms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tiering.cluster.settings import TopicSettings
from tiering.segments.records import SegmentRecord

KEEPING = {"retention.ms": "-1", "retention.bytes": "-1"}


def complaints(
    settings: Mapping[int, TopicSettings],
    records: Iterable[SegmentRecord],
    *,
    live_bytes: int | None,
    until_ms: int,
) -> Iterator[str]:
    """By broker, what would delete the range."""
    listed = list(records)
    oldest_ms = min((each.max_timestamp_ms for each in listed if each.max_timestamp_ms >= 0), default=None)
    size_bytes = (live_bytes or 0) + sum(each.size_bytes for each in listed)
    for broker_id, each in sorted(settings.items()):
        if each.is_compacted:
            yield f"on broker {broker_id} the topic is compacted: the cleaner would change what is put back"
        if oldest_ms is not None and 0 <= each.local_ms < until_ms - oldest_ms:
            yield f"on broker {broker_id} retention is {each.local_ms} ms, and the oldest segment is older"
        if live_bytes is None and each.local_bytes >= 0:
            yield f"on broker {broker_id} retention is {each.local_bytes} bytes, and the log grows against it"
        elif 0 <= each.local_bytes < size_bytes:
            yield (
                f"on broker {broker_id} retention is {each.local_bytes} bytes, and the log would have "
                f"{size_bytes}"
            )
