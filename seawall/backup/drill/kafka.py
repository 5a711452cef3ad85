"""The scratch topic of a drill: what a consumer is given of it, and its end.

Owns the consumer. Refuses to delete a topic whose name is not a scratch topic's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from backup.errors import BackupError
from tiering.cluster.quiet import QUIET
from tiering.log.batch import Record

SCRATCH = "seawall-drill-"
SILENCE_S = 60.0


@dataclass(kw_only=True, eq=False)
class ScratchTopicFailed(BackupError):
    """the scratch topic {topic} could not be {act}: {why}

    Nothing but this topic was touched; should it be there still, delete it.
    """

    topic: str
    act: str
    why: str


def consumed(config: Mapping[str, str], topic: str, partition: int) -> Iterator[Record]:
    """Every committed record, from the beginning to the end as it is now."""
    consumer = Consumer(
        cast(
            "dict[str, Any]",
            {
                **config,
                "group.id": "seawall-drill",
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
                "enable.partition.eof": "true",
                "auto.offset.reset": "earliest",
            },
        ),
        logger=QUIET,
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(SILENCE_S)
            if message is None:
                why = f"nothing came for {SILENCE_S:g} s"
                raise ScratchTopicFailed(topic=topic, act="read to its end", why=why)
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                raise ScratchTopicFailed(topic=topic, act="read to its end", why=error.str())
            headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
            offset = message.offset()
            assert offset is not None
            yield Record(offset, message.timestamp()[1], message.key(), message.value(), tuple(headers))
    finally:
        consumer.close()


def delete_topic(config: Mapping[str, str], topic: str) -> None:
    """The end of a scratch topic."""
    assert topic.startswith(SCRATCH), topic
    admin = AdminClient(dict(config), logger=QUIET)  # dropped before the answer, it would cancel the request
    for done in admin.delete_topics([topic]).values():
        try:
            done.result(SILENCE_S)
        except KafkaException as refused:
            error = refused.args[0]
            if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:  # it was never made
                raise ScratchTopicFailed(topic=topic, act="deleted", why=error.str()) from refused
