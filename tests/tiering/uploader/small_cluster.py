"""A cluster small enough for a model test: real segment files on disk, a topic in memory, agents that die.

Replicas of one log (`replica`, led as `brokers` says) hold the same records and cut them into segments
wherever they like. Every record's value names its offset and the epoch it was written in, so that what comes
back from the store proves itself. An agent is the real UploadService over the real table and decisions; its
process lives on from pass to pass until it is killed at any effect (`Plan`), and the next one starts from
nothing but the topic (`memory_topic`), the bucket and its broker's disk.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rules.events import GapRecorded, LeadershipClaimed, LogEvent
from rules.identity import LogId
from tests.tiering.uploader.brokers import CLUSTER_ID, TOPIC, FakeCluster, topic_id_of
from tests.tiering.uploader.memory_topic import MemoryTopic
from tests.tiering.uploader.replica import Replica, batch_of
from tests.tiering.uploader.world import FakeObjects, FakeSink, Killed, Plan
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter
from tiering.log.batch import read_header, read_records
from tiering.log.checkpoints import EpochStart
from tiering.log.windows import walk
from tiering.segments.coverage import Coverage, Piece, coverage
from tiering.segments.table import ReferenceTable
from tiering.store.keys import KeyLayout
from tiering.uploader.aux_source import AuxSource
from tiering.uploader.copy import Lead, Ports
from tiering.uploader.holder import HoldLimits, SegmentHolder
from tiering.uploader.metadata import Metadata
from tiering.uploader.one_log import Cluster, Tools
from tiering.uploader.service import UploadService
from tiering.uploader.status import LogStatus


@dataclass(slots=True)
class WatchedSink(FakeSink):
    """Takes events, and notes at once what can be judged only at their time."""

    cluster: FakeCluster | None = None
    claims: dict[LogId, list[tuple[int, int]]] = field(default_factory=dict)  # epoch, offset in the topic
    wrong_gaps: list[GapRecorded] = field(default_factory=list)

    def emit(self, event: LogEvent) -> None:
        FakeSink.emit(self, event)
        if isinstance(event, LeadershipClaimed):
            self.claims.setdefault(event.log, []).append((event.leader_epoch, event.metadata_offset))
        if isinstance(event, GapRecorded) and self.cluster is not None:
            leads = (event.log.topic_id, event.leader_epoch) == (self.cluster.topic_id, self.cluster.epoch)
            if leads and any(map(self.cluster.leader.has, range(event.start_offset, event.end_offset))):
                self.wrong_gaps.append(event)


@dataclass(slots=True, kw_only=True)
class Agent:
    """One process."""

    service: UploadService
    metadata: Metadata


class SmallCluster:
    """The brokers, the topic, the bucket, and one agent beside each broker."""

    def __init__(self, folder: Path, *, brokers: int = 3, seed: int = 0) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.plan = Plan()
        replicas = {
            n: Replica(broker_id=n, path=folder / f"broker-{n}" / f"{TOPIC}-0", chance=self.chance)
            for n in range(1, brokers + 1)
        }
        self.cluster = FakeCluster(replicas, topic_id_of(1))
        self.topic = MemoryTopic(self.plan)
        self.objects = FakeObjects(self.plan)
        self.sink = WatchedSink(cluster=self.cluster)
        self.agents: dict[int, Agent] = {}
        self._frozen: dict[tuple[LogId, int], Mapping[int, bytes]] = {}
        self._parsed: dict[str, Mapping[int, bytes]] = {}
        self._committed: dict[LogId, int] = {}  # the highest high watermark that each log ever had
        self._incarnations = itertools.count(1)
        self._ids, self._clock = itertools.count(1), itertools.count(1_700_000_000_000, 1_000_000)
        for broker_id in replicas:
            (folder / f"broker-{broker_id}").mkdir(parents=True)
            (folder / f"broker-{broker_id}" / "meta.properties").write_text(
                f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={broker_id}\n"
            )
        self.recreate_topic()

    # What the log is, and what happens to it

    @property
    def log(self) -> LogId:
        return LogId(CLUSTER_ID, self.cluster.topic_id, 0)

    def truth(self, log: LogId, epoch: int) -> Mapping[int, bytes]:
        """What the leader of an epoch had, or has, for each offset."""
        if (log, epoch) == (self.log, self.cluster.epoch):
            return self.cluster.leader.values()
        return self._frozen[log, epoch]

    def committed(self, log: LogId) -> int:
        """The highest high watermark that a log ever had."""
        return self._committed.get(log, 0)

    def recreate_topic(self) -> None:
        """The topic is deleted and made anew under its old name."""
        cluster = self.cluster
        self._freeze()
        cluster.topic_id = topic_id_of(next(self._incarnations))
        cluster.epoch, cluster.high_watermark, cluster.in_sync = 0, 0, set(cluster.replicas)
        for replica in cluster.replicas.values():
            replica.create(cluster.topic_id)
        cluster.leader.note_epoch(0, 0)

    def produce(self, count: int, *, replicated: bool = True) -> None:
        """Records by the leader; unless replicated, nobody else has them and they are not committed."""
        leader = self.cluster.leader
        leader.append(batch_of(leader.end, count, self.cluster.epoch))
        if self.chance.random() < 0.4:
            leader.roll()
        if replicated:
            self.replicate()

    def replicate(self) -> None:
        """All that are in sync fetch from the leader, and the high watermark follows."""
        cluster = self.cluster
        for broker_id in sorted(cluster.in_sync - {cluster.leader_id}):
            cluster.replicas[broker_id].follow(cluster.leader)
        cluster.high_watermark = max(cluster.high_watermark, cluster.leader.end)
        self._committed[self.log] = max(self.committed(self.log), cluster.high_watermark)

    def stop_following(self, broker_id: int) -> None:
        """A follower fetches no more and leaves the ISR."""
        if broker_id != self.cluster.leader_id:
            self.cluster.in_sync.discard(broker_id)

    def follow_again(self, broker_id: int) -> None:
        if broker_id not in self.cluster.in_sync:
            self.cluster.replicas[broker_id].follow(self.cluster.leader)
            self.cluster.in_sync.add(broker_id)

    def move_leader(self, broker_id: int) -> int | None:
        """An election. If one that is not in sync is elected, the offset from which the log is another."""
        cluster = self.cluster
        is_unclean = broker_id not in cluster.in_sync
        if broker_id == cluster.leader_id or (is_unclean and not cluster.unclean_allowed):
            return None
        before, after = cluster.leader, cluster.replicas[broker_id]
        common = max((ours.end for ours, its in zip(before.batches, after.batches) if ours == its), default=0)  # noqa: B905
        self._freeze()
        if is_unclean:
            cluster.in_sync = {broker_id}
            cluster.high_watermark = min(cluster.high_watermark, after.end)
        cluster.leader_id, cluster.epoch = broker_id, cluster.epoch + 1
        after.note_epoch(cluster.epoch, after.end)
        return common if is_unclean else None

    def delete_records(self) -> None:
        """Somebody's DeleteRecords: to the end of any committed batch of the leader's."""
        ends = [
            batch.end for batch in self.cluster.leader.batches if batch.end <= self.cluster.high_watermark
        ]
        if ends:
            self.start_at(self.chance.choice(ends))

    def local_retention(self, broker_id: int) -> None:
        """Each replica's own; what the leader's takes, those who follow it take at their next fetch."""
        replica = self.cluster.replicas[broker_id]
        replica.retain(min(replica.end, self.cluster.high_watermark))
        if broker_id == self.cluster.leader_id:
            self.start_at(replica.log_start)

    def start_at(self, offset: int) -> None:
        """The leader's log begins there from now on, and so do the replicas that follow it."""
        self.cluster.leader.start_at(offset)
        for broker_id in self.cluster.in_sync - {self.cluster.leader_id}:
            replica = self.cluster.replicas[broker_id]
            replica.start_at(min(offset, replica.end))

    def _freeze(self) -> None:
        self._frozen[self.log, self.cluster.epoch] = self.cluster.leader.values()

    # The agents

    def run_agent(self, broker_id: int) -> Mapping[LogId, LogStatus]:
        """One pass of the agent beside a broker, a new process if the last one ended."""
        agent = self.agent(broker_id)
        try:
            agent.service.run_pass()
        except Killed:
            self.stop_agent(broker_id)
            raise
        except Exception as error:
            raise AssertionError(f"T7: what one log ran into ended the pass of all: {error!r}") from error
        return agent.service.statuses()

    def agent(self, broker_id: int) -> Agent:
        """The process beside a broker, a new one if the last one ended."""
        if broker_id not in self.agents:
            self.agents[broker_id] = self.started(broker_id, self.topic.replayed())
        return self.agents[broker_id]

    def stop_agent(self, broker_id: int) -> None:
        agent = self.agents.pop(broker_id, None)
        if agent is not None:
            self.topic.followers.remove(agent.metadata)
            agent.service.close()

    def started(self, broker_id: int, table: ReferenceTable) -> Agent:
        """A new process beside a broker, with the table that it has so far."""
        metadata = Metadata(table, self.topic, deadline_s=1.0)
        self.topic.followers.append(metadata)

        def ports(lead: Lead, local: object) -> Ports:
            path = self.cluster.replicas[broker_id].path
            epochs = tuple(EpochStart(*each) for each in self.cluster.replicas[broker_id].epochs)
            return Ports(
                tier=metadata,
                lead=lead,
                objects=self.objects,
                keys=KeyLayout("tier"),
                aux=AuxSource(directory=path, epochs=epochs).gather,
                sink=self.sink,
                now_ms=self.now_ms,
                new_id=self.new_id,
            )

        service = UploadService(
            survey=Surveyor(
                [self.cluster.replicas[broker_id].path.parent],
                topics=TopicFilter(),
                now_ns=lambda: self.now_ms() * 1_000_000,
            ).survey,
            tools=Tools(
                cluster=Cluster(leadership=self.cluster, offsets=self.cluster, settings=self.cluster),
                metadata=metadata,
                holder=SegmentHolder(HoldLimits()),
                ports=ports,
                sink=self.sink,
                now_ms=self.now_ms,
                new_id=self.new_id,
                was_told=self.sink.has,
            ),
            is_tiered=lambda topic: topic == TOPIC,
        )
        return Agent(service=service, metadata=metadata)

    # What a reader has of it

    def coverage(self, log: LogId | None = None) -> Coverage | None:
        """What a reader who follows the topic could read now."""
        view = self.topic.reader.view(log or self.log)
        found = None if view is None else coverage(view)
        return found if isinstance(found, Coverage) else None

    def read_back(self, log: LogId, found: Coverage) -> dict[int, bytes]:
        """Every offset below the frontier that the tier holds, from the objects that readers would use."""
        table = self.topic.reader.of(log)
        assert table is not None
        read: dict[int, bytes] = {}
        for piece in found.pieces(found.frontier.start, found.frontier.offset):
            if isinstance(piece, Piece):
                record = table.segment(log, piece.segment_id)
                assert record is not None
                assert record.objects.log is not None
                content = self.objects.live[record.objects.log.key]
                for offset, value in self._records(record.objects.log.key, content).items():
                    if piece.start <= offset < piece.end:
                        assert offset not in read, f"offset {offset} is read twice"
                        read[offset] = value
        return read

    def _records(self, key: str, content: bytes) -> Mapping[int, bytes]:
        if key not in self._parsed:
            self._parsed[key] = records_in(content)
        return self._parsed[key]

    def close(self) -> None:
        for broker_id in list(self.agents):
            self.stop_agent(broker_id)
        shutil.rmtree(self.folder, ignore_errors=True)

    def now_ms(self) -> int:
        return next(self._clock)

    def new_id(self) -> str:
        return f"00000000-0000-0000-0000-{next(self._ids):012d}"


def records_in(content: bytes) -> dict[int, bytes]:
    """The records of a whole segment, by offset."""
    found: dict[int, bytes] = {}
    bounds = walk(memoryview(content), len(content))
    for begin, _ in itertools.pairwise(bounds):
        header = read_header(content, begin)
        found |= {r.offset: r.value or b"" for r in read_records(content, header, begin)}
    return found
