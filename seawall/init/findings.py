"""What is a danger to data already, before Seawall does anything; and what could not be looked at.

Owns the list of dangers, each with why it is one. Refuses to call fine what nobody told: that is a `Gap`.
Whether a danger is accepted is for whoever runs the cluster to say; nothing here is changed.

Invariant: each danger names all that it is about, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from rules.policy.quantities import write_time
from seawall.init.rates import DAY_MS, TopicRate
from seawall.init.seen import Seen
from seawall.init.versions import OLDEST_FOR_US, Release, release_of
from seawall.policy.cluster import SeenTopic
from tiering.cluster.interface import BrokerSettings, Cause, TopicSettings, Unknown
from tiering.cluster.log_sizes import Features, LogDir, Quorum
from tiering.cluster.topics import is_internal

SCARCE_SHARE = 0.10  # of a disk: brokers stop at 0, and a rebalance needs room
REPLICAS_ENOUGH = 2


class Kind(str, Enum):
    """The values are stable: scripts match on them."""

    NO_LEADER = "no_leader"
    DISK_OFFLINE = "disk_offline"
    UNDER_REPLICATED = "under_replicated"
    ONE_COPY = "one_copy"
    UNCLEAN_ELECTION = "unclean_election"
    ACKNOWLEDGED_BY_ONE = "acknowledged_by_one"
    SHORT_RETENTION = "short_retention"
    SHORT_BY_SIZE = "short_by_size"
    BROKERS_DIFFER = "brokers_differ"
    CARELESS_CREATION = "careless_creation"
    DISK_NEARLY_FULL = "disk_nearly_full"
    ONE_BROKER = "one_broker"
    ONE_CONTROLLER = "one_controller"
    NOT_KRAFT = "not_kraft"
    OLD_KAFKA = "old_kafka"


WHY: Mapping[Kind, str] = {
    Kind.NO_LEADER: "nobody leads these partitions now: they can be neither read nor written",
    Kind.DISK_OFFLINE: "these log dirs are offline: what only they hold cannot be read",
    Kind.UNDER_REPLICATED: "fewer copies than wanted are in sync now",
    Kind.ONE_COPY: "replication factor 1: one lost disk is lost data",
    Kind.UNCLEAN_ELECTION: (
        "unclean elections are on: a replica that lags may lead, and what it lacks is deleted everywhere"
    ),
    Kind.ACKNOWLEDGED_BY_ONE: "min.insync.replicas 1: even with acks=all one broker may be all that has it",
    Kind.SHORT_RETENTION: "kept for less than a day: a mistake that is found tomorrow cannot be undone",
    Kind.SHORT_BY_SIZE: "retention.bytes is reached in less than a day at today's rate, before retention.ms",
    Kind.BROKERS_DIFFER: "brokers have other defaults, so that each replica is kept for another time",
    Kind.CARELESS_CREATION: "topics create themselves, with one copy: what is misspelt is on one disk",
    Kind.DISK_NEARLY_FULL: "under 10% of the disk are free: a broker stops when it is full",
    Kind.ONE_BROKER: "there is one broker: no topic can have a second copy",
    Kind.ONE_CONTROLLER: "one controller alone keeps the metadata: who leads what, and every setting",
    Kind.NOT_KRAFT: "no KRaft quorum answers: changes of metadata are seen by polling alone",
    Kind.OLD_KAFKA: "older than Kafka 3.9: Seawall's readers were not held against its files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """`subjects` are topics, brokers or log dirs; each with a detail, or an empty text."""

    kind: Kind
    subjects: Mapping[str, str]

    @property
    def why(self) -> str:
        return WHY[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What could not be looked at, and why not."""

    what: str
    why: str
    subjects: tuple[str, ...]


def dangers(seen: Seen, rates: Mapping[str, TopicRate]) -> Iterator[Danger]:
    """In the order of `Kind`."""
    found: dict[Kind, dict[str, str]] = {kind: {} for kind in Kind}
    for topic in seen.topics:
        for kind, detail in _of_topic(seen, topic, rates.get(topic)):
            found[kind][topic] = detail
    for kind, subject, detail in _of_brokers(seen):
        found[kind][subject] = detail
    for kind, subjects in found.items():
        if subjects:
            yield Danger(kind=kind, subjects=subjects)


def _of_topic(seen: Seen, topic: str, rate: TopicRate | None) -> Iterator[tuple[Kind, str]]:
    held = seen.topics[topic].values()
    copies = max((len(each.replicas) for each in held), default=0)
    if leaderless := [number for number, each in seen.topics[topic].items() if each.leader_id is None]:
        yield Kind.NO_LEADER, f"partitions {_few(leaderless)}"
    behind = [number for number, each in seen.topics[topic].items() if len(each.isr) < len(each.replicas)]
    if behind:
        yield Kind.UNDER_REPLICATED, f"partitions {_few(behind)}"
    if copies < REPLICAS_ENOUGH:
        yield Kind.ONE_COPY, ""
    found = seen.settings[topic]
    if isinstance(found, Unknown):
        return
    worst = _worst(found, lambda each: each.min_insync_replicas.value)
    if copies >= REPLICAS_ENOUGH and worst < REPLICAS_ENOUGH:
        yield Kind.ACKNOWLEDGED_BY_ONE, f"of {copies} copies"
    if any(each.unclean_leader_election_enable.value for each in found.by_broker.values()):
        yield Kind.UNCLEAN_ELECTION, ""
    if "delete" in found.settings.cleanup_policy.value and not is_internal(topic):
        yield from _of_retention(found, rate)


def _of_retention(found: SeenTopic, rate: TopicRate | None) -> Iterator[tuple[Kind, str]]:
    kept = {(each.retention_ms.value, each.retention_bytes.value) for each in found.by_broker.values()}
    if len(kept) > 1:
        told = ", ".join(f"{broker}: {_kept(each)}" for broker, each in sorted(found.by_broker.items()))
        yield Kind.BROKERS_DIFFER, told
    shortest_ms = _worst(found, lambda each: _or_ever(each.retention_ms.value))
    if shortest_ms < DAY_MS:
        yield Kind.SHORT_RETENTION, write_time(int(shortest_ms))
    smallest = _worst(found, lambda each: _or_ever(each.retention_bytes.value))
    busiest = max((each.bytes_per_day or 0.0 for each in rate.partitions), default=0.0) if rate else 0.0
    if busiest > smallest:
        yield Kind.SHORT_BY_SIZE, f"in {smallest / busiest * 24:.1f} h"


def _of_brokers(seen: Seen) -> Iterator[tuple[Kind, str, str]]:
    if len(seen.brokers) == 1:
        yield Kind.ONE_BROKER, str(seen.brokers[0].address.broker_id), ""
    if isinstance(seen.quorum, Quorum) and len(seen.quorum.voter_ids) == 1:
        yield Kind.ONE_CONTROLLER, str(next(iter(seen.quorum.voter_ids))), ""
    for broker in seen.brokers:
        name = f"broker {broker.address.broker_id}"
        yield from _of_release(name, broker.features)
        if len(seen.brokers) > 1:
            yield from _of_defaults(name, broker.settings)
        for log_dir in () if isinstance(broker.log_dirs, Unknown) else broker.log_dirs:
            yield from _of_log_dir(f"{name}: {log_dir.path}", log_dir)


def _of_release(name: str, features: Features | Unknown) -> Iterator[tuple[Kind, str, str]]:
    release = release_by(features)
    if release is not None and release.number < OLDEST_FOR_US:
        yield Kind.OLD_KAFKA, name, str(release)
    if isinstance(features, Features) and features.metadata_version is None:  # KIP-778: KRaft always has one
        yield Kind.NOT_KRAFT, name, ""


def _of_defaults(name: str, settings: BrokerSettings | Unknown) -> Iterator[tuple[Kind, str, str]]:
    if isinstance(settings, Unknown):
        return
    wanted = {"auto.create.topics.enable": "true", "default.replication.factor": "1"}
    found = {key: entry.value for key in wanted if (entry := settings.entries.get(key)) is not None}
    if found == wanted:
        yield Kind.CARELESS_CREATION, name, "default.replication.factor is 1"


def _of_log_dir(where: str, log_dir: LogDir) -> Iterator[tuple[Kind, str, str]]:
    if log_dir.trouble is not None:
        yield Kind.DISK_OFFLINE, where, log_dir.trouble
    elif log_dir.total_bytes and log_dir.usable_bytes is not None:
        share = log_dir.usable_bytes / log_dir.total_bytes
        if share < SCARCE_SHARE:
            yield Kind.DISK_NEARLY_FULL, where, f"{share:.0%} free"


def gaps(seen: Seen, rates: Mapping[str, TopicRate]) -> Iterator[Gap]:
    """What nobody told, one for each cause."""
    found: dict[tuple[str, str], list[str]] = {}

    def note(what: str, unknown: Unknown | str, subject: str) -> None:
        why = unknown if isinstance(unknown, str) else unknown.reason
        found.setdefault((what, why), []).append(subject)

    for topic, settings in seen.settings.items():
        if isinstance(settings, Unknown) and settings.cause is not Cause.NO_SUCH_TOPIC:
            note("what is configured for a topic", settings, topic)
    for broker in seen.brokers:
        name = f"broker {broker.address.broker_id}"
        if isinstance(broker.settings, Unknown):
            note("what is configured for a broker", broker.settings, name)
        if isinstance(broker.log_dirs, Unknown):
            note("how large the replicas of a broker are", broker.log_dirs, name)
    if isinstance(seen.quorum, Unknown):
        note("who keeps the metadata", seen.quorum, "quorum")
    for topic, rate in rates.items():
        for partition in rate.missing:
            offsets = seen.last.offsets.get(partition)
            why = offsets.reason if isinstance(offsets, Unknown) else "it changed between the two looks"
            note("how far a log is", why, topic)
    if hidden := sorted({part.topic for _, part in seen.last.size_bytes} - set(seen.topics)):
        why = "brokers hold them, and this principal may not describe them, or they are being deleted"
        found["topics", why] = hidden
    for (what, why), subjects in found.items():
        yield Gap(what=what, why=why, subjects=tuple(dict.fromkeys(subjects)))


def release_by(features: Features | Unknown) -> Release | None:
    """The release that a broker's features tell, if they do."""
    if isinstance(features, Unknown) or features.newest_metadata_version is None:
        return None
    return release_of(features.newest_metadata_version)


def _worst(found: SeenTopic, of: Callable[[TopicSettings], float]) -> float:
    return min(of(each) for each in found.by_broker.values())


def _or_ever(limit: int) -> float:
    return limit if limit >= 0 else float("inf")


def _kept(settings: TopicSettings) -> str:
    ms, size = settings.retention_ms.value, settings.retention_bytes.value
    return f"{'unlimited' if ms < 0 else write_time(ms)}/{'unlimited' if size < 0 else size}"


def _few(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return shown + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
