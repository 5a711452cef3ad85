"""An observer of a metadata log in the hands of a test, and two judges that share none of its code.

replayed    the state that a reader comes to who has only the events
expected    what each record of the log is to be told as, from the images before and after it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from audit_engine.observers.kraft.observer import KraftObserver
from audit_engine.observers.kraft.sight import Scope
from rules.events import (
    ConfigEffective,
    EmitterRetired,
    Event,
    EvidenceGap,
    IsrChanged,
    LeaderChanged,
    PartitionsAdded,
    ReplicaAdded,
    ReplicaRemoved,
    TopicCreated,
    TopicDeleted,
)
from tests.tiering.cluster.metadata_disk import MetadataDisk
from tiering.cluster.fold import Decider, fold
from tiering.cluster.image import Change, ClusterImage, PartitionKey, PartitionState
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.quorum import QuorumMark
from tiering.log.kraft.cluster import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from tiering.log.kraft.topics import ConfigResource, LeaderRecovery

CLUSTER = "cluster-0000000000000A"
NOBODY_ANSWERS = Unknown(cause=Cause.NO_ANSWER, reason="nobody answers")


class Killed(Exception):
    """The process ends here."""


@dataclass(slots=True)
class Told:
    """A sink that may be killed in the middle."""

    events: list[Event] = field(default_factory=list)
    die_after: int | None = None

    def emit_many(self, events: Sequence[Event]) -> None:
        for each in events:
            if self.die_after is not None:
                if self.die_after == 0:
                    raise Killed
                self.die_after -= 1
            self.events.append(each)

    def of(self, kind: type[Any]) -> list[Any]:
        return [each for each in self.events if isinstance(each, kind)]

    @property
    def once(self) -> list[Event]:
        """Each id once: what a judge sees. Two events of one id are one, or the observer is wrong."""
        found: dict[str, Event] = {}
        for each in self.events:
            assert found.setdefault(each.event_id, each) == each, "one id, two events"
        return list(found.values())


class Watched:
    """A disk, a quorum's word on it, and an observer that can be restarted."""

    def __init__(self, root: Path, *, scope: Scope | None = None, kept_every_ms: int = 0) -> None:
        self.disk = MetadataDisk(root)
        self.folder = root / "agent"
        self.folder.mkdir()
        self.told = Told()
        self.quorum_answers = True
        self.now_ms = 1_800_000_000_000
        self._ids = count()
        self._scope = scope or Scope()
        self._kept_every_ms = kept_every_ms
        self.observer = self._observer()

    def mark(self) -> QuorumMark | Unknown:
        if not self.quorum_answers:
            return NOBODY_ANSWERS
        return QuorumMark(leader_id=1, leader_epoch=self.disk.epoch, high_watermark=self.disk.committed)

    def look(self) -> list[Event]:
        """What one run said."""
        before = len(self.told.events)
        self.observer.run_once()
        return self.told.events[before:]

    def write(self, records: Sequence[Any]) -> None:
        """One committed batch."""
        if records:
            self.disk.append(records)
            self.disk.commit(self.disk.end_offset)

    def restart(self) -> None:
        self.observer.close()
        self.observer = self._observer()

    def killed_after(self, events: int) -> None:
        """A run that ends after so many events are out, and the next process."""
        self.told.die_after = events
        with suppress(Killed):
            self.observer.run_once()
        self.told.die_after = None
        self.restart()

    def _observer(self) -> KraftObserver:
        return KraftObserver(
            directory=self.disk.directory,
            quorum=self,
            sink=self.told,
            cluster_id=CLUSTER,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"e{next(self._ids)}",
            folder=self.folder,
            scope=self._scope,
            kept_every_ms=self._kept_every_ms,
        )


# What a reader of the events knows.


@dataclass(slots=True)
class Known:
    topics: dict[str, tuple[str, int]] = field(default_factory=dict)  # id: name, partitions
    partitions: dict[tuple[str, int], tuple[Any, ...]] = field(default_factory=dict)
    configs: dict[tuple[str, str, str], str] = field(default_factory=dict)


def replayed(events: Iterable[Event]) -> Known:
    """Every event taken at its word, in the order of telling."""
    known = Known()
    for event in events:
        _learn(known, event)
    return known


def _learn(known: Known, event: Event) -> None:
    if isinstance(event, TopicCreated):
        assert event.topic_id not in known.topics
        known.topics[event.topic_id] = (event.topic, event.partition_count)
    elif isinstance(event, PartitionsAdded):
        assert known.topics[event.topic_id] == (event.topic, event.old_partition_count)
        known.topics[event.topic_id] = (event.topic, event.partition_count)
    elif isinstance(event, TopicDeleted):
        name, _ = known.topics.pop(event.topic_id)
        known.partitions = {k: v for k, v in known.partitions.items() if k[0] != event.topic_id}
        known.configs = {k: v for k, v in known.configs.items() if k[:2] != ("topic", name)}
    elif isinstance(event, LeaderChanged):
        at = (event.log.topic_id, event.log.partition)
        known.partitions[at] = (
            event.leader_id,
            event.leader_epoch,
            frozenset(event.isr),
            frozenset(event.replicas),
        )
    elif isinstance(event, IsrChanged):
        at = (event.log.topic_id, event.log.partition)
        leader, epoch, _, replicas = known.partitions[at]
        assert epoch == event.leader_epoch
        known.partitions[at] = (leader, epoch, frozenset(event.isr), replicas)
    elif isinstance(event, ReplicaAdded):
        at = (event.log.topic_id, event.log.partition)
        leader, epoch, isr, replicas = known.partitions[at]
        known.partitions[at] = (leader, epoch, isr, replicas | {event.broker_id})
    elif isinstance(event, ReplicaRemoved):
        at = (event.log.topic_id, event.log.partition)
        leader, epoch, isr, replicas = known.partitions[at]
        known.partitions[at] = (leader, epoch, isr, replicas - {event.broker_id})
    elif isinstance(event, ConfigEffective):
        of = (event.resource.value, event.topic or str(event.broker_id or ""), event.key)
        assert event.is_first_sight or known.configs.get(of) == event.old_value
        if event.new_value is None:
            del known.configs[of]
        else:
            known.configs[of] = event.new_value


def known_of(image: ClusterImage) -> Known:
    """The same of an image."""
    counts: dict[str, int] = dict.fromkeys(image.topics, 0)
    for key in image.partitions:
        counts[key.topic_id] += 1
    return Known(
        topics={topic_id: (name, counts[topic_id]) for topic_id, name in image.topics.items()},
        partitions={(key.topic_id, key.partition): _state(each) for key, each in image.partitions.items()},
        configs={
            ("topic" if key.resource == ConfigResource.TOPIC else "broker", key.name, name): value
            for key, entries in image.configs.items()
            for name, value in entries.items()
        },
    )


def _state(state: PartitionState) -> tuple[Any, ...]:
    leader = -1 if state.leader_id is None else state.leader_id
    return leader, state.leader_epoch, frozenset(state.isr), frozenset(state.replicas)


# What each record is to be told as.


def expected(disk: MetadataDisk) -> dict[int, set[tuple[Any, ...]]]:
    """By offset: what a record changes, by comparing all that is known before and after it."""
    found: dict[int, set[tuple[Any, ...]]] = {}
    image = ClusterImage()
    for change, batch in _decided(disk):
        after = _with(image, change)
        found.setdefault(change.offset, set()).update(_changed(image, after, change, batch))
        image = after
    return found


def _decided(disk: MetadataDisk) -> Iterator[tuple[Change, ClusterImage]]:
    """Each record that counts, with the image behind its batch, or its transaction."""
    decider = Decider()
    for batch in disk.batches:
        for written in batch:
            for change in decider.take(written):
                end = batch[-1].offset + 1
                yield change, disk.image_at(end)


def _with(image: ClusterImage, change: Change) -> ClusterImage:
    if isinstance(change.record, BeginTransactionRecord | EndTransactionRecord | AbortTransactionRecord):
        return image
    return fold(image, [change])


def _changed(
    before: ClusterImage, after: ClusterImage, change: Change, whole: ClusterImage
) -> Iterator[tuple[Any, ...]]:
    old, new = known_of(before), known_of(after)
    for topic_id in old.topics.keys() - new.topics.keys():
        yield ("topic_deleted", topic_id)
    for topic_id in new.topics.keys() - old.topics.keys():
        yield ("topic_created", topic_id, len(whole.partitions_of(topic_id)))  # type: ignore[arg-type]
    for at in new.partitions.keys() - old.partitions.keys():
        yield ("leader_changed", *at, *new.partitions[at], _unclean(after, at))
    for at in new.partitions.keys() & old.partitions.keys():
        was, now = old.partitions[at], new.partitions[at]
        if was[:2] != now[:2]:
            yield ("leader_changed", *at, *now, _unclean(after, at))
        elif was[2] != now[2]:
            yield ("isr_changed", *at, now[1], now[2])
        for broker in now[3] - was[3]:
            yield ("replica_added", *at, broker)
        for broker in was[3] - now[3]:
            yield ("replica_removed", *at, broker)
    gone = {name for topic_id, (name, _) in old.topics.items() if topic_id not in new.topics}
    for of in old.configs.keys() | new.configs.keys():
        value_was, value_is = old.configs.get(of), new.configs.get(of)
        if value_was != value_is and not (of[0] == "topic" and of[1] in gone):
            yield ("config_effective", *of, value_was, value_is)
    for broker in before.brokers.keys() - after.brokers.keys():
        yield ("emitter_retired", broker)


def _unclean(image: ClusterImage, at: tuple[str, int]) -> bool:
    found = image.partitions[PartitionKey(at[0], at[1])]  # type: ignore[arg-type]
    return found.recovery is not LeaderRecovery.RECOVERED


def as_expected(event: Any) -> tuple[Any, ...] | None:
    """A dated event in the words of `expected`."""
    kind = event.kind
    if isinstance(event, TopicDeleted):
        return (kind, event.topic_id)
    if isinstance(event, TopicCreated):
        return (kind, event.topic_id, event.partition_count)
    if isinstance(event, PartitionsAdded):
        return (kind, event.topic_id, event.old_partition_count, event.partition_count)
    if isinstance(event, ConfigEffective):
        name = event.topic or str(event.broker_id or "")
        return (kind, event.resource.value, name, event.key, event.old_value, event.new_value)
    if isinstance(event, EmitterRetired):
        return (kind, event.broker_id)
    if isinstance(event, EvidenceGap):
        return None
    at = (event.log.topic_id, event.log.partition)
    if isinstance(event, LeaderChanged):
        state = (event.leader_id, event.leader_epoch, frozenset(event.isr), frozenset(event.replicas))
        return (kind, *at, *state, event.is_unclean)
    if isinstance(event, IsrChanged):
        return (kind, *at, event.leader_epoch, frozenset(event.isr))
    return (kind, *at, event.broker_id)


def dated(events: Iterable[Event]) -> dict[int, set[tuple[Any, ...]]]:
    """The dated events by offset."""
    found: dict[int, set[tuple[Any, ...]]] = {}
    for event in events:
        said = as_expected(event)
        offset = getattr(event, "metadata_offset", None)
        is_dated = ":to-" not in event.event_id and "-" not in event.event_id.split(":")[2]
        if said is not None and offset is not None and is_dated:
            found.setdefault(offset, set()).add(said)
    return found


def swallowed(events: Iterable[Event]) -> set[int]:
    """The offsets of which the observer says that it did not see them."""
    return {
        offset
        for each in events
        if isinstance(each, EvidenceGap) and each.gap_start is not None and each.gap_end is not None
        for offset in range(each.gap_start, each.gap_end)
    }


def reached(watched: Watched) -> int:
    return (watched.observer.metadata_offset or -1) + 1
