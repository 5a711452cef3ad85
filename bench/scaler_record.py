"""Records what bench scaler replays: real topics on a real broker, filled unevenly, and a group behind each.

`python -m bench.scaler_record FILE` starts a broker, lets twelve producers of different habits write for
RECORD_S, two consumers a group read, and keeps the samples that the scaler's own sampler took, one JSON value
a line. What was recorded stands in bench/scaler_recorded.jsonl.gz; a second of it is SCALE seconds of a
trace.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread

from confluent_kafka import Consumer, Producer

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from workers.scaler.codec import to_json
from workers.scaler.kafka import KafkaGroups
from workers.scaler.options import read_options

GROUPS = 12
PARTITIONS = 6
RECORD_S = 150.0
EVERY_S = 1.0
SCALE = 24.0
SEED = 20_261_118
WORK_S = 0.002


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name, LocalCluster(Path(name)) as cluster:
        stop = Event()
        threads = []
        for number in range(GROUPS):
            topic = f"recorded-{number}"
            kafka.create_topic(cluster.bootstrap, topic, partitions=PARTITIONS, replication=1, config={})
            threads.append(Thread(target=_produce, args=(cluster.bootstrap, topic, SEED + number, stop)))
            threads += [Thread(target=_consume, args=(cluster.bootstrap, topic, stop)) for _ in range(2)]
        for thread in threads:
            thread.start()
        _sample(cluster.bootstrap, target)
        stop.set()
        for thread in threads:
            thread.join()


def _sample(bootstrap: str, target: Path) -> None:
    groups = KafkaGroups({"bootstrap.servers": bootstrap})
    began_s = time.monotonic()
    with gzip.open(target, "wt", encoding="utf-8") as out:
        while (now_s := time.monotonic() - began_s) < RECORD_S:
            for number in range(GROUPS):
                topic = f"recorded-{number}"
                seen = groups.look(read_options({"consumerGroup": topic, "topic": topic}))
                line = {"trace": number, "sample": {**to_json(seen), "at_s": round(now_s, 3)}}
                out.write(json.dumps(line, separators=(",", ":")) + "\n")
            time.sleep(max(0.0, EVERY_S - (time.monotonic() - began_s - now_s)))


def _produce(bootstrap: str, topic: str, seed: int, stop: Event) -> None:
    """A habit drawn from the seed: a base rate, bursts, and times of nothing."""
    chance = random.Random(seed)
    producer = Producer({"bootstrap.servers": bootstrap}, logger=kafka.SILENT)
    base, burst = chance.uniform(5, 120), chance.uniform(200, 3_000)
    burst_share, quiet_share = chance.uniform(0.02, 0.15), chance.uniform(0.0, 0.3)
    level = 1.0
    while not stop.is_set():
        level = min(3.0, max(0.2, level * chance.lognormvariate(0, 0.15)))
        drawn = chance.random()
        count = base * level + (burst if drawn < burst_share else 0)
        if drawn > 1 - quiet_share:
            count = 0
        for _ in range(round(count)):
            producer.produce(topic, value=b"x" * 20, partition=chance.randrange(PARTITIONS))
        producer.flush(10)
        stop.wait(1.0)


def _consume(bootstrap: str, topic: str, stop: Event) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"},
        logger=kafka.SILENT,
    )
    consumer.subscribe([topic])
    while not stop.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            stop.wait(WORK_S)
    consumer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
