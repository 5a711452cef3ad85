"""What a topic must be like to hold the metadata of segments.

    cleanup.policy                   compact, and nothing else: what deletes by time forgets segments
    delete.retention.ms              a day at least: a snapshot is good for half of it, and until then whoever
                                     goes on from one must see each tombstone
    min.compaction.lag.ms            an hour at least: who follows, and is away for less than half of it, sees
                                     each record; a life without its beginning is refused there
    unclean.leader.election.enable   false: a leader that lacks records has a table of its own
    min.insync.replicas              2, of three replicas or more: else a record is acknowledged by one disk
    replication                      2 at least, where there are two brokers
    partitions                       as agreed: with more of them a log's records are in two places

Owns these rules, and the settings that the topic is made with. Refuses to look: the adapter does.

Invariant: `settings` of any replication have no fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
REPLICAS = 3
DELETE_RETENTION_LEAST_MS = DAY_MS
COMPACTION_LAG_LEAST_MS = HOUR_MS
MIB = 1 << 20

_FIXED: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "compression.type": "producer",
    "delete.retention.ms": str(7 * DAY_MS),
    "min.compaction.lag.ms": str(DAY_MS),
    "min.cleanable.dirty.ratio": "0.2",  # a replay reads a quarter more than the least it could
    "retention.bytes": "-1",
    "retention.ms": "-1",
    "segment.bytes": str(64 * MIB),
    "segment.ms": str(DAY_MS),  # what is in the active segment is never compacted
    "unclean.leader.election.enable": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFound:
    """A topic as it was found. `entries` are its settings, by Kafka's names."""

    partition_count: int
    replication: int  # the least of any partition
    brokers: int
    entries: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFault:
    """A setting that makes a topic unfit, and what to do about it."""

    setting: str
    value: str | None
    remedy: str

    def __str__(self) -> str:
        return f"{self.setting} is {self.value}: {self.remedy}"


def settings(replication: int) -> dict[str, str]:
    """What the topic is made with."""
    return {**_FIXED, "min.insync.replicas": str(max(1, min(2, replication - 1)))}


def faults(found: TopicFound, *, partitions: int | None = None) -> Iterator[TopicFault]:
    """Everything that is wrong. `partitions`: how many there must be; None: as many as there are."""
    yield from _setting_faults(found)
    if partitions is not None and found.partition_count != partitions:
        yield TopicFault(
            setting="partitions",
            value=str(found.partition_count),
            remedy=f"{partitions} are configured. Configure as many as it was made with; if some were added"
            " since, it must be made anew (seawall tier rebuild --from-bucket)",
        )
    if found.replication < min(2, found.brokers):
        yield TopicFault(
            setting="replication",
            value=str(found.replication),
            remedy=f"with {found.brokers} brokers, give it {min(REPLICAS, found.brokers)} replicas"
            " (kafka-reassign-partitions)",
        )


def _setting_faults(found: TopicFound) -> Iterator[TopicFault]:
    policy = found.entries.get("cleanup.policy")
    if policy != "compact":
        yield _fault(found, "cleanup.policy", "compact")
    if _number(found, "delete.retention.ms") < DELETE_RETENTION_LEAST_MS:
        yield _fault(found, "delete.retention.ms", _FIXED["delete.retention.ms"])
    if _number(found, "min.compaction.lag.ms") < COMPACTION_LAG_LEAST_MS:
        yield _fault(found, "min.compaction.lag.ms", _FIXED["min.compaction.lag.ms"])
    if found.entries.get("unclean.leader.election.enable") != "false":
        yield _fault(found, "unclean.leader.election.enable", "false")
    if found.replication >= REPLICAS and _number(found, "min.insync.replicas") < 2:
        yield _fault(found, "min.insync.replicas", "2")


def _fault(found: TopicFound, name: str, wanted: str) -> TopicFault:
    remedy = f"set it to {wanted} (kafka-configs --alter --add-config {name}={wanted})"
    return TopicFault(setting=name, value=found.entries.get(name), remedy=remedy)


def _number(found: TopicFound, name: str) -> int:
    """-1 where the broker did not say: what is not known is not fit."""
    text = found.entries.get(name)
    try:
        return int(text or "")
    except ValueError:
        return -1
