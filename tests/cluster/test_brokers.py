"""The brokers that tests are given: real, killable, restartable, and leaving nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.errors import ServerDied
from seawall.local.waiting import becomes_true, wait_until
from tests.cluster import produce
from tests.cluster.cases_logs import partition_folder
from tests.cluster.produce import Writer, texts

DEADLINE_S = 60.0


def leader(cluster: LocalCluster, topic: str) -> int:
    return kafka.leaders(cluster.bootstrap, topic).get(0, -1)


def marker(cluster: LocalCluster, node_id: int = 1) -> Path:
    """Kafka's own word that no recovery is needed."""
    return cluster.log_dirs(node_id)[0] / ".kafka_cleanshutdown"


def test_records_are_still_there_after_kill_and_restart(broker: LocalCluster) -> None:
    """SIGKILL leaves no marker; started again on the same port and files, all acknowledged is in the log."""
    produce.create_topic(broker, "survives-kill")
    before = Writer(broker, "survives-kill", "before")
    before.send_all(texts(50))
    address = broker.bootstrap

    broker.kill()
    assert not marker(broker).exists()
    assert kafka.live_broker_ids(address, timeout_s=1) == frozenset()
    broker.restart()

    after = Writer(broker, "survives-kill", "after")
    after.send_all(texts(10))
    assert broker.bootstrap == address
    assert [record.offset for record in after.acknowledged] == list(range(50, 60))


def test_an_orderly_stop_leaves_a_marker_and_revive_starts_again(broker: LocalCluster) -> None:
    """`revive` is for what a test left dead; a living node it leaves alone."""
    broker.stop()
    assert marker(broker).exists()

    broker.revive()
    living = broker.nodes[1].process.pid
    broker.revive()

    assert kafka.live_broker_ids(broker.bootstrap) == {1}
    assert broker.nodes[1].process.pid == living


def test_a_paused_broker_answers_again_when_resumed(broker: LocalCluster) -> None:
    """Paused it accepts no request, and nothing is lost."""
    produce.create_topic(broker, "paused")
    broker.pause()
    try:
        assert kafka.live_broker_ids(broker.bootstrap, timeout_s=0.5) == frozenset()
    finally:
        broker.resume()

    writer = Writer(broker, "paused", "plain")
    writer.send_all(texts(10))
    assert len(writer.acknowledged) == 10


def test_segments_roll_at_the_small_size(broker: LocalCluster) -> None:
    """Closed segments exist after a few kilobytes."""
    produce.create_topic(broker, "rolls")

    Writer(broker, "rolls", "plain").send_all(texts(300))

    sizes = [path.stat().st_size for path in partition_folder(broker, "rolls").glob("*.log")]
    assert len(sizes) > 3
    assert max(sizes) <= produce.SMALL_SEGMENT_BYTES


def test_another_node_leads_when_the_leader_is_killed(cluster3: LocalCluster) -> None:
    """Writes go on under the new leader, and the killed node comes back in sync."""
    topic = "leader-killed"
    produce.create_topic(cluster3, topic, replication=3)
    writer = Writer(cluster3, topic, "plain")
    writer.send_all(texts(20))
    old = leader(cluster3, topic)

    cluster3.kill(old)
    wait_until(
        lambda: leader(cluster3, topic) not in (old, -1), name=topic, wanted="a leader", deadline_s=DEADLINE_S
    )
    writer.send_all(texts(20))
    cluster3.restart(old)

    assert [record.offset for record in writer.acknowledged] == list(range(40))
    assert becomes_true(
        lambda: kafka.in_sync(cluster3.bootstrap, topic, 0) == {1, 2, 3}, deadline_s=DEADLINE_S
    )
    epochs = (partition_folder(cluster3, topic, node_id=old) / "leader-epoch-checkpoint").read_text()
    assert [line.split()[1] for line in epochs.splitlines()[2:]][:2] == ["0", "20"]


def test_three_brokers_stop_in_order_and_come_back(cluster3: LocalCluster) -> None:
    """All of them at once, each with its marker: what a restore of all replicas needs."""
    cluster3.stop()

    assert all(marker(cluster3, node_id).exists() for node_id in cluster3.nodes)
    assert not any(node.process.is_alive for node in (*cluster3.nodes.values(), cluster3.controller))

    cluster3.start()
    assert kafka.live_broker_ids(cluster3.bootstrap) == {1, 2, 3}


def test_the_kip405_broker_copies_segments_away(kip405_broker: LocalCluster) -> None:
    """Closed segments appear in LocalTieredStorage's folder."""
    produce.create_topic(kip405_broker, "tiers", config={"remote.storage.enable": "true"})

    Writer(kip405_broker, "tiers", "plain").send_all(texts(200))

    stored = kip405_broker.remote_folder / "kafka-tiered-storage"
    assert becomes_true(lambda: len(list(stored.glob("tiers-0-*/*.log"))) >= 2, deadline_s=DEADLINE_S)


@pytest.mark.jvm
def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    """A wrong setting: the error shows the broker's own words and where its log is."""
    cluster = LocalCluster(tmp_path, properties={"log.retention.check.interval.ms": "never"})

    with pytest.raises(ServerDied) as caught:
        cluster.start()

    message = str(caught.value)
    assert "log.retention.check.interval.ms" in message
    assert str(tmp_path / "node-1") in message


@pytest.mark.jvm
def test_nothing_is_alive_after_a_cluster_was_closed(tmp_path: Path) -> None:
    """Neither a process nor a listening port, whatever happened inside."""
    with LocalCluster(tmp_path) as cluster:
        pid = cluster.nodes[1].process.pid
        assert pid is not None
        cluster.pause()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert kafka.live_broker_ids(cluster.bootstrap, timeout_s=0.5) == frozenset()
