"""Hard cases of records and batches, on one broker: codecs, headers, nulls, sizes, timestamps, sequences.

Each function makes its own topic, named in its docstring, and returns what it wrote.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from seawall.local.broker import LocalCluster
from seawall.local.kafka import set_config
from tests.cluster.produce import (
    Headers,
    Writer,
    Written,
    create_topic,
    idempotent,
    texts,
    written,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# librdkafka's own range; snappy and none have no levels.
LEVELS: Mapping[str, tuple[int, ...]] = {
    "none": (-1,),
    "gzip": (-1, 1, 9),
    "snappy": (-1,),
    "lz4": (-1, 0, 12),
    "zstd": (-1, 1, 12),
}
LONG_MAX = 2**63 - 1
ANY_TIMESTAMP = {
    "message.timestamp.before.max.ms": str(LONG_MAX),
    "message.timestamp.after.max.ms": str(LONG_MAX),
}


def codec_of_client(cluster: LocalCluster, codec: str) -> Written:
    """`codec-<name>`: batches compressed by librdkafka, at several levels and batch sizes."""
    topic = f"codec-{codec}"
    create_topic(cluster, topic)
    writers = []
    for level in LEVELS[codec]:
        for batch_records in (1, 10, 60):
            settings: dict[str, str | int] = {
                "compression.type": codec,
                "compression.level": level,
                "batch.num.messages": batch_records,
            }
            writer = Writer(cluster, topic, f"{codec}-{level}-{batch_records}", settings)
            writer.send_all(texts(max(12, batch_records), seed=level))
            writers.append(writer)
    return written(topic, writers, {"codec": codec})


def codec_of_broker(cluster: LocalCluster, codec: str) -> Written:
    """`codec-<name>-java`: sent uncompressed, compressed by the broker's Java writers.

    They frame snappy and lz4 in their own way, so both are needed.
    """
    topic = f"codec-{codec}-java"
    wanted = "uncompressed" if codec == "none" else codec
    create_topic(cluster, topic, segment_bytes=48 * 1024, config={"compression.type": wanted})
    # The broker rewrites only what comes in another codec.
    sent_as = "gzip" if codec == "none" else "none"
    writer = Writer(cluster, topic, "client", {"compression.type": sent_as})
    writer.send_all(texts(150))
    writer.send_all(texts(300, size_bytes=3000))
    return written(topic, [writer], {"codec": codec})


def codecs_in_one_segment(cluster: LocalCluster) -> Written:
    """`codec-mixed`: every codec side by side, and bytes that no codec makes smaller."""
    topic = "codec-mixed"
    create_topic(cluster, topic, segment_bytes=None)
    chance = random.Random(11)
    writers = []
    for codec in CODECS:
        writer = Writer(cluster, topic, codec, {"compression.type": codec})
        writer.send_all(texts(30))
        writer.send_all([chance.randbytes(500) for _ in range(10)])
        writers.append(writer)
    return written(topic, writers)


def large_records(cluster: LocalCluster) -> Written:
    """`large-records`: values of 0 bytes to 900 kB, so that every varint has several lengths."""
    topic = "large-records"
    create_topic(cluster, topic, segment_bytes=1024 * 1024)
    sizes = (0, 1, 63, 64, 8191, 8192, 100_000, 900_000)
    writers = []
    for codec in CODECS:
        writer = Writer(cluster, topic, codec, {"compression.type": codec})
        for size_bytes in sizes:
            writer.send_all(texts(1, size_bytes=size_bytes, seed=size_bytes), key=b"k" * (size_bytes % 300))
        writers.append(writer)
    return written(topic, writers)


def headers(cluster: LocalCluster) -> Written:
    """`headers`: none, one, many, empty and null values, empty and repeated keys, keys that are not ASCII."""
    topic = "headers"
    create_topic(cluster, topic)
    variants: list[Headers] = [
        (),
        (("one", b"1"),),
        (("null", None), ("empty", b"")),
        (("same", b"1"), ("same", b"2"), ("same", None)),
        (("", b"empty key"),),
        (("schlüssel-鍵", "wert-値".encode()),),
        (("binary", bytes(range(256))),),
        tuple((f"h{n}", b"x" * n) for n in range(100)),
    ]
    writers = []
    for codec in ("none", "zstd"):
        writer = Writer(cluster, topic, codec, {"compression.type": codec})
        for variant in variants:
            writer.send(b"v", key=b"k", headers=variant)
            writer.send(None, headers=variant)
        writer.flush()
        writers.append(writer)
    return written(topic, writers)


def nulls(cluster: LocalCluster) -> Written:
    """`nulls`: null and empty keys and values in every combination, and keys that are not ASCII."""
    topic = "nulls"
    create_topic(cluster, topic)
    some: list[bytes | None] = [None, b"", b"text", "flut-潮".encode()]
    writers = []
    for codec in ("none", "lz4"):
        writer = Writer(cluster, topic, codec, {"compression.type": codec})
        for key in some:
            for value in some:
                writer.send(value, key=key)
        writer.flush()
        writers.append(writer)
    return written(topic, writers)


def idempotent_producers(cluster: LocalCluster) -> Written:
    """`idempotent`: three idempotent producers and a plain one take turns."""
    topic = "idempotent"
    create_topic(cluster, topic)
    writers = [idempotent(cluster, topic, f"idempotent-{n}") for n in range(3)]
    writers.append(Writer(cluster, topic, "plain"))
    for turn in range(4):
        for writer in writers:
            writer.send_all(texts(25, seed=turn))
    return written(topic, writers)


def timestamps(cluster: LocalCluster) -> Written:
    """`timestamps`: in order, backwards, far future, 1, -1 (none) and below, the largest there is."""
    topic = "timestamps"
    # Records from 2023 are long expired: retention would take them while the corpus is made.
    create_topic(cluster, topic, config=ANY_TIMESTAMP | {"retention.ms": "-1"})
    base_ms = 1_700_000_000_000
    in_order = [base_ms + 1000 * n for n in range(60)]
    backwards = [base_ms - 1000 * n for n in range(60)]
    zigzag = [base_ms + (7919 * n) % 60_000 for n in range(60)]
    odd = [1, -1, -2, -86_400_000, base_ms, 2**62, base_ms, LONG_MAX, 1]
    writers = []
    for codec in ("none", "gzip"):
        writer = Writer(cluster, topic, codec, {"compression.type": codec})
        for series in (in_order, backwards, zigzag, odd):
            for timestamp_ms in series:
                writer.send(b"at", key=str(timestamp_ms).encode(), timestamp_ms=timestamp_ms)
            writer.flush()
        writers.append(writer)
    return written(topic, writers)


def log_append_time(cluster: LocalCluster) -> Written:
    """`log-append-time`: the broker's clock on every batch, then the client's again in the same log."""
    topic = "log-append-time"
    create_topic(cluster, topic, config={"message.timestamp.type": "LogAppendTime"} | ANY_TIMESTAMP)
    writers = [Writer(cluster, topic, codec, {"compression.type": codec}) for codec in CODECS]
    for writer in writers:
        writer.send_all(texts(40), timestamp_ms=1_600_000_000_000)
    set_config(cluster.bootstrap, topic, {"message.timestamp.type": "CreateTime"})
    for writer in writers:
        writer.send_all(texts(20), timestamp_ms=1_600_000_000_000)
    return written(topic, writers)


def partitions(cluster: LocalCluster) -> Written:
    """`partitions`: three partitions of different lengths, one of them empty."""
    topic = "partitions"
    create_topic(cluster, topic, partitions=3)
    writer = Writer(cluster, topic, "plain")
    writer.send_all(texts(150), partition=0)
    writer.send_all(texts(5), partition=2)
    return written(topic, [writer])


RECORD_CASES: Mapping[str, Callable[[LocalCluster], Written]] = {
    "codec-mixed": codecs_in_one_segment,
    "large-records": large_records,
    "headers": headers,
    "nulls": nulls,
    "idempotent": idempotent_producers,
    "timestamps": timestamps,
    "log-append-time": log_append_time,
    "partitions": partitions,
}
