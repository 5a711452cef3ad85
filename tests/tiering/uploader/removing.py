"""Local trim and expiry beside the uploader's model, and a judge of each of their effects.

Both are the real services, `LocalTrim` and `RemoteRetention`, over the small cluster's disks and topic.
The judge knows nothing of how they decide. When an effect comes in, it holds that against what is so:

    DeleteRecords     people want trim; this broker leads; nobody holds the log; the certificate came first;
                      what goes is committed, below the frontier, and each offset of it reads back from the
                      tier as the leader has it, or had expired there
    the start moves   people want deletion; this broker leads; into no hold; not beyond the frontier; over
                      what is old, or where the log keeps its bytes for certain, each offset counted once
    a delete marker   on a copy whose deletion is on record, that nobody holds, and that ends at or below a
                      start that has stood for a grace; or of a topic that is gone, a topic's grace ago

What it finds is kept in `wrong` and not raised: a service's edge would take it for one more trouble (T7).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.events import TrimCertified, TrimOutcome
from rules.identity import LogId
from rules.policy import read_policy
from rules.policy.topic import TopicPolicy
from tests.tiering.uploader.brokers import PARTITION, TOPIC
from tests.tiering.uploader.small_cluster import Agent, SmallCluster
from tiering.cluster.interface import TopicPartition
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter
from tiering.retention.digests import Said
from tiering.retention.local_service import LocalTrim
from tiering.retention.local_trim import Answer, Answered
from tiering.retention.remote_policy import TOPIC_GRACE_MS
from tiering.retention.service import RemoteRetention
from tiering.retention.table_end import ReadToEnd
from tiering.retention.topic_watch import TopicWatch
from tiering.segments.records import LogRecord, SegmentRecord, SegmentState
from tiering.uploader.one_log import Cluster

METADATA = "__seawall_segments"
Value = tuple[LogId, int, bytes]

# What people declare, by name. A batch has about a hundred bytes, and the clock runs by quarters of an hour.
_ON = {
    "tiering": True,
    "trim": True,
    "remote_deletion": True,
    "delete_grace_ms": "10min",
    "backup_window_days": 400,
}
_SIZES = {"total_retention_ms": "unlimited", "total_retention_bytes": 250, "local_retention_bytes": 1}
POLICIES = {
    "off": {"tiering": True, "total_retention_ms": "1h"},
    "by size": _ON | _SIZES,
    "by time": _ON | {"total_retention_ms": "2h", "local_retention_ms": "1h"},
    "trim alone": {"tiering": True, "trim": True, "total_retention_ms": "90d", "local_retention_bytes": 1},
}


def declared(name: str) -> TopicPolicy:
    return read_policy({"version": 1, "topics": {"*": POLICIES[name]}}).effective(TOPIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What one process beside a broker removes with; another process begins anew."""

    agent: Agent
    trim: LocalTrim
    expiry: RemoteRetention


@dataclass(slots=True)
class Remover:
    """All agents' trim and expiry over one small cluster, judged. Time stands still within a run."""

    world: SmallCluster
    policy: TopicPolicy = field(default_factory=lambda: declared("off"))
    now_ms: int = 0
    wrong: list[str] = field(default_factory=list)
    expired: set[Value] = field(default_factory=set)  # what expiry moved the start over
    starts: dict[LogId, list[tuple[int, int]]] = field(default_factory=dict)  # (when, start), as followed
    gone: dict[str, int] = field(default_factory=dict)  # topic id: when its end was put on record
    trimmed: int = 0  # so that a test can see that there is something to judge
    removed: int = 0
    _services: dict[int, Services] = field(default_factory=dict)

    def begin(self) -> None:
        """All agents are up."""
        for broker_id in self.world.cluster.replicas:
            self.world.agent(broker_id)

    def run(self, broker_id: int) -> list[str]:
        """One turn of both beside a broker; why logs failed in it, if any did."""
        self.now_ms = self.world.now_ms()
        self._note_start()
        services = self._of(broker_id)
        expired, trimmed = services.expiry.run_once(), services.trim.run_once()
        return [
            each.reason for found in (expired, trimmed) for each in found.values() if each.state == "failed"
        ]

    def _of(self, broker_id: int) -> Services:
        agent, known = self.world.agent(broker_id), self._services.get(broker_id)
        if known is None or known.agent is not agent:
            known = self._services[broker_id] = self._started(broker_id, agent)
        return known

    def _started(self, broker_id: int, agent: Agent) -> Services:
        world, cluster = self.world, self.world.cluster
        records = world.topic.records
        table = ReadToEnd(metadata=agent.metadata, end_of=lambda partition: len(records[partition]))
        survey = Surveyor(
            [cluster.replicas[broker_id].path.parent],
            topics=TopicFilter(),
            now_ns=lambda: self.now_ms * 1_000_000,
        ).survey
        effects = _Effects(self, broker_id, agent)
        trim = LocalTrim(
            survey=survey,
            cluster=Cluster(leadership=cluster, offsets=cluster, settings=cluster),
            table=table,
            digests=effects,
            policy=lambda _: self.policy,
            objects=world.objects,
            requests=effects,
            sink=world.sink,
            now_ms=lambda: self.now_ms,
            new_id=world.new_id,
            jitter=random.Random(0),
            left=self._left(broker_id),
        )
        expiry = RemoteRetention(
            broker_id=broker_id,
            table=table,
            publish_segment=agent.metadata.publish,
            publish_log=effects.publish_log,
            bury=lambda log, key: world.topic.append(log, key, None),
            leadership=cluster,
            topics=TopicWatch(cluster, now_ms=lambda: self.now_ms),
            metadata_topic=METADATA,
            survey=survey,
            objects=effects,
            policy=lambda _: self.policy,
            pace=lambda: None,
            sink=world.sink,
            now_ms=lambda: self.now_ms,
            new_id=world.new_id,
            jitter=random.Random(0),
        )
        return Services(agent=agent, trim=trim, expiry=expiry)

    def _left(self, broker_id: int) -> list[TrimCertified]:
        """Certificates on this broker's disk whose outcome nobody told; the last one that led wrote them."""
        told = {each.certificate_id for each in self.world.sink.events if isinstance(each, TrimOutcome)}
        found = [each for each in self.world.sink.events if isinstance(each, TrimCertified)]
        return [each for each in found if each.certificate_id not in told]

    # The judge.

    def check(self, is_so: bool, wrong: str) -> None:
        if not is_so:
            self.wrong.append(wrong)

    def judge_trim(self, broker_id: int, up_to: int) -> None:
        cluster, log = self.world.cluster, self.world.log
        self.check(self.policy.trim, "nobody wants anything trimmed")
        self.check(cluster.leader_id == broker_id, "a trim by who does not lead")
        record = self._record(log)
        self.check(record is not None and not record.holds, "a trim under a hold")
        self.check(up_to <= cluster.high_watermark, "a trim above what is committed")
        last = next((e for e in reversed(self.world.sink.events) if isinstance(e, TrimCertified)), None)
        self.check(last is not None and last.new_start == up_to, "a trim without a certificate before it")
        found = self.world.coverage(log)
        self.check(found is not None and up_to <= found.frontier.offset, "a trim beyond the frontier")
        stored = {} if found is None else self.world.read_back(log, found)
        truth = cluster.leader.values()
        for offset in range(cluster.leader.log_start, up_to):
            is_stored = stored.get(offset) == truth.get(offset)
            is_spent = (log, offset, truth.get(offset, b"")) in self.expired
            self.check(is_stored or is_spent, f"offset {offset} is trimmed and nowhere in the tier")

    def judge_start(self, broker_id: int, log: LogId, before: LogRecord, after: LogRecord) -> None:
        """Another record of the log is followed, and this broker's expiry wrote it."""
        self.check(after.holds == before.holds, "a hold that expiry undid")
        if after.topic_deleted_at_ms is not None and before.topic_deleted_at_ms is None:
            self.check(log != self.world.log, "a topic that is there is on record as gone")
            self.gone[log.topic_id] = self.now_ms
        if after.log_start == before.log_start:
            return
        self.check(self.policy.remote_deletion, "nobody wants anything removed")
        self.check(log == self.world.log, "the start of a log that is gone is moved")
        self.check(self.world.cluster.leader_id == broker_id, "a start moved by who does not lead")
        self.check(after.log_start > before.log_start, "a start that goes back")
        held = any(hold.start_offset < after.log_start for hold in before.holds)
        self.check(not held, "a start moved past a hold")
        found = self.world.coverage(log)
        self.check(
            found is not None and found.frontier.offset >= after.log_start, "a start beyond the frontier"
        )
        self.check(self._has_expired(after.log_start), f"below {after.log_start} not all has expired")
        self.starts.setdefault(log, []).append((self.now_ms, after.log_start))
        truth = self.world.truth(log, before.claim_epoch)
        span = range(before.log_start, after.log_start)
        self.expired |= {(log, offset, truth[offset]) for offset in span if offset in truth}

    def _has_expired(self, start: int) -> bool:
        batches = self.world.cluster.leader.batches
        limit_ms, limit_bytes = self.policy.total_retention_ms, self.policy.total_retention_bytes
        newest_ms = max((1_700_000_000_000 + each.end for each in batches if each.end <= start), default=0)
        is_old = isinstance(limit_ms, int) and self.now_ms - newest_ms > limit_ms
        kept_bytes = sum(len(each.content) for each in batches if each.start >= start)
        return is_old or (isinstance(limit_bytes, int) and kept_bytes >= limit_bytes)

    def judge_marker(self, broker_id: int, key: str) -> None:
        record = self._copy_of(key)
        self.check(record is not None, "a marker on an object that nobody knows")
        if record is None:
            return
        log = record.log
        self.check(self.policy.remote_deletion, "nobody wants anything removed")
        self.check(record.state is SegmentState.DELETE_STARTED, "a marker on what is not on record as going")
        of_log = self._record(log)
        for hold in of_log.holds if of_log is not None else ():
            is_in = hold.start_offset < record.end_offset
            is_in = is_in and (hold.end_offset is None or hold.end_offset > record.base_offset)
            self.check(not is_in, "a removal under a hold")
        if log == self.world.log:
            self.check(self.world.cluster.leader_id == broker_id, "a removal by who does not lead")
            is_settled = record.end_offset <= self._settled_start(log)
            self.check(is_settled, "a removal above a start that has stood for a grace")
        else:
            since = self.gone.get(log.topic_id)
            passed = since is not None and self.now_ms - since >= TOPIC_GRACE_MS
            below = record.end_offset <= max((start for _, start in self.starts.get(log, [])), default=0)
            self.check(passed or below, "a removal of a topic that is gone, before its grace")

    def _settled_start(self, log: LogId) -> int:
        """The lowest that the start has been for a grace."""
        starts, since_ms = self.starts.get(log, []), self.now_ms - self.policy.delete_grace_ms
        before = [start for when, start in starts if when <= since_ms][-1:]
        return min([*before, *(start for when, start in starts if when > since_ms)]) if before else 0

    def _note_start(self) -> None:
        """A claim may have put it back to a fork."""
        record = self._record(self.world.log)
        noted = self.starts.setdefault(self.world.log, [])
        if record is not None and (not noted or noted[-1][1] != record.log_start):
            noted.append((self.now_ms, record.log_start))

    def _record(self, log: LogId) -> LogRecord | None:
        view = self.world.topic.reader.view(log)
        return None if view is None else view.record

    def _copy_of(self, key: str) -> SegmentRecord | None:
        reader = self.world.topic.reader
        for log in reader.logs():
            view, table = reader.view(log), reader.of(log)
            assert table is not None
            for each in view.segments() if view is not None else ():
                if each.segment_id in key:
                    return table.segment(log, each.segment_id)
        return None


@dataclass(frozen=True, slots=True)
class _Effects:
    """The ports of one agent's services whose use the judge wants to see."""

    remover: Remover
    broker_id: int
    agent: Agent

    def of(self, log: LogId) -> Mapping[int, Said]:
        """What the agents beside the other brokers have of a log now."""
        said = {}
        for broker_id, agent in self.remover.world.agents.items():
            with agent.metadata.table() as tables:
                table = tables.of(log)
                digest = None if table is None else table.digest(log)
            if digest is not None and digest.comparable and broker_id != self.broker_id:
                said[broker_id] = Said(digest.offset, digest.hex())
        return said

    def delete_records(self, partition: TopicPartition, up_to: int) -> Answered:
        assert partition == PARTITION
        world = self.remover.world
        for _ in world.plan.effect():
            self.remover.judge_trim(self.broker_id, up_to)
            self.remover.trimmed += 1
            world.start_at(up_to)
        return Answered(answer=Answer.DONE, reason="done")

    def publish_log(self, record: LogRecord) -> int:
        before = self.remover._record(record.log)
        try:
            return self.agent.metadata.publish_log(record)
        finally:
            after = self.remover._record(record.log)
            if before is not None and after is not None and after.event_id == record.event_id:
                self.remover.judge_start(self.broker_id, record.log, before, after)

    def mark_deleted(self, key: str) -> None:
        self.remover.judge_marker(self.broker_id, key)
        self.remover.removed += 1
        self.remover.world.objects.mark_deleted(key)

    def keeps_versions(self) -> bool:
        return True
