"""A topic that rolls and is deleted from while its agent is killed, and how far all of it is told.

The writer is a Ledger. Deletions are by request, so that no broker's clock decides what is gone.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from confluent_kafka import TopicPartition as ClientPartition

from rules.events import LogStartAdvanced, SegmentClosed
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.faults.agents import Agent
from tests.faults.ledger import Ledger
from tests.seawall.agent.told import Told, told
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter

DEADLINE_S = 60.0
PARTITIONS = 3
EVERY_SECOND = "observe_every_s = 1\nheartbeat_every_s = 1\n"


def observe_only(broker: LocalCluster) -> str:
    return f'[kafka]\nbootstrap = "{broker.bootstrap}"\n[agent]\nobserve_only = true\n{EVERY_SECOND}'


def closed_on_disk(broker: LocalCluster, topic: str) -> set[tuple[int, int, int | None, int]]:
    """Partition, range and size of each closed segment that is there."""
    surveyor = Surveyor(broker.log_dirs(1), topics=TopicFilter(include=(topic,)), now_ns=lambda: 0)
    return {
        (partition.partition, each.base_offset, each.end_offset, each.size_bytes)
        for partition, local in surveyor.survey().live.items()
        for each in local.closed_segments
    }


def closed_as_told(found: Told, topic: str) -> list[tuple[int, int, int | None, int]]:
    return [
        (each.log.partition, each.base_offset, each.end_offset, each.size_bytes)
        for each in found.of(SegmentClosed, topic)
    ]


def delete_records(broker: LocalCluster, topic: str, before: dict[int, int]) -> None:
    admin = kafka.admin_client(broker.bootstrap)
    asked = [ClientPartition(topic, partition, offset) for partition, offset in before.items()]
    for done in admin.delete_records(asked).values():
        done.result()


def _nothing_trimmed() -> dict[int, int]:
    return dict.fromkeys(range(PARTITIONS), 0)


@dataclass(slots=True, kw_only=True)
class Stream:
    """`trimmed`: where each partition's log begins, as was asked for."""

    broker: LocalCluster
    topic: str
    ledger: Ledger
    chance: random.Random
    trimmed: dict[int, int] = field(default_factory=_nothing_trimmed)

    def goes_on(self, *, is_trimmed: bool) -> None:
        """So many records more that no kill finds the disk as the one before did."""
        assert self.ledger.grows_by(self.chance.randint(1, 700), deadline_s=DEADLINE_S)
        if is_trimmed:
            partition = self.chance.randrange(PARTITIONS)
            self.trimmed[partition] += self.chance.randint(1, 50)
            delete_records(self.broker, self.topic, {partition: self.trimmed[partition]})

    def told_at_rest(self, agent: Agent, since_ms: int) -> Told:
        """All that was told once the agent has seen the end of it, and has ended."""

        def is_told() -> bool:
            found = told(self.broker, since_ms=since_ms)
            starts = dict.fromkeys(self.trimmed, 0)
            starts |= {each.log.partition: each.new_start for each in found.of(LogStartAdvanced, self.topic)}
            on_disk = closed_on_disk(self.broker, self.topic)
            return starts == self.trimmed and on_disk <= set(closed_as_told(found, self.topic))

        wait_until(is_told, name=self.topic, wanted="all that is on disk told", deadline_s=DEADLINE_S)
        assert agent.process.stop(grace_s=30.0)
        return told(self.broker, since_ms=since_ms)

    def assert_told(self, found: Told) -> None:
        """Each closed segment and each move of a start once, and none passed over."""
        closed = closed_as_told(found, self.topic)
        assert len(closed) == len(set(closed)), "each closed segment is told once"
        for partition, start in self.trimmed.items():
            ranges = sorted(each[1:3] for each in closed if each[0] == partition)
            assert ranges[0][0] == 0
            assert all(end == base for (_, end), (base, _) in pairwise(ranges)), "and none is passed over"
            all_moves = found.of(LogStartAdvanced, self.topic)
            moves = [each for each in all_moves if each.log.partition == partition]
            starts = [0, *(each.new_start for each in moves)]
            assert [each.old_start for each in moves] == starts[:-1]
            assert starts[-1] == start


def wait_until_written(state: Path, chance: random.Random) -> None:
    """Return at the moment when the agent writes to one of these; polled without a pause, to be in time."""
    file = state / chance.choice(("disk-observer.sqlite-wal", "events.sqlite-wal"))
    before, last_moment = file.stat().st_mtime_ns, time.monotonic() + DEADLINE_S
    while file.stat().st_mtime_ns == before:
        assert time.monotonic() < last_moment, f"{file.name} is not written to any more"
