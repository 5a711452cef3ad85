"""The table's evidence: its digests as events, and what other agents' tables say.

    records applied    ──► the table, then its digest as an event of the agent's spool
    __seawall_audit    ──► the digests of all agents; a mismatch makes this one publish its full set

Owns the joining. Trimming goes by the digests (T4); the audit by all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from audit_engine.digests.emitter import TierStateEmitter
from audit_engine.digests.kafka import AuditFollower
from audit_engine.digests.states import TierStates
from audit_engine.spool import Spool
from audit_engine.wire.envelope import Envelope
from rules.events import LogEvent, RecordRefused
from rules.identity import LogId
from seawall.agent.sink import LoggedSink
from seawall.agent.world import Clockwork
from tiering.segments.findings import Finding
from tiering.segments.keys import parse_key
from tiering.segments.table import ReferenceTable, TopicRecord
from tiering.uploader.metadata import Metadata


class Evidence:
    """Emits and hears. Ended by the stack that it is put on."""

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
        self.spool = spool
        self.states = TierStates()
        self._emitter = TierStateEmitter(
            _Refusing(metadata, sink, clockwork),
            self._emit_many,
            now_ms=clockwork.now_ms,
            new_id=clockwork.new_id,
        )
        self.follower = stack.enter_context(AuditFollower(config, self._hear))

    def applied(self, partition: int, records: Sequence[TopicRecord]) -> None:
        """What the follower of the metadata topic calls."""
        self._emitter.applied(partition, records)

    def trouble(self) -> str:
        """What keeps the others' digests from here; empty if nothing does."""
        return self.follower.trouble or ""

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
