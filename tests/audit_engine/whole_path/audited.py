"""A cluster with an agent beside each broker, its events, their tables, and runs of the audit over them.

Owns the way from a broker's disk to a finding, each step of it the real one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # its stubs forget it
from pyspark.sql import SparkSession

from audit_engine.ingest.kafka import KafkaReach
from audit_engine.ingest.spark import Ingest, IngestSource
from audit_engine.run.reading.spark import Verdicts
from audit_engine.run.spark import AuditRun, Means
from audit_engine.tables.spark import open_tables
from audit_engine.wire import decode
from rules.events import Event, Heartbeat
from rules.identity import LogId
from rules.machine import Terms
from seawall.events.kafka import hear
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.faults.agents import Agent
from tiering.cluster.host import LocalPartition
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter

AUDIT_TOPIC = "__seawall_audit"
DEADLINE_S = 90.0
JUDGED_MAX = 5
SEGMENT_BYTES = 16 * 1024
# Graces are made of what the brokers and observers do, and here these are quick.
QUICK_TERMS = Terms(
    scan_ms=1_000,
    clock_tolerance_ms=500,
    object_grace_ms=500,
    task_interval_ms=500,
    copy_deadline_ms=5_000,
)
QUICK_DELETES = {"log.segment.delete.delay.ms": "500"}
QUICK_AGENT = "observe_every_s = 1\nheartbeat_every_s = 1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the audit says of one finding, as far as a test can know it beforehand."""

    rule_id: str
    severity: str
    ranges: tuple[tuple[int, int], ...]
    status: str = "open"


@dataclass(slots=True, kw_only=True)
class Audited:
    """`cluster`, as the audit sees it."""

    cluster: LocalCluster
    agents: Mapping[int, Agent]
    spark: SparkSession
    folder: Path
    _names: dict[str, str] = field(default_factory=dict)  # by topic id

    def create(self, topic: str, brokers: list[int], **config: str) -> None:
        """One partition, its first replica on the first of these brokers."""
        small = {produce.SEGMENT_BYTES: str(SEGMENT_BYTES), "retention.ms": "-1"}
        new = NewTopic(topic, num_partitions=1, replica_assignment=[brokers], config={**small, **config})
        admin = kafka.admin_client(self.cluster.bootstrap)
        admin.create_topics([new])[topic].result(DEADLINE_S)
        self.wait(lambda: self.leader(topic) == brokers[0], topic, "a leader")
        self.wait(lambda: self._named(topic, brokers[0]), topic, "a replica on disk")

    def logs(self, topic: str) -> list[LogId]:
        return [
            LogId(self.cluster.cluster_id, topic_id, 0)
            for topic_id, name in self._names.items()
            if name == topic
        ]

    def fill(self, topic: str, count: int) -> None:
        values = (f"{number:06d}".encode().ljust(800, b".") for number in range(count))
        assert kafka.produce(self.cluster.bootstrap, topic, values) == count

    def leader(self, topic: str) -> int | None:
        return kafka.leaders(self.cluster.bootstrap, topic).get(0)

    def is_in_sync(self, topic: str, brokers: list[int]) -> bool:
        return kafka.in_sync(self.cluster.bootstrap, topic, 0) == frozenset(brokers)

    def closed(self, topic: str, broker: int) -> list[tuple[int, int]]:
        """The closed segments that a broker's disk holds, in their order."""
        return sorted(
            (each.base_offset, each.end_offset)
            for local in self._replicas(topic, broker)
            for each in local.closed_segments
            if each.end_offset is not None
        )

    def _replicas(self, topic: str, broker: int) -> list[LocalPartition]:
        dirs = self.cluster.log_dirs(broker)
        surveyor = Surveyor(dirs, topics=TopicFilter(include=(topic,)), now_ns=lambda: 0)
        return [*surveyor.survey().live.values()]

    def _named(self, topic: str, broker: int) -> bool:
        for local in self._replicas(topic, broker):
            self._names[local.incarnation.topic_id] = topic
        return topic in self._names.values()

    def begins_at(self, topic: str, broker: int, offset: int) -> bool:
        """Whether a broker's disk holds nothing below an offset any more."""
        return all(first >= offset for first, _ in self.closed(topic, broker))

    @contextmanager
    def stopped(self, broker: int) -> Iterator[Path]:
        """Its log dir, while it is down; it comes back at the end."""
        self.cluster.stop(broker)
        [folder] = self.cluster.log_dirs(broker)
        yield folder
        self.cluster.restart(broker, deadline_s=DEADLINE_S)

    def restart_agents(self) -> None:
        """Killed, and started again: each tells where every log stands."""
        for agent in self.agents.values():
            agent.kill()
            agent.start()
        for agent in self.agents.values():
            agent.wait_until_ready()
        self.wait_until_told()

    def events(self) -> list[Event]:
        heard = (
            decode(each.value) for each in hear({"bootstrap.servers": self.cluster.bootstrap}, since_ms=0)
        )
        return [each.event for each in heard if isinstance(each.event, Event)]

    def wait(self, is_so: Callable[[], bool], name: str, wanted: str) -> None:
        wait_until(is_so, name=name, wanted=wanted, deadline_s=DEADLINE_S)

    def wait_until_told(self) -> None:
        """Every agent has looked again since now, twice: what was to be seen is at the topic."""
        since_ms = _now_ms()

        def is_told() -> bool:
            beats = [each for each in self.events() if isinstance(each, Heartbeat)]
            later = [each.occurred_at_ms for each in beats if each.occurred_at_ms > since_ms + 6_000]
            return len(later) >= len(self.cluster.nodes)

        self.wait(is_told, "the agents", "all that is to be seen, told")

    def judge(self, *, ahead_ms: int = 0) -> Mapping[str, set[Told]]:
        """Everything ingested and judged as of now, or of a time to come, when graces are over; what stands,
        by topic. Of emitters: under their subject."""
        spark, root = self.spark, str(self.folder / "tables")
        config = {"bootstrap.servers": self.cluster.bootstrap}
        self.wait_until_told()  # what was seen, and looked at again
        as_of_ms = _now_ms() + ahead_ms
        self.wait_until_told()  # every agent was heard up to there
        source = IngestSource(topic=AUDIT_TOPIC, client=config, reach=KafkaReach(config))
        today = datetime.now(tz=timezone.utc).date().isoformat()
        Ingest(spark, open_tables(spark, root), source, day=lambda: today).once()
        means = Means(
            terms=QUICK_TERMS,
            now_ms=lambda: _now_ms() + ahead_ms,
            version="test",
            has_gate=False,  # a day of seconds has no volume to be expected
        )
        AuditRun(spark, root, means).next(as_of_ms)
        return self.standing()

    def judge_whole(self, topics: Iterable[str]) -> Mapping[str, set[Told]]:
        """As of now, on whole evidence of these topics: judged anew while any is missing, or in its grace."""
        wanted = tuple(topics)
        for _ in range(JUDGED_MAX):
            found = self.judge()
            stated = {each: self.stated(each) for each in wanted}
            waits = {each: [*of["missing"], *of["suspect"]] for each, of in stated.items()}
            if not any(waits.values()):
                return found
        raise AssertionError(f"judged {JUDGED_MAX} times, and not yet on whole evidence: {waits}")

    def standing(self) -> Mapping[str, set[Told]]:
        found: dict[str, set[Told]] = {}
        for each in self.findings():
            _, topic_id, *_ = str(each["subject"]).split("/")
            name = self._names.get(topic_id, str(each["subject"]))
            ranges = tuple((first, last) for first, last in each["ranges"])
            told = Told(
                rule_id=each["rule_id"], severity=each["severity"], ranges=ranges, status=each["status"]
            )
            found.setdefault(name, set()).add(told)
        return found

    def findings(self) -> list[dict[str, Any]]:
        return Verdicts(self.spark, str(self.folder / "tables")).findings()

    def stated(self, topic: str) -> dict[str, Any]:
        """What the last run states of a topic's only log."""
        [stated] = Verdicts(self.spark, str(self.folder / "tables")).statements(topic, 0)
        return stated


def lose_segments(log_dir: Path, topic: str, bases: list[int]) -> None:
    """The files of these segments, as no broker does it."""
    for base in bases:
        files = [*(log_dir / f"{topic}-0").glob(f"{base:020d}.*")]
        assert any(each.suffix == ".log" for each in files)
        for each in files:
            if each.suffix != ".snapshot":
                each.unlink()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
