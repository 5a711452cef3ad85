"""The early warning of a whole agent: real files, the broker's own settings, one event an approach."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from rules.events import RetentionWarning
from tests.tiering.retention.agent import BROKER, Agent
from tests.tiering.retention.world import DAY_MS, EPOCH, HOUR_MS
from tests.tiering.segments.strategies import CLUSTER_ID, LOG
from tiering.cluster.interface import BrokerSettings, TopicPartition
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.settings import Setting, Source
from tiering.cluster.topics import TopicFilter
from tiering.log.directory import read_partition_directory
from tiering.retention.newest import newest_ms
from tiering.retention.warning import NEVER_MS
from tiering.retention.watch import RetentionWatch
from tiering.uploader.one_log import Cluster

ORDERS = TopicPartition("orders", LOG.partition)
STATIC = {
    "log.cleanup.policy": "delete",
    "log.retention.ms": str(DAY_MS),
    "log.retention.bytes": "-1",
    "log.local.retention.ms": "-2",
    "log.local.retention.bytes": "-2",
    "log.roll.ms": str(DAY_MS),
    "log.segment.bytes": "1000",
    "log.segment.delete.delay.ms": "60000",
    "min.insync.replicas": "1",
    "message.max.bytes": "1000",
    "unclean.leader.election.enable": "false",
}


class Host:
    """A partition directory of which the files have the times that a test gives them."""

    def __init__(self, folder: Path) -> None:
        self.agent = Agent()
        self.path = folder / f"orders-{LOG.partition}"
        self.path.mkdir()
        (folder / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={BROKER}\n")
        (self.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {LOG.topic_id}")
        self.agent.claim(LOG)
        answers = self.agent.answers
        answers.broker_settings = self.broker_settings  # type: ignore[method-assign]
        self.watch = RetentionWatch(
            survey=Surveyor([folder], topics=TopicFilter(), now_ns=lambda: 0).survey,
            cluster=Cluster(leadership=answers, offsets=answers, settings=answers),
            metadata=self.agent.metadata,
            is_tiered=lambda topic: True,
            sink=self.agent,
            now_ms=lambda: self.agent.now_ms,
            new_id=lambda: "id",
        )

    def broker_settings(self, broker_id: int) -> BrokerSettings:
        entries = {name: Setting(value=value, source=Source.STATIC) for name, value in STATIC.items()}
        return BrokerSettings(broker_id=broker_id, entries=entries)

    def segment(self, base: int, *, age_ms: int, preallocated: int = 0) -> None:
        newest = self.agent.now_ms - age_ms
        (self.path / f"{base:020d}.log").write_bytes(b"x" * 100)
        entries = struct.pack(">qi", newest - 5, 3) + struct.pack(">qi", newest, 99)
        (self.path / f"{base:020d}.timeindex").write_bytes(entries + bytes(12 * preallocated))

    def warnings(self) -> list[RetentionWarning]:
        return [event for event in self.agent.events if isinstance(event, RetentionWarning)]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A tiered segment, one that is not and has 20 minutes of the broker's day left, and the active one."""
    made = Host(tmp_path)
    made.agent.copy(LOG, 0, 100)
    made.segment(0, age_ms=40 * HOUR_MS)
    made.segment(100, age_ms=DAY_MS - 20 * 60_000)
    made.segment(200, age_ms=0, preallocated=50)
    return made


def test_it_is_told_once_by_the_brokers_own_retention(host: Host) -> None:
    """What the topic does not set is the broker's static setting; the second look has nothing to add."""
    [outlook] = host.watch.run_once().values()
    host.watch.run_once()

    [event] = host.warnings()
    assert (event.log, event.frontier, event.local_start) == (LOG, 100, 0)
    assert (event.expires_in_ms, event.copied_in_ms, event.lag_bytes) == (20 * 60_000, NEVER_MS, 100)
    assert event.leader_epoch == EPOCH
    assert outlook.approach is not None
    assert outlook.approach.expires_in_s == 1200


def test_after_a_copy_the_next_approach_is_told_anew(host: Host) -> None:
    """The danger passes when the segment is in the tier; then another segment comes near."""
    host.watch.run_once()
    host.agent.copy(LOG, 100, 200)
    host.watch.run_once()
    host.agent.now_ms += DAY_MS - 10 * 60_000
    host.watch.run_once()

    assert [event.frontier for event in host.warnings()] == [100, 200]


def test_what_is_not_known_keeps_its_last_values_and_says_so(host: Host) -> None:
    """Silence about settings or leaders is no reason to call a log safe."""
    host.watch.run_once()
    host.agent.answers.silent.add("orders")

    [outlook] = host.watch.run_once().values()

    assert outlook.unknown == "silence"
    assert outlook.approach is not None
    assert outlook.approach.is_overtaking


def test_what_another_leads_is_not_looked_at(host: Host) -> None:
    """Its own leader's agent tells of it."""
    host.agent.answers.led_by[ORDERS] = (BROKER + 1, EPOCH)

    assert host.watch.run_once() == {}
    assert host.warnings() == []


def test_the_newest_record_is_found_before_the_zeros(host: Host) -> None:
    """An active segment's index is filled up; without an entry the file's own time is taken."""
    segments = read_partition_directory(host.path).segments
    assert [newest_ms(each) for each in segments] == [
        host.agent.now_ms - 40 * HOUR_MS,
        host.agent.now_ms - DAY_MS + 20 * 60_000,
        host.agent.now_ms,
    ]

    index = host.path / f"{200:020d}.timeindex"
    index.write_bytes(bytes(120))
    os.utime(segments[2].path, ns=(0, 5_000_000_000))
    assert newest_ms(segments[2]) == 5_000
    index.unlink()
    assert newest_ms(segments[2]) == 5_000
    segments[2].path.unlink()
    assert newest_ms(segments[2]) is None
