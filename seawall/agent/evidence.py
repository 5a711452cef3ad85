"""The agent's evidence: its events on disk and in `__seawall_audit`, and what other agents' tables say.

    events of tiering  ──► spool (on disk before anything else) ──► __seawall_audit
    records applied    ──► the table, then its digest as an event of the same spool
    __seawall_audit    ──► the digests of all agents; a mismatch makes this one publish its full set

Owns the joining. Trimming goes by the digests (T4); the audit by all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from audit_engine.digests.emitter import TierStateEmitter
from audit_engine.digests.kafka import AuditFollower
from audit_engine.digests.states import TierStates
from audit_engine.spool import EmitterName, Spool
from audit_engine.topic.kafka import Publisher, ensure_audit_topic
from audit_engine.wire.envelope import Envelope
from rules.events import LogEvent, RecordRefused
from rules.identity import LogId
from seawall.agent.sink import LoggedSink
from tiering.cluster.interface import BrokerIdentity
from tiering.segments.findings import Finding
from tiering.segments.keys import parse_key
from tiering.segments.table import ReferenceTable, TopicRecord
from tiering.uploader.metadata import Metadata

SPOOL_NAME = "events.sqlite"
COMPONENT = "agent"


def open_spool(folder: Path, broker: BrokerIdentity, log: Any) -> Spool:
    """The agent's events on this disk; a file that was damaged is set aside, and said to be."""
    spool = Spool(folder / SPOOL_NAME, EmitterName(broker.cluster_id, broker.broker_id, COMPONENT))
    if spool.set_aside is not None:
        log.error("spool_set_aside", path=str(spool.set_aside.path), why=spool.set_aside.why)
    return spool


@dataclass(frozen=True, slots=True, kw_only=True)
class Clockwork:
    """Time and identity."""

    now_ms: Callable[[], int]
    new_id: Callable[[], str]


class Evidence:
    """Publishes and hears. Ended by the stack that it is put on."""

    def __init__(
        self,
        *,
        config: Mapping[str, str],
        spool: Spool,
        metadata: Metadata,
        sink: LoggedSink,
        clockwork: Clockwork,
        stack: ExitStack,
    ) -> None:
        ensure_audit_topic(config)
        self.spool = spool
        self.states = TierStates()
        self._emitter = TierStateEmitter(
            _Refusing(metadata, sink, clockwork),
            self._emit_many,
            now_ms=clockwork.now_ms,
            new_id=clockwork.new_id,
        )
        self.publisher = stack.enter_context(Publisher(spool, config))
        self.follower = stack.enter_context(AuditFollower(config, self._hear))

    def applied(self, partition: int, records: Sequence[TopicRecord]) -> None:
        """What the follower of the metadata topic calls."""
        self._emitter.applied(partition, records)

    def trouble(self) -> str:
        """What keeps events from where they belong; empty if nothing does."""
        counters = self.spool.counters()
        said = [self.publisher.status().trouble, self.follower.trouble, counters.trouble]
        return "; ".join(each for each in said if each)

    def metrics(self) -> Iterator[Metric]:
        """What waits, and what was lost."""
        spool, published = self.spool.counters(), self.publisher.status()
        for name, value, what in (
            ("events_pending", spool.pending, "Events on this disk that Kafka does not have yet."),
            ("events_pending_bytes", spool.pending_bytes, "Their bytes."),
            ("events_spool_limit_bytes", spool.limit_bytes, "So many of them may wait."),
        ):
            yield GaugeMetricFamily(f"seawall_{name}", what, value=value)
        for name, value, what in (
            ("events_lost", spool.lost, "Events that found no room, or no disk. Each leaves a hole."),
            ("events_published", published.published, "Events that Kafka took."),
            ("events_publish_failures", published.failures, "Times that publishing began anew."),
        ):
            yield CounterMetricFamily(f"seawall_{name}", what, value=value)

    def _emit_many(self, events: Sequence[LogEvent]) -> None:
        self.spool.emit_many(events)

    def _hear(self, envelope: Envelope) -> None:
        found = self.states.hear(envelope)
        if found is not None:
            self._emitter.disagreed(found)


@dataclass(frozen=True, slots=True)
class _Refusing:
    """The table, which also tells of each record that it does not follow."""

    metadata: Metadata
    sink: LoggedSink
    clockwork: Clockwork

    def applied(self, partition: int, records: Sequence[TopicRecord]) -> None:
        self.metadata.applied(partition, records, lambda finding: self._tell(partition, finding))

    def table(self) -> AbstractContextManager[ReferenceTable]:
        return self.metadata.table()

    def _tell(self, partition: int, finding: Finding) -> None:
        named = parse_key(finding.key)
        if named is None:
            self.sink.log.warning("foreign_record", partition=partition, offset=finding.offset)
            return
        with self.metadata.table() as table:
            cluster_id = table.topic.cluster_id
        self.sink.emit(
            RecordRefused(
                event_id=self.clockwork.new_id(),
                occurred_at_ms=self.clockwork.now_ms(),
                log=LogId(cluster_id, named.topic_id, named.partition),
                topic="",
                leader_epoch=-1,
                metadata_partition=partition,
                metadata_offset=finding.offset,
                key=finding.key.decode("ascii", "replace"),
                reason=finding.reason.value,
                detail=finding.detail,
            )
        )
