"""Holds by the settings: the cluster, the metadata topic where there is one, the bucket where one is set.

    <state dir>/events.sqlite, emitter     hold_placed and hold_released, until the topic has them

Owns the wiring. A hold is placed before its event is said: where the event cannot be kept, that is told, and
the hold stands.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rules.events import LogEvent
from rules.identity import LogId
from seawall.connections import kafka_config, segment_store
from seawall.holds.from_findings import Wanted
from seawall.holds.kafka import KafkaTopicConfigs
from seawall.holds.retention import KafkaRetention
from seawall.holds.service import Holds, Place
from seawall.policy.kafka import Opened, open_cluster
from seawall.settings import Settings
from seawall.tier.following import Followed, followed
from seawall.tier.scrub import evidence, state_folder
from tiering.cluster.interface import DescribedTopic
from tiering.errors import StatedError
from tiering.segments.errors import SegmentsTopicMissing
from tiering.segments.records import LogRecord, SegmentId, SegmentRecord
from tiering.segments.view import LogView

SORT = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The followed topic, as `service.Table`."""

    followed: Followed

    def read_on(self) -> object:
        return self.followed.read_on()

    def logs(self) -> tuple[LogId, ...]:
        return self.followed.logs()

    def view(self, log: LogId) -> LogView | None:
        return self.followed.view(log)

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        return self.followed.segment(log, segment_id)

    def publish_log(self, record: LogRecord) -> int:
        return self.followed.metadata.publish_log(record)


@dataclass(slots=True, kw_only=True)
class _Told:
    """Events to be said at the end, when what they tell of is done."""

    events: list[LogEvent] = field(default_factory=list)

    def emit(self, event: LogEvent) -> None:
        self.events.append(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedHolds:
    """What the verbs work with."""

    holds: Holds
    cluster: Opened
    table: Followed | None

    def places(self, wanted: Wanted) -> list[Place]:
        """The logs that a finding is about, with their topic's name; none where the topic is gone."""
        subject = wanted.subject
        known = [] if self.table is None else self.table.logs()
        logs = {log for log in known if log.topic_id == subject.topic_id}
        names = {each for log in logs if self.table and (each := self.table.label(log))}
        name = next(iter(names), None) or self.name_of(subject.topic_id)
        if name is None:
            return []
        if subject.partition is None:
            found = sorted(logs) or [LogId(subject.cluster_id, subject.topic_id, 0)]
        else:
            found = [LogId(subject.cluster_id, subject.topic_id, subject.partition)]
        return [Place(log=log, topic=name) for log in found]

    def name_of(self, topic_id: str) -> str | None:
        """The name that a topic has now, by its id."""
        described = self.cluster.source.describe_topics(self.cluster.topic_names())
        return next(
            (
                name
                for name, each in described.items()
                if isinstance(each, DescribedTopic) and str(each.topic_id) == topic_id
            ),
            None,
        )

    def log_of(self, topic: str, partition: int) -> Place | None:
        """A log by its topic's name, as the cluster knows it now."""
        described = self.cluster.source.describe_topics([topic])[topic]
        if not isinstance(described, DescribedTopic) or partition not in described.partitions:
            return None
        return Place(log=LogId(self.cluster.cluster_id, str(described.topic_id), partition), topic=topic)


@contextmanager
def opened(settings: Settings, say: Callable[[str], None]) -> Iterator[OpenedHolds]:
    """Raises NotSet, ClusterError and their like where the cluster cannot be asked."""
    told = _Told()
    with ExitStack() as stack:
        cluster = open_cluster(settings)
        try:
            table = stack.enter_context(followed(settings))
        except SegmentsTopicMissing:
            table = None
        kafka = KafkaRetention(
            changes=cluster.changes,
            topics=cluster.source,
            configs=KafkaTopicConfigs(kafka_config(settings, client_id="seawall-hold")),
            cluster_id=cluster.cluster_id,
            now_ms=now_ms,
        )
        holds = Holds(
            table=None if table is None else _Table(followed=table),
            kafka=kafka,
            locks=None if settings.s3.bucket is None else segment_store(settings),
            emit=told.emit,
            now_ms=now_ms,
            new_id=lambda: str(uuid.uuid4()),
        )
        try:
            yield OpenedHolds(holds=holds, cluster=cluster, table=table)
        finally:
            _say_events(settings, cluster.cluster_id, told.events, say)


def _say_events(
    settings: Settings, cluster_id: str, events: list[LogEvent], say: Callable[[str], None]
) -> None:
    if not events:
        return
    try:
        given = None if settings.alerts.state_dir is None else Path(settings.alerts.state_dir) / SORT
        folder = state_folder(given, cluster_id, os.environ, SORT)
        with evidence(settings, folder, cluster_id, SORT) as kept:
            kept.emit_many(events)
            left = kept.close(lambda spool: spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=now_ms()))
        if left:
            say(f"Kafka does not have {left} events of holds yet; the next verb of holds sends them")
    except (StatedError, OSError) as failed:
        say(f"the hold stands, and its event was not kept: {failed}")


def now_ms() -> int:
    return time.time_ns() // 1_000_000
