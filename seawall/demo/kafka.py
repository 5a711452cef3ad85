"""What the story asks of Kafka as any client would: to read a topic from its first offset on."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaException, TopicPartition

from seawall.local.kafka import SILENT

SILENCE_MAX_S = 60.0


def read_from(bootstrap: str, topic: str, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The records of `[offset, end)`, by a consumer with assign."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
            "check.crcs": "true",
        },
        logger=SILENT,
    )
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        heard_s, expected = time.monotonic(), offset
        while expected < end:
            message = consumer.poll(0.5)
            if message is None:
                if time.monotonic() - heard_s > SILENCE_MAX_S:
                    return
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            found, heard_s = message.offset(), time.monotonic()
            assert found is not None
            yield found, message.value() or b""
            expected = found + 1
    finally:
        consumer.close()


def first_offset(bootstrap: str, topic: str) -> int | None:
    """By the broker's own word; None while nobody leads."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"}, logger=SILENT)
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SILENCE_MAX_S)
    except KafkaException:
        return None
    finally:
        consumer.close()
    return int(low)
