"""The world of one verb of `seawall backup`: the topic of metadata, the bucket, the policy in force.

Owns this joining, and which logs a user means. Refuses to answer for a log of which nothing is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backup.catalogue.copies import LogCatalogue
from backup.catalogue.gather import gather
from backup.tier.ports import Ports, Sink
from rules.identity import LogId
from rules.policy.topic import TopicPolicy
from seawall.cli.read.target import find_target, parse_target
from seawall.connections import key_layout, segment_store
from seawall.settings import Settings
from seawall.tier.following import Followed, followed
from tiering.segments.records import LogRecord, SegmentRecord
from tiering.store.keys import KeyLayout
from tiering.store.patient import PatientStore
from tiering.store.throttle import Throttle

BURST_BYTES = 64 * 1024 * 1024  # of the rate: copies are of whole objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """The metadata topic as a restore writes it."""

    followed: Followed

    def publish(self, record: SegmentRecord) -> int:
        return self.followed.metadata.publish(record)

    def publish_log(self, record: LogRecord) -> int:
        return self.followed.metadata.publish_log(record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One verb's world. `policy` is asked of the cluster at each call."""

    settings: Settings
    table: Followed
    store: PatientStore
    layout: KeyLayout
    policy: Callable[[str], TopicPolicy | None]

    @property
    def cluster_id(self) -> str:
        return self.table.topic.cluster_id

    def logs(self, wanted: str | None, topic_id: str | None = None) -> tuple[LogId, ...]:
        """`TOPIC`, `TOPIC:PARTITION`, or every log of which the topic has a record."""
        if wanted is None:
            return self.table.logs()
        topic, partition = parse_target(wanted)
        with self.table.metadata.table() as tables:
            return find_target(tables, topic, partition, topic_id).logs

    def catalogue(self, log: LogId) -> LogCatalogue:
        return gather(log, self.table, self.store, self.layout)

    def ports(self, sink: Sink, principal: str, rate: int | None, **other: object) -> Ports:
        """What a restore to the tier is given. `rate`: bytes a second that the store is asked to copy."""
        return Ports(
            cluster_id=self.cluster_id,
            table=self.table,
            tier=Tier(followed=self.table),
            objects=self.store,
            layout=self.layout,
            policy=self.policy,
            sink=sink,
            principal=principal,
            now_ms=now_ms,
            pace=pace_of(rate),
            **other,  # type: ignore[arg-type]  # the ports' own fields, by name
        )


def pace_of(rate: int | None) -> Callable[[int], object]:
    """What waits for its turn; for any number of threads."""
    burst = min(BURST_BYTES, rate or BURST_BYTES)
    return Throttle(bytes_per_s=rate, burst_bytes=burst, clock=time.monotonic, sleep=time.sleep).take


@contextmanager
def opened(settings: Settings) -> Iterator[Opened]:
    """What the settings lack is said before the cluster is asked."""
    store = segment_store(settings)
    with followed(settings) as table:
        yield Opened(
            settings=settings,
            table=table,
            store=store,
            layout=key_layout(settings),
            policy=_policy_of(settings),
        )


def _policy_of(settings: Settings) -> Callable[[str], TopicPolicy | None]:
    from seawall.policy.change_log import in_force
    from seawall.policy.kafka import open_cluster

    cluster = open_cluster(settings)

    def of(topic: str) -> TopicPolicy | None:
        applied = in_force(cluster.changes.read())
        return None if applied is None else applied.policy.effective(topic)

    return of


def now_ms() -> int:
    return time.time_ns() // 1_000_000
