"""The post that tells the cluster's metadata: from the log where the host has it, else from the admin API."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rules.events import LeaderChanged, Source, TopicCreated
from seawall.agent.posts import Post, metadata
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.seawall.agent.test_observing import World
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.kafka import KafkaCluster

DEADLINE_S = 30.0


def test_metadata_is_told_from_the_log_or_the_admin_api(broker: LocalCluster, tmp_path: Path) -> None:
    """Both tell a topic that was made, and where they have it from; the log's place is for heartbeats."""
    config = {"bootstrap.servers": broker.bootstrap}
    cluster = KafkaCluster(config, monotonic_s=time.monotonic)
    here = BrokerIdentity(cluster_id=broker.cluster_id, broker_id=1)
    worlds = {}
    for name, log_dirs in (("log", broker.log_dirs(1)), ("api", (tmp_path / "nothing-here",))):
        (tmp_path / name).mkdir()
        world = World(tmp_path / name)
        ground = replace(world.ground, broker=here, config=config, cluster=cluster, log_dirs=log_dirs)
        worlds[name] = (world, metadata(ground))
    (by_log, log_post), (by_api, api_post) = worlds["log"], worlds["api"]
    until(log_post, lambda: log_post.metadata_offset() is not None)
    api_post.run_once()

    kafka.create_topic(broker.bootstrap, "told-of")
    until(log_post, lambda: bool(told(by_log)))
    until(api_post, lambda: bool(told(by_api)))

    [logged], [polled] = told(by_log), told(by_api)
    assert logged.topic_id == polled.topic_id
    assert (log_post.source, logged.source, api_post.source, polled.source) == (
        Source.KRAFT,
        Source.KRAFT,
        Source.ADMIN,
        Source.ADMIN,
    )
    assert logged.metadata_offset is not None
    assert logged.metadata_offset <= (log_post.metadata_offset() or 0)
    assert api_post.metadata_offset() is None
    for world, post in (worlds["log"], worlds["api"]):
        assert any(isinstance(each, LeaderChanged) and each.topic == "told-of" for each in world.kept.events)
        assert post.seen()["partitions"] >= 1
        post.close()


def told(world: World) -> list[TopicCreated]:
    return [each for each in world.kept.events if isinstance(each, TopicCreated) and each.topic == "told-of"]


def until(post: Post, is_so: Callable[[], bool]) -> None:
    def looked() -> bool:
        post.run_once()
        return is_so()

    wait_until(looked, name=post.name, wanted="told", deadline_s=DEADLINE_S)
