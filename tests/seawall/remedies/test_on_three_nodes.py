"""`seawall remediate` on real brokers: a corrupt replica is kept from leading, settings are put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # its stubs forget it

from rules.identity import LogId
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.disks import put_start
from tests.cluster.elections import elect_preferred
from tests.seawall.cli.calling import call
from tests.seawall.holds.cases import finding, first_local, own_config
from tiering.cluster.interface import DescribedTopic
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter

DEADLINE_S = 90.0
COUNT = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Whose controller elects nobody by itself, so that the test decides when."""
    properties = {**produce.QUICK_HOUSEKEEPING, "auto.leader.rebalance.enable": "false"}
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=3, properties=properties) as made:
        yield made


def described(cluster: LocalCluster, topic: str) -> DescribedTopic:
    asked = KafkaCluster({"bootstrap.servers": cluster.bootstrap}, monotonic_s=lambda: 0.0)
    found = asked.describe_topics([topic])[topic]
    assert isinstance(found, DescribedTopic)
    return found


def create(cluster: LocalCluster, topic: str, brokers: list[int], **config: str) -> LogId:
    small = {produce.SEGMENT_BYTES: str(produce.SMALL_SEGMENT_BYTES), "retention.ms": "-1"}
    new = NewTopic(topic, num_partitions=1, replica_assignment=[brokers], config={**small, **config})
    admin = kafka.admin_client(cluster.bootstrap)
    admin.create_topics([new])[topic].result(DEADLINE_S)
    wait_until(
        lambda: kafka.leaders(cluster.bootstrap, topic).get(0) == brokers[0],
        name=topic,
        wanted="a leader",
        deadline_s=DEADLINE_S,
    )
    return LogId(cluster.cluster_id, str(described(cluster, topic).topic_id), 0)


def fill(cluster: LocalCluster, topic: str, count: int) -> None:
    values = (f"{number:06d}".encode().ljust(800, b".") for number in range(count))
    assert kafka.produce(cluster.bootstrap, topic, values) == count


def bases(cluster: LocalCluster, topic: str, broker: int) -> list[int]:
    """Of the segments that a broker has on disk."""
    surveyor = Surveyor(cluster.log_dirs(broker), topics=TopicFilter(include=(topic,)), now_ns=lambda: 0)
    [local] = surveyor.survey().live.values()
    return sorted(each.base_offset for each in local.listing.segments)


def remediate(cluster: LocalCluster, folder: Path, told: dict[str, Any], *more: str) -> tuple[int, Any]:
    file = folder / "finding.json"
    file.write_text(json.dumps(told))
    environ = {"XDG_STATE_HOME": str(folder), "SEAWALL_KAFKA__BOOTSTRAP": cluster.bootstrap}
    ran = call("remediate", told["finding_id"], "--from-file", str(file), "--json", *more, environ=environ)
    assert ran.stdout, ran.stderr
    return ran.status, json.loads(ran.stdout)["steps"]


@pytest.mark.long
def test_a_corrupt_follower_is_kept_from_leading(cluster: LocalCluster, tmp_path: Path) -> None:
    """Broker 3 is preferred, and comes back with a start that its disk made up; shown first, then done: it is
    the last of the replicas, a preferred election takes another, and no replica loses an offset."""
    topic = "corrupt"
    log = create(cluster, topic, [3, 1, 2])
    fill(cluster, topic, COUNT)
    start = bases(cluster, topic, 3)[3]
    cluster.stop(3)
    put_start(cluster.log_dirs(3)[0], topic, start)
    cluster.restart(3, deadline_s=DEADLINE_S)
    every = frozenset({1, 2, 3})
    in_sync = partial(kafka.in_sync, cluster.bootstrap, topic, 0)
    wait_until(lambda: in_sync() == every, name=topic, wanted="all in sync", deadline_s=DEADLINE_S)
    told = finding(
        log,
        rule_id="START-04",
        subject=f"{log.cluster_id}/{log.topic_id}/0/replica 3",
        ranges=[[0, start]],
        note="its log start is above the leader's",
    )

    status, steps = remediate(cluster, tmp_path, told)
    assert status == 1
    assert [(each["act"], each["can_do"]) for each in steps][:1] == [("keep_out", True)]
    assert described(cluster, topic).partitions[0].replicas == (3, 1, 2), "only shown"
    status, steps = remediate(cluster, tmp_path, told, "--confirm")

    [kept_out] = [each for each in steps if each["act"] == "keep_out"]
    assert kept_out["is_done"]
    assert described(cluster, topic).partitions[0].replicas == (1, 2, 3)
    elect_preferred(cluster, topic)
    fill(cluster, topic, 1)  # a follower in a fetch session hears of a start with the next record only
    assert kafka.leaders(cluster.bootstrap, topic)[0] == 1
    assert first_local(cluster, topic) == 0
    for broker in (1, 2):
        assert bases(cluster, topic, broker)[0] == 0


@pytest.mark.long
def test_a_corrupt_leader_hands_over(cluster: LocalCluster, tmp_path: Path) -> None:
    """One that leads already is made last, and another is elected."""
    topic = "leading"
    log = create(cluster, topic, [2, 3, 1])
    told = finding(
        log,
        rule_id="START-04",
        subject=f"{log.cluster_id}/{log.topic_id}/0/replica 2",
        note="its log start is above the others'",
    )

    _, steps = remediate(cluster, tmp_path, told, "--confirm")

    assert described(cluster, topic).partitions[0].replicas == (3, 1, 2)
    assert kafka.leaders(cluster.bootstrap, topic)[0] == 3
    assert "move_off" not in [each["act"] for each in steps]


@pytest.mark.long
def test_declared_retention_is_put_back(cluster: LocalCluster, tmp_path: Path) -> None:
    """A retention that somebody made shorter is what was declared again."""
    topic = "shrunk"
    log = create(cluster, topic, [1, 2, 3], **{"retention.ms": str(7 * 86_400_000)})
    file = tmp_path / "policy.toml"
    file.write_text(f'version = 1\n[topics.{topic}]\ntotal_retention_ms = "7d"\n')
    said = ("--principal", "alice", "--change-id", "T", "--confirm", "--bootstrap", cluster.bootstrap)
    assert call("policy", "apply", str(file), *said).status == 0
    kafka.set_config(cluster.bootstrap, topic, {"retention.ms": "86400000"})
    told = finding(
        log,
        rule_id="RET-03",
        subject=f"{log.cluster_id}/{log.topic_id}",
        ranges=[],
        note="retention.ms is 1d",
    )

    shown, steps = remediate(cluster, tmp_path, told)
    assert (shown, steps[0]["values"]) == (1, {"setting": "retention.ms", "value": "604800000"})
    status, steps = remediate(cluster, tmp_path, told, "--confirm")

    assert (status, [each["is_done"] for each in steps]) == (0, [True])
    assert own_config(cluster, topic, "retention.ms") == "604800000"
