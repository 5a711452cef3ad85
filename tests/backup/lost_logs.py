"""Logs that were tiered for real and lost for real, and the pieces that put them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # its stubs forget it

from backup.plan import Asked, AskedBy, Fingerprints, Origin, Piece, Plan, PlanBody, Range
from backup.plan.codec import plan_of
from rules.events import RestoreTarget
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.cluster.produce import Writer, Written, idempotent, texts, transactional, written
from tiering.log.batch import Record
from tiering.segments.records import SegmentRecord

DEADLINE_S = 60.0
# Of a broker that was elected a moment ago, and has not heard of it.
YOUNG = frozenset(
    {KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION}
)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def pieces_of(records: Iterable[SegmentRecord]) -> tuple[Piece, ...]:
    """A piece for each copy, all of it."""
    return tuple(
        Piece(start=each.base_offset, end=each.covered_end, origin=Origin.TIER, record=each)
        for each in records
    )


def plan_for(pieces: tuple[Piece, ...], target: RestoreTarget) -> Plan:
    """A plan for all that the pieces hold."""
    whole = Range(pieces[0].start, pieces[-1].end)
    body = PlanBody(
        log=pieces[0].record.log,
        topic=pieces[0].record.topic,
        target=target,
        made_at_ms=0,
        asked=Asked(by=AskedBy.ALL, text="all", range=whole),
        range=whole,
        joins_at=whole.end,
        pieces=pieces,
        lost=(),
        passes_gaps=False,
        keep_for_ms=0,
        requests=0,
        estimated_ms=0,
        fingerprints=Fingerprints(bucket="", log="", policy=""),
    )
    return plan_of(body)


def write_all_kinds(cluster: LocalCluster, topic: str, *, rounds: int = 2, name: str = "") -> Written:
    """Every codec; headers, nulls and old times; transactions that commit and abort, all kinds mixed."""
    writers: list[Writer] = []
    name = name or topic
    for codec in CODECS:
        plain = idempotent(cluster, topic, f"{name}-{codec}", **{"compression.type": codec})
        for number, text in enumerate(texts(60 * rounds, seed=len(writers))):
            headers = (("n", str(number).encode()), ("empty", None)) if number % 3 == 0 else ()
            plain.send(
                text if number % 7 else None,
                key=None if number % 5 == 0 else b"k%d" % (number % 11),
                timestamp_ms=1_700_000_000_000 + number * 1000 if number % 4 else None,
                headers=headers,
            )
        plain.flush()
        writers.append(plain)
    for turn in range(rounds):
        one = transactional(cluster, topic, f"{name}-txn-{turn}")
        two = transactional(cluster, topic, f"{name}-txz-{turn}", **{"compression.type": "zstd"})
        one.begin()
        one.send_all(texts(60, seed=turn))
        two.begin()
        two.send_all(texts(60, seed=turn))
        one.send_all(texts(60, seed=turn + 100))
        one.commit() if turn % 2 else one.abort()
        writers[0].send_all(texts(20, seed=turn))
        two.abort() if turn % 2 else two.commit()
        writers += [one, two]
    return written(topic, writers)


def consumed(
    cluster: LocalCluster,
    topic: str,
    partition: int = 0,
    *,
    isolation: str = "read_uncommitted",
    end: int | None = None,
) -> list[Record]:
    """What librdkafka gives a client of the partition from its beginning, below `end`."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "none",
            "enable.auto.commit": "false",
            "isolation.level": isolation,
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
        },
        logger=kafka.SILENT,
    )
    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=DEADLINE_S)
    consumer.assign([TopicPartition(topic, partition, low)])
    found: list[Record] = []
    while True:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"nothing came for {DEADLINE_S} s"
        offset = message.offset()
        if message.error() is not None or offset is None or (end is not None and offset >= end):
            break
        pairs = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        found.append(Record(offset, message.timestamp()[1], message.key(), message.value(), tuple(pairs)))
    consumer.close()
    return found


def earliest(cluster: LocalCluster, topic: str, partition: int = 0) -> int:
    """Where the log begins. A broker that has just begun to lead may hear of it later than we do."""
    admin = kafka.admin_client(cluster.bootstrap)
    at = TopicPartition(topic, partition)
    found: list[int] = []

    def is_told() -> bool:
        spec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        try:
            found.append(int(admin.list_offsets({at: spec})[at].result(DEADLINE_S).offset))
        except KafkaException as refused:
            if not refused.args[0].retriable() and refused.args[0].code() not in YOUNG:
                raise
            return False
        return True

    wait_until(is_told, name=topic, wanted="its first offset", deadline_s=DEADLINE_S)
    return found[-1]


def delete_records(cluster: LocalCluster, topic: str, offset: int) -> None:
    admin = kafka.admin_client(cluster.bootstrap)
    at = TopicPartition(topic, 0, offset)
    admin.delete_records([at])[TopicPartition(topic, 0)].result(DEADLINE_S)


def trim_by_size(cluster: LocalCluster, topic: str, keep_bytes: int) -> int:
    """Let retention take what is above so many bytes; the log's start then. Retention is off again after."""
    before = earliest(cluster, topic)
    kafka.set_config(
        cluster.bootstrap, topic, {"retention.bytes": str(keep_bytes), "file.delete.delay.ms": "0"}
    )
    wait_until(
        lambda: earliest(cluster, topic) > before, name=topic, wanted="retention", deadline_s=DEADLINE_S
    )
    kafka.set_config(cluster.bootstrap, topic, {"retention.bytes": "-1"})
    return earliest(cluster, topic)


def compare(found: Sequence[Record], wanted: Sequence[Record]) -> None:
    """The same records, told by the first that differs and not by thousands."""
    assert [each.offset for each in found] == [each.offset for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one == other
