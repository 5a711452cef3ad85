"""The agent's own spool and the way from it to `__seawall_audit`, with the heartbeats between the events.

A heartbeat is the first event of each run and, after all who emit have ended, its last; between them one
comes every so often. It says how far this run has counted, so that silence is visible, and a loss too.

Owns the file's name, the topic's making, and when a heartbeat is said. Refuses to say anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from audit_engine.spool import EmitterName, Spool, SpoolCounters
from audit_engine.topic.kafka import Publisher, PublisherStatus, ensure_audit_topic
from rules.events import Heartbeat
from seawall.agent.metrics import Tally
from seawall.agent.world import Clockwork
from tiering.cluster.interface import BrokerIdentity

SPOOL_NAME = "events.sqlite"
COMPONENT = "agent"


def open_spool(folder: Path, broker: BrokerIdentity, log: Any) -> Spool:
    """The agent's events on this disk; a file that was damaged is set aside, and said to be."""
    spool = Spool(folder / SPOOL_NAME, EmitterName(broker.cluster_id, broker.broker_id, COMPONENT))
    if spool.set_aside is not None:
        log.error("spool_set_aside", path=str(spool.set_aside.path), why=spool.set_aside.why)
    return spool


class Publishing:
    """Publishes from its making until the stack ends it. Whoever emits must be put on the stack after it.

    `metadata_offset`: how far `__cluster_metadata` was read; None where nobody reads it.
    """

    def __init__(
        self, *, config: Mapping[str, str], spool: Spool, tally: Tally, clockwork: Clockwork, stack: ExitStack
    ) -> None:
        self.spool = spool
        self.metadata_offset: Callable[[], int | None] = lambda: None
        self._tally = tally
        self._clockwork = clockwork
        self.beat()
        ensure_audit_topic(config)
        self.publisher = stack.enter_context(Publisher(spool, config))
        stack.callback(self.beat)

    def beat(self) -> None:
        """Say how far this run has counted."""
        self.spool.beat(
            event_id=self._clockwork.new_id(),
            occurred_at_ms=self._clockwork.now_ms(),
            metadata_offset=self.metadata_offset(),
        )
        self._tally.event(Heartbeat.kind)

    def trouble(self) -> str:
        """What keeps events from where they belong; empty if nothing does."""
        said = [self.publisher.status().trouble, self.spool.counters().trouble]
        return "; ".join(each for each in said if each)

    def metrics(self) -> Iterator[Metric]:
        return publishing_metrics(self.spool.counters(), self.publisher.status())


def publishing_metrics(spool: SpoolCounters, published: PublisherStatus) -> Iterator[Metric]:
    """What waits, and what was lost."""
    for name, value, what in (
        ("events_pending", spool.pending, "Events on this disk that Kafka does not have yet."),
        ("events_pending_bytes", spool.pending_bytes, "Their bytes."),
        ("events_pending_seconds", spool.oldest_pending_ms / 1000, "How long the oldest of them waits."),
        ("events_spool_limit_bytes", spool.limit_bytes, "So many of them may wait."),
    ):
        yield GaugeMetricFamily(f"seawall_{name}", what, value=value)
    for name, value, what in (
        ("events_lost", spool.lost, "Events that found no room, or no disk. Each leaves a hole."),
        ("events_published", published.published, "Events that Kafka took."),
        ("events_publish_failures", published.failures, "Times that publishing began anew."),
    ):
        yield CounterMetricFamily(f"seawall_{name}", what, value=value)
