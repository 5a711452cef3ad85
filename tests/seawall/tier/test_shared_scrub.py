"""`seawall tier scrub --workers kafka` and `tier scrub-worker`, as processes on a broker and a bucket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.cluster.produce import Writer, create_topic, texts
from tests.seawall.cli.calling import Called, call, environ_of
from tests.tiering.reader.live import PREFIX, Tiered, tier_partition
from tiering.scrub.shared.topics import Names
from tiering.scrub.shared.topics.kafka import ensure_topics
from tiering.segments.codec import encode_segment
from tiering.segments.kafka import KafkaAppender, check_topic
from tiering.segments.keys import segment_key

TOPIC = "scrub-shared"
DEADLINE_S = 120.0
GARBAGE = b"no task at all"
# Sixteen KiB a segment: some of them are done before the first worker is killed, and most are not.
RATE = ("--rate", "300KiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The settings of both sides, and a folder for what workers say."""

    environ: dict[str, str]
    folder: Path

    def scrub(self, *arguments: str, state: str) -> Called:
        folder = str(self.folder / state)
        return call(
            "tier", "scrub", TOPIC, "--state-dir", folder, "--no-events", *arguments, environ=self.environ
        )

    @contextmanager
    def worker(self, name: str) -> Iterator[Worker]:
        log = self.folder / f"{name}.log"
        arguments = [sys.executable, "-m", "seawall", "tier", "scrub-worker", "--threads", "1"]
        with log.open("wb") as said:
            process = subprocess.Popen(arguments, stderr=said, env={**os.environ, **self.environ})
        try:
            yield Worker(process=process, log=log)
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, event: str, count: int) -> None:
        """Until it has said so that often."""
        wait_until(
            lambda: self.log.read_text().count(f'"{event}"') >= count,
            name=self.log.name,
            wanted=f"{event} {count} times",
            deadline_s=DEADLINE_S,
        )


@pytest.fixture(scope="module")
def tiered(broker: LocalCluster, bucket: LocalBucket) -> Tiered:
    """A dozen copies; of one the bytes are others than its record says, and of another the `.aux` is gone."""
    create_topic(broker, TOPIC)
    Writer(broker, TOPIC, "plain").send_all(texts(1000))
    made = tier_partition(broker, bucket, TOPIC)
    rotten, robbed = made.segments[3], made.segments[7]
    client = bucket.client()
    log, aux = rotten.objects.log, robbed.objects.aux
    assert log is not None
    assert aux is not None
    assert aux.version_id is not None
    content = bytearray(client.get_object(Bucket=bucket.name, Key=log.key)["Body"].read())
    content[len(content) // 2] ^= 1
    version = client.put_object(Bucket=bucket.name, Key=log.key, Body=bytes(content))["VersionId"]
    named = replace(rotten.objects, log=log._replace(version_id=version))
    restored = replace(rotten, objects=named, generation=1)  # as a restore names what it put back
    config = {"bootstrap.servers": broker.bootstrap}
    appender = KafkaAppender(config, check_topic(config))
    appender.append(made.log, segment_key(made.log, rotten.segment_id), encode_segment(restored))
    appender.close()
    client.delete_object(Bucket=bucket.name, Key=aux.key, VersionId=aux.version_id)
    return made


@pytest.fixture
def place(broker: LocalCluster, bucket: LocalBucket, tmp_path: Path) -> Place:
    environ = environ_of(broker, bucket.address, PREFIX) | {
        "SEAWALL_KAFKA__CLIENT__SESSION_TIMEOUT_MS": "6000"
    }
    return Place(environ=environ, folder=tmp_path)


def said(ran: Called) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def outcomes(found: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {each["key"]: (each["outcome"], each["problem"]) for each in found["objects"]}


def letter_of(broker: LocalCluster, value: bytes) -> dict[str, bytes]:
    """The headers of the dead letter with this value."""
    asking = {"bootstrap.servers": broker.bootstrap, "group.id": "scrub-letters"}
    with closing(Consumer(asking, logger=kafka.SILENT)) as reading:
        reading.assign([TopicPartition(Names().letters, 0, 0)])
        found: list[Any] = []

        def has_come() -> bool:
            message = reading.poll(0.1)
            if message is not None and message.value() == value:
                found.append(message)
            return bool(found)

        wait_until(has_come, name=Names().letters, wanted="the letter", deadline_s=DEADLINE_S)
    return dict(found[0].headers())


def test_two_workers_of_which_one_is_killed_find_what_one_process_finds(
    tiered: Tiered, broker: LocalCluster, place: Place
) -> None:
    """Killed (-9) at work, the other takes over, stopped until then: each object ends as it does alone.

    The damaged one and the missing one too. What is no task is a dead letter with its reason, and holds up
    nobody. A worker ends in order on SIGTERM.
    """
    alone = said(place.scrub("--json", "--all", state="alone"))
    ensure_topics({"bootstrap.servers": broker.bootstrap})
    kafka.produce(broker.bootstrap, Names().tasks, [GARBAGE])
    with place.worker("first") as first, place.worker("second") as second:
        first.wait_for("scrub_worker", 1)
        second.wait_for("scrub_worker", 1)
        second.process.send_signal(signal.SIGSTOP)  # until the first is dead: so each of them does a part

        def kill() -> None:
            first.wait_for("scrub_look_begun", 4)
            first.process.kill()
            second.process.send_signal(signal.SIGCONT)

        killing = threading.Thread(target=kill)
        killing.start()
        ran = place.scrub("--workers", "kafka", "--wait", "120s", "--json", "--all", *RATE, state="shared")
        killing.join()
        second.process.terminate()
        status = second.process.wait(DEADLINE_S)

    shared = said(ran)
    assert (ran.status, status) == (1, 0)
    assert outcomes(shared) == outcomes(alone)
    wrong = {each["problem"] for each in shared["objects"] if each["outcome"] == "failed"}
    assert wrong == {"checksum", "missing"}
    assert len(shared["workers"]) == 2
    assert sum(shared["workers"].values()) == len(tiered.segments)
    letter = letter_of(broker, GARBAGE)
    assert letter["dead-letter-topic"] == Names().tasks.encode()
    assert b"is not the JSON of a record" in letter["dead-letter-reason"]


def test_without_a_worker_nothing_is_looked_at_and_it_says_what_to_do(tiered: Tiered, place: Place) -> None:
    """Soon, and by an exit code of its own."""
    ran = place.scrub("--workers", "kafka", "--wait", "1s", state="nobody")

    assert (ran.status, ran.stdout) == (80, "")
    assert "Start `seawall tier scrub-worker`" in ran.stderr
