"""The whole of it, on real brokers and a real S3 protocol: three agents, acks=all throughout, and everything
that can be killed is killed. At the end every promise is kept.

SEAWALL_FAULTS_SEED draws other rounds (the default is fixed, so that a run is like the last);
SEAWALL_FAULTS_ROUNDS makes it a soak; SEAWALL_FAULTS_S3=versitygw takes that server in place of moto.
"""

from __future__ import annotations

import logging
import os
import random
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import boto3
import pytest

from rules.identity import LogId
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.errors import ConditionNotMet
from seawall.local.s3 import S3Address
from seawall.local.waiting import wait_until
from tests.cluster import produce, versitygw
from tests.faults.agents import agents_beside
from tests.faults.ledger import Ledger, Place, read_from_broker
from tests.faults.rounds import HOST_ROUNDS, Scene, strike, supervise, wait_until_in_sync
from tests.faults.s3_trouble import S3Trouble
from tests.faults.scrub import scrub, tiered_records, tiered_to
from tests.seawall.agent import told as evidence
from tests.seawall.cli.calling import call
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter
from tiering.segments.kafka import check_topic, replay
from tiering.segments.table import ReferenceTable
from tiering.store.keys import KeyLayout
from tiering.store.s3 import S3Store, S3StoreSettings

SCENES = logging.getLogger(__name__)  # shown by pytest --log-cli-level=INFO
# 23 draws agents killed again and again, a broker frozen, a host gone, an agent frozen as its leader goes.
SEED = int(os.environ.get("SEAWALL_FAULTS_SEED", "23"))
ROUNDS = int(os.environ.get("SEAWALL_FAULTS_ROUNDS", "4"))
PARTITIONS = 3
SEGMENT_BYTES = 48 * 1024
CATCH_UP_DEADLINE_S = 120.0


@pytest.fixture
def s3(request: pytest.FixtureRequest) -> S3Address:
    """The bucket: moto's, or one of a server that keeps its objects in files."""
    if os.environ.get("SEAWALL_FAULTS_S3") != "versitygw":
        local: LocalBucket = request.getfixturevalue("bucket")
        return local.address
    gateway: versitygw.VersityGateway = request.getfixturevalue("versitygw")
    return S3Address(
        endpoint_url=gateway.endpoint_url,
        bucket=gateway.new_bucket(),
        region=versitygw.REGION,
        access_key_id=versitygw.ACCESS_KEY_ID,
        secret_access_key=versitygw.SECRET_ACCESS_KEY,
    )


def settings_of(cluster: LocalCluster, endpoint_url: str, bucket: str, prefix: str, topic: str) -> str:
    return f"""
[kafka]
bootstrap = "{cluster.bootstrap}"

[s3]
bucket = "{bucket}"
prefix = "{prefix}"
endpoint_url = "{endpoint_url}"
region = "us-east-1"

[agent]
topics = ["{topic}"]
rescan_s = 1
metadata_partitions = {produce.METADATA_PARTITIONS}
"""


def direct_store(bucket: LocalBucket | S3Address) -> S3Store:
    """The bucket, past the trouble."""
    at = bucket.address if isinstance(bucket, LocalBucket) else bucket
    session = boto3.Session(
        aws_access_key_id=at.access_key_id,
        aws_secret_access_key=at.secret_access_key,
        region_name=at.region,
    )
    settings = S3StoreSettings(
        bucket=at.bucket, endpoint_url=at.endpoint_url, region=at.region, addressing_style="path"
    )
    return S3Store(settings, session)


def clean_leftovers(cluster: LocalCluster, at: S3Address, prefix: str, topic: str) -> str:
    """Have `seawall tier orphans` remove what the killed have left; nobody is at work any more."""
    arguments = ["--bootstrap", cluster.bootstrap, "--bucket", at.bucket, "--prefix", prefix]
    arguments += ["--endpoint-url", at.endpoint_url, "--region", at.region]
    credentials = {
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
    }
    called = call(
        *("tier", "orphans", topic, "--delete", "--confirm", "--grace", "0s", *arguments),
        environ=credentials,
    )
    said = f"{called.stdout}{called.stderr}"
    assert called.status == 0, said
    return said


def replayed(cluster: LocalCluster) -> ReferenceTable:
    """What a reader makes of the metadata topic now."""
    config = {"bootstrap.servers": cluster.bootstrap}
    return replay(config, check_topic(config))


def closed_ends(cluster: LocalCluster, topic: str) -> Mapping[LogId, int]:
    """Of each log, up to where the replica that has closed most has closed segments."""
    ends: dict[LogId, int] = {}
    for node_id in cluster.nodes:
        survey = Surveyor(
            cluster.log_dirs(node_id), topics=TopicFilter(include=(topic,)), now_ns=lambda: 0
        ).survey()
        for partition, local in survey.live.items():
            log = LogId(cluster.cluster_id, local.incarnation.topic_id, partition.partition)
            closed = [each.end_offset for each in local.closed_segments if each.end_offset is not None]
            ends[log] = max([ends.get(log, 0), *closed])
    return ends


def test_every_acknowledged_record_is_read_back_once_whatever_was_killed(
    cluster3: LocalCluster, s3: S3Address, tmp_path: Path
) -> None:
    """Agents and brokers killed and frozen, leaders moved, S3 that refuses, hangs, cuts and loses answers:
    afterwards each acknowledged record is in the tier or in the broker, at its offset, once; nothing below
    the frontier is missing or answered for twice; the bucket holds that and nothing unexplained; and what the
    agents said of it all is at the topic of events, without a hole in any number."""
    since_ms = time.time_ns() // 1_000_000
    topic, prefix = f"orders-{uuid.uuid4().hex[:8]}", f"faults-{uuid.uuid4().hex[:8]}"
    produce.create_topic(
        cluster3,
        topic,
        partitions=PARTITIONS,
        replication=3,
        segment_bytes=SEGMENT_BYTES,
        config={"min.insync.replicas": "2"},
    )
    chance = random.Random(SEED)
    host_rounds = [*HOST_ROUNDS] * (ROUNDS // len(HOST_ROUNDS) + 1)
    chance.shuffle(host_rounds)
    with S3Trouble(s3.endpoint_url, chance=random.Random(SEED)) as trouble:
        settings = settings_of(cluster3, trouble.endpoint_url, s3.bucket, prefix, topic)
        with (
            agents_beside(cluster3, tmp_path, settings, s3) as agents,
            Ledger(cluster3.bootstrap, topic, PARTITIONS) as ledger,
        ):
            scene = Scene(cluster=cluster3, agents=agents, s3=trouble, ledger=ledger, chance=chance)
            for host_round in host_rounds[:ROUNDS]:
                strike(scene, host_round)
            promised = ledger.close()
            wait_until_in_sync(scene)
            table = caught_up(scene)
            scene.tell("everything is copied")

    told = f"seed {SEED}\n{scene.account()}"
    for node_id in cluster3.nodes:
        said = evidence.told(cluster3, since_ms=since_ms, broker_id=node_id)
        assert evidence.holes(said) == [], told
        assert said.runs, told
    store = direct_store(s3)
    logs = sorted(closed_ends(cluster3, topic))
    found = scrub(table, store, KeyLayout(prefix), topic_id=logs[0].topic_id)
    assert found.is_clean, f"{found}\n{told}"
    assert len(logs) == PARTITIONS
    cleaned = clean_leftovers(cluster3, s3, prefix, topic)
    after = scrub(replayed(cluster3), store, KeyLayout(prefix), topic_id=logs[0].topic_id)
    assert after.is_clean, f"{after}\n{cleaned}\n{told}"
    assert after.leftovers == [], f"{cleaned}\n{told}"
    from_tier = {
        Place(log.partition, record.offset): record.value or b""
        for log in logs
        for record in tiered_records(table, store, log)
    }
    starts = {log.partition: tiered_to(table, log) for log in logs}
    from_broker = read_from_broker(cluster3.bootstrap, topic, dict.fromkeys(starts, 0))

    assert all(place.offset < starts[place.partition] for place in from_tier)
    assert from_tier == {
        place: value for place, value in from_broker.items() if place.offset < starts[place.partition]
    }, told
    read = from_tier | {
        place: value for place, value in from_broker.items() if place.offset >= starts[place.partition]
    }
    assert promised.differences(read) == [], told
    assert len(set(read.values())) == len(read) == len(promised), told
    assert len(from_tier) > len(read) // 2, f"most of it was never copied\n{told}"
    SCENES.info("%s of %s promised are in the tier\n%s\n%s", len(from_tier), len(promised), found, told)


def caught_up(scene: Scene) -> ReferenceTable:
    """The table once every closed segment is below its log's frontier."""
    cluster, topic = scene.cluster, scene.ledger.topic
    last: list[ReferenceTable] = []

    def is_caught_up() -> bool:
        supervise(scene)
        table = replayed(cluster)
        last[:] = [table]
        return all(tiered_to(table, log) >= end for log, end in closed_ends(cluster, topic).items())

    try:
        wait_until(is_caught_up, name=topic, wanted="all copied", deadline_s=CATCH_UP_DEADLINE_S)
    except ConditionNotMet as behind:
        ends = closed_ends(cluster, topic)
        state = [f"{log.partition}: {tiered_to(last[0], log)} of {end}" for log, end in ends.items()]
        for agent in scene.agents.values():
            state += [f"{agent.process.name}: {dict(agent.probe('readyz'))}", agent.process.last_lines()]
        raise AssertionError("\n".join([str(behind), scene.account(), *state])) from behind
    return last[0]
