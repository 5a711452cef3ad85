"""The agent and the ingest behind it, both killed again and again in one stream, from the disk to the table.

SEAWALL_TEST_KILLS and SEAWALL_TEST_SEED make the kills more or fewer, and others. A run that fails prints its
seed.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sqlite3
import time
import uuid
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition
from pyspark.sql import SparkSession

from audit_engine.tables.kinds import view_of
from audit_engine.tables.spark import open_tables
from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.ingest.service import DEADLINE_S, IngestService
from tests.audit_engine.whole_path.audited import AUDIT_TOPIC
from tests.cluster import produce
from tests.faults.agents import Agent
from tests.faults.ledger import Ledger
from tests.seawall.agent.stream import PARTITIONS, Stream, observe_only, wait_until_written
from tests.seawall.agent.told import holes

KILLED = logging.getLogger(__name__)  # shown by pytest --log-cli-level=INFO
KILLS = int(os.environ.get("SEAWALL_TEST_KILLS", "50"))
SEED = int(os.environ.get("SEAWALL_TEST_SEED", "0")) or random.randrange(1, 1 << 30)
BATCH_RECORDS_MAX = 40  # so that a kill finds a batch at work
LAST_BATCH_RECORDS_MAX = 2_000  # of the life that comes to the end


class Record(NamedTuple):
    """A record of `__seawall_audit`, and the event in it, by nothing of ours."""

    partition: int
    offset: int
    broker_id: int
    component: str
    incarnation: int
    seq: int
    event_id: str


def lying(bootstrap: str) -> tuple[list[Record], int]:
    """All that is in the topic, read by a plain consumer; and how many offsets that is."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "oracle", "enable.auto.commit": "false"}
    consumer = Consumer(settings | {"isolation.level": "read_committed"})
    found: list[Record] = []
    with closing(consumer):
        partitions = consumer.list_topics(AUDIT_TOPIC, timeout=DEADLINE_S).topics[AUDIT_TOPIC].partitions
        ends = {each: _end(consumer, each) for each in partitions}
        consumer.assign([ClientPartition(AUDIT_TOPIC, each, 0) for each in ends])
        left = {each: end for each, end in ends.items() if end}
        last_moment = time.monotonic() + DEADLINE_S
        while left:
            assert time.monotonic() < last_moment, f"not read to {left}"
            for message in consumer.consume(1_000, timeout=0.5):
                assert message.error() is None, message.error()
                found.append(_record(message.partition() or 0, message.offset() or 0, message.value()))
            at = consumer.position([ClientPartition(AUDIT_TOPIC, each) for each in left])
            left = {each.partition: left[each.partition] for each in at if each.offset < left[each.partition]}
    return found, sum(ends.values())


def _end(consumer: Consumer, partition: int) -> int:
    first, end = consumer.get_watermark_offsets(ClientPartition(AUDIT_TOPIC, partition), timeout=DEADLINE_S)
    assert first == 0, "nothing of it has expired"
    return int(end)


def _record(partition: int, offset: int, value: bytes | None) -> Record:
    said = json.loads(value or b"")
    emitter = said["emitter"]
    by = (emitter["broker_id"], emitter["component"], emitter["incarnation"])
    return Record(partition, offset, *by, said["emitter_seq"], said["event_id"])


def spooled(state: Path) -> Counter[tuple[int, int, str]]:
    """Run, number and id of every event that the agent has ever kept, from its own file."""
    with closing(sqlite3.connect(f"file:{state / 'events.sqlite'}?mode=ro", uri=True)) as file:
        assert file.execute("SELECT count(*) FROM events WHERE acknowledged_at_ms IS NULL").fetchone() == (0,)
        values = [_record(0, 0, value) for (value,) in file.execute("SELECT value FROM events")]
    return Counter((each.incarnation, each.seq, each.event_id) for each in values)


@pytest.mark.long
@pytest.mark.timeout(600 + 120 * KILLS)
def test_whoever_of_both_is_killed_the_table_has_each_event_once_and_no_number_is_missing(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """kill -9 of the agent and of the ingest, in an order nobody chose, while a topic rolls and is deleted
    from: each record of the topic is one row, each event that an agent kept is one of its numbers, no number
    of any run is missing, and the rows tell each segment and each move of a start that the disk has seen.

    An agent dies at its start, at its work, and just as it writes; an ingest in its batches and at its start,
    its JVM with it or left behind.
    """
    chance = random.Random(SEED)
    victims = ["agent"] * (KILLS - KILLS // 2) + ["ingest"] * (KILLS // 2)
    chance.shuffle(victims)
    print(f"SEAWALL_TEST_SEED={SEED}")  # noqa: T201  # of a failed run
    began_s, since_ms = time.monotonic(), time.time_ns() // 1_000_000
    topic = f"killed-{uuid.uuid4().hex[:8]}"
    produce.create_topic(broker, topic, partitions=PARTITIONS)
    agent = Agent(tmp_path / "agent", broker, 1, observe_only(broker), None)
    state = tmp_path / "agent" / "state"
    ingest = IngestService(
        tmp_path, bootstrap=broker.bootstrap, topic=AUDIT_TOPIC, batch_records_max=BATCH_RECORDS_MAX
    )
    try:
        agent.start()
        agent.wait_until_ready()  # it has seen the topic while that was empty
        with ingest, Ledger(broker.bootstrap, topic, PARTITIONS) as ledger:
            stream = Stream(broker=broker, topic=topic, ledger=ledger, chance=chance)
            ingest.start()
            in_batches = 0
            for number, victim in enumerate(victims):
                stream.goes_on(is_trimmed=number % 3 == 2)
                if victim == "agent":
                    if chance.random() < 0.75:
                        agent.wait_until_ready()
                    if chance.random() < 0.5:
                        wait_until_written(state, chance)
                    agent.kill()
                    agent.start()
                else:
                    is_in_batches = chance.random() < 0.8
                    if is_in_batches:
                        ingest.goes_on(ingest.held() + 1)
                    in_batches += is_in_batches
                    Event().wait(chance.uniform(0, 2 if is_in_batches else 8))
                    ingest.kill(leaves_jvm=chance.random() < 0.5)
                    is_last = "ingest" not in victims[number + 1 :]
                    ingest.start(batch_records_max=LAST_BATCH_RECORDS_MAX if is_last else None)
                print(f"kill {number + 1}, {victim}: {ingest.held()} held", flush=True)  # noqa: T201
            agent.wait_until_ready()
            promised = ledger.close()
            found = stream.told_at_rest(agent, since_ms)
            records, offsets = lying(broker.bootstrap)
            held_before = ingest.held()
            ingest.goes_on(offsets)
            code, said = ingest.stop()
            assert becomes_true(ingest.is_alone, deadline_s=DEADLINE_S), "a JVM outlives its process"
    finally:
        agent.kill()
        agent.release()

    assert code == 0, said
    assert len(promised) > KILLS * 100
    assert holes(found) == []
    stream.assert_told(found)
    tables = open_tables(spark, ingest.root)
    assert tables.quarantine.rows().count() == 0
    place = ("kafka_partition", "kafka_offset")
    names = ("emitter_broker_id", "emitter_component", "emitter_incarnation", "emitter_seq", "event_id")
    rows = [Record(*row) for row in tables.events.rows().select(*place, *names).collect()]
    assert sorted(rows) == sorted(records), "each record of the topic is one row, and there is no other"

    ours = [row for row in rows if (row.component, row.incarnation >= since_ms) == ("agent", True)]
    events = Counter({(row.incarnation, row.seq, row.event_id) for row in ours})
    assert events == spooled(state), "each event that an agent kept is there under its one number"
    numbers: defaultdict[int, set[int]] = defaultdict(set)
    for row in ours:
        numbers[row.incarnation].add(row.seq)
    assert all(each == set(range(len(each))) for each in numbers.values()), "no number of a run is missing"
    assert_rows_tell(spark, ingest.root, topic, stream)
    told_again = len(events) - len({event_id for _, _, event_id in events})
    KILLED.info(
        "%s of %s kills were the ingest's, %s of them behind a commit; %s lives were overtaken by a left JVM",
        victims.count("ingest"),
        KILLS,
        in_batches,
        ingest.overtaken,
    )
    KILLED.info(
        "%s runs, %s events, %s told again by id; %s rows, %s repeated deliveries, %s before the end;"
        " %s records written; %.0f s, seed %s",
        len(numbers),
        len(events),
        told_again,
        len(rows),
        len(ours) - len(events),
        held_before,
        len(promised),
        time.monotonic() - began_s,
        SEED,
    )


def assert_rows_tell(spark: SparkSession, root: str, topic: str, stream: Stream) -> None:
    """By SQL alone: the segments of each partition, without a seam, up to the one that is open on disk."""
    table = f"delta.`{root}/audit_events`"
    of_topic = f"WHERE topic = '{topic}'"
    closed = spark.sql(
        f"SELECT DISTINCT event_id, partition, base_offset, end_offset, size_bytes"
        f" FROM ({view_of('segment_closed', table)}) {of_topic}"
    ).collect()
    moved = spark.sql(
        f"SELECT partition, max(new_start) AS start FROM ({view_of('log_start_advanced', table)}) {of_topic}"
        f" GROUP BY partition"
    ).collect()
    on_disk = segment_files(stream.broker, topic)
    for partition, files in on_disk.items():
        mine = sorted(
            (row["base_offset"], row["end_offset"], row["size_bytes"])
            for row in closed
            if row["partition"] == partition
        )
        *closed_files, (open_base, _) = files
        ends = [end for _, end, _ in mine]
        assert [base for base, _, _ in mine] == [0, *ends[:-1]]
        assert ends[-1] == open_base
        assert set(closed_files) <= {(base, size) for base, _, size in mine}
    starts = dict.fromkeys(stream.trimmed, 0) | {row["partition"]: row["start"] for row in moved}
    assert starts == stream.trimmed


def segment_files(broker: LocalCluster, topic: str) -> dict[int, list[tuple[int, int]]]:
    """Base and size of each segment that lies there, by the names of the files."""
    found: dict[int, list[tuple[int, int]]] = {}
    for log_dir in broker.log_dirs(1):
        for folder in log_dir.glob(f"{topic}-*"):
            files = sorted(folder.glob("*.log"))
            partition = int(folder.name.rpartition("-")[2])
            found[partition] = [(int(each.stem), each.stat().st_size) for each in files]
    assert len(found) == PARTITIONS
    return found
