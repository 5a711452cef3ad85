"""The agent's table: as far as this disk remembers it, followed from there, and who writes to its topic.

Owns the order in which these are made. Nothing goes by the table before `follower` has caught up.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from audit_engine.spool import Spool
from seawall.agent.evidence import Evidence
from seawall.agent.sink import LoggedSink
from seawall.agent.snapshots import FOLDER
from seawall.agent.world import Clockwork
from seawall.settings.model import AgentSettings
from tiering.segments.kafka import Follower, KafkaAppender, SegmentsTopic, ensure_topic, topic_ends
from tiering.segments.snapshot import Why, restore
from tiering.uploader.metadata import Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTable:
    """All that reads or writes the metadata topic in one agent."""

    topic: SegmentsTopic
    appender: KafkaAppender
    metadata: Metadata
    evidence: Evidence
    follower: Follower


def open_table(
    agent: AgentSettings,
    *,
    config: Mapping[str, str],
    folder: Path,
    spool: Spool,
    sink: LoggedSink,
    clockwork: Clockwork,
    stack: ExitStack,
) -> OpenTable:
    """Make or check the topic, take up the table, and follow. Ended with the stack."""
    topic = ensure_topic(config, partitions=agent.metadata_partitions, replication=agent.metadata_replicas)
    restored = restore(folder / FOLDER, topic, topic_ends(config, topic), now_ms=clockwork.now_ms())
    for each in restored.discarded:
        if each.why is not Why.ABSENT:
            sink.log.warning("snapshot_discarded", partition=each.partition, why=each.detail)
    appender = stack.enter_context(KafkaAppender(config, topic))
    metadata = Metadata(restored.table, appender)
    evidence = Evidence(
        config=config, spool=spool, metadata=metadata, sink=sink, clockwork=clockwork, stack=stack
    )
    follower = stack.enter_context(Follower(config, topic, evidence.applied, positions=restored.positions))
    return OpenTable(topic=topic, appender=appender, metadata=metadata, evidence=evidence, follower=follower)
