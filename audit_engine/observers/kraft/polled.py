"""The cluster's metadata by the admin API, look by look, for a host without a metadata log.

The same kinds, source `admin`, each between two looks: `(not_before_ms, occurred_at_ms]`. What came and went
between them is not seen. The admin API names no leader epochs (-1), no recovery state (None), and any broker
may answer, some a little later than others; so

- a topic counts as deleted when two looks in a row were told so, or its name stands for another id;
- an id that was deleted does not come back: an answer that has it is old, and is passed over;
- of a topic that is not told of, nothing follows: it is compared with what it was when it was.

Effective configuration is told by `audit_engine.observers.configs`, on all hosts alike.

Owns the comparison and its order. One thread calls `run_once`.

Invariant: a look is durable, with its events, before the first of them is emitted; what a killed process had
not emitted is emitted by the next one first, unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from audit_engine.observers.errors import SourceSilent
from audit_engine.observers.kept import Kept
from audit_engine.observers.kraft.difference import differences
from audit_engine.observers.kraft.sight import NOT_KNOWN, Scope, Sight
from audit_engine.observers.telling import TellingObserver
from rules.events import Event, Source
from tiering.cluster.image import ClusterImage, PartitionKey, PartitionState
from tiering.cluster.interface import Cause, DescribedPartition, DescribedTopic, Unknown
from tiering.log.kraft.topics import LeaderRecovery
from tiering.log.wire import Uuid

FILE_NAME = "polled-observer.sqlite"
GONE_MAX = 10_000  # ids of deleted topics that are remembered; a broker lags by seconds
_LOOK, _TOPIC, _GONE = "look", "topic/", "gone/"


class MetadataSource(Protocol):
    """Any broker's word on topics."""

    def topic_names(self) -> frozenset[str] | Unknown: ...

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]: ...


class _Topic(NamedTuple):
    """As it was last told. `at_ms` is that look."""

    name: str
    at_ms: int
    partitions: Mapping[int, DescribedPartition]


@dataclass(slots=True, kw_only=True)
class PolledObserver(TellingObserver):
    """Of the topics that `scope` takes."""

    source: MetadataSource
    cluster_id: str
    broker_id: int
    scope: Scope = field(default_factory=Scope)
    _memory: Kept = field(init=False)
    _topics: dict[Uuid, _Topic] = field(default_factory=dict)
    _gone: dict[Uuid, int] = field(default_factory=dict)  # deleted, in order
    _missed: set[Uuid] = field(default_factory=set)  # told to be gone, by the last look alone
    _unseen: frozenset[str] = frozenset()  # listed, and never told of yet
    _at_ms: int | None = None
    _is_loaded: bool = False

    def __post_init__(self) -> None:
        self._memory = Kept(self.folder / FILE_NAME, owner=f"the topics of cluster {self.cluster_id}")

    def run_once(self) -> int:
        """Ask, compare, keep, emit; how many events came of it. Raises SourceSilent if nobody answers."""
        if not self._is_loaded:
            self._load()
        self._emit()
        names = self.source.topic_names()
        if isinstance(names, Unknown):
            raise SourceSilent(what="the topics", act="listed", why=names.reason)
        known = {each.name for each in self._topics.values()}
        wanted = sorted(name for name in names | known if self.scope.takes(name))
        answers = self.source.describe_topics(wanted)
        untold = {
            name: each
            for name, each in answers.items()
            if isinstance(each, Unknown) and each.cause is not Cause.NO_SUCH_TOPIC
        }
        if untold and len(untold) == len(answers):
            raise SourceSilent(what="the topics", act="described", why=next(iter(untold.values())).reason)
        return self._compare(answers, untold=frozenset(untold))

    @property
    def partition_count(self) -> int:
        """Of how many partitions the state is known."""
        return sum(len(each.partitions) for each in self._topics.values())

    def _compare(self, answers: Mapping[str, DescribedTopic | Unknown], *, untold: frozenset[str]) -> int:
        at_ms = self.now_ms() if self._at_ms is None else max(self.now_ms(), self._at_ms)
        now = {
            each.topic_id: _Topic(each.topic, at_ms, each.partitions)
            for each in answers.values()
            if isinstance(each, DescribedTopic) and each.topic_id not in self._gone
        }
        deleted = self._deleted(answers, now)
        events: list[Event] = []
        for topic_id in sorted(now.keys() | deleted):
            events += self._said(topic_id, self._topics.get(topic_id), now.get(topic_id), at_ms)
        unseen = untold - {each.name for each in self._topics.values()}
        changed: dict[str, object] = {_LOOK: {"at_ms": at_ms, "unseen": sorted(unseen)}}
        for topic_id, topic in now.items():
            changed[_TOPIC + topic_id] = _row(topic)
        all_gone = self._gone | dict.fromkeys(sorted(deleted), at_ms)
        forgotten = list(all_gone)[: max(0, len(all_gone) - GONE_MAX)]
        changed |= {_GONE + topic_id: at_ms for topic_id in deleted}
        gone = [*(_TOPIC + each for each in deleted), *(_GONE + each for each in forgotten)]
        self._memory.keep(changed, gone=gone, events=events)
        self._gone = {each: when for each, when in all_gone.items() if each not in forgotten}
        self._topics = {k: v for k, v in (self._topics | now).items() if k not in deleted}
        self._at_ms, self._unseen, self._pending = at_ms, unseen, tuple(events)
        self._emit()
        return len(events)

    def _deleted(
        self, answers: Mapping[str, DescribedTopic | Unknown], now: Mapping[Uuid, _Topic]
    ) -> set[Uuid]:
        """What is certainly gone; the rest of what is not there waits for the next look."""
        deleted: set[Uuid] = set()
        missed: set[Uuid] = set()
        for topic_id, topic in self._topics.items():
            answer = answers.get(topic.name)
            if isinstance(answer, DescribedTopic) and answer.topic_id != topic_id:
                if answer.topic_id in now:
                    deleted.add(topic_id)
            elif isinstance(answer, Unknown) and answer.cause is Cause.NO_SUCH_TOPIC:
                (deleted if topic_id in self._missed else missed).add(topic_id)
        self._missed = missed
        return deleted

    def _said(
        self, topic_id: Uuid, before: _Topic | None, after: _Topic | None, at_ms: int
    ) -> Iterator[Event]:
        since_ms = self._since(before or after)
        sight = Sight(
            cluster_id=self.cluster_id,
            prefix=f"admin:{self.cluster_id}:{self.broker_id}:{at_ms}",
            source=Source.ADMIN,
            metadata_offset=None,
            occurred_at_ms=at_ms,
            not_before_ms=since_ms,
            is_coalesced=False,
            is_first=since_ms is None,
            scope=self.scope,
        )
        return differences(_image(topic_id, before), _image(topic_id, after), sight)

    def _since(self, topic: _Topic | None) -> int | None:
        """The last look that would have seen it otherwise; None where none was told of its name."""
        if topic is None or topic.name in self._unseen:
            return None
        before = [each.at_ms for each in self._topics.values() if each.name == topic.name]
        return max(before, default=self._at_ms)

    def _load(self) -> None:
        loaded = self._memory.load(self.now_ms())
        damage = loaded.damage
        try:
            self._restore(loaded.values)
        except (KeyError, TypeError, ValueError) as odd:
            damage = repr(odd)
            self._topics, self._gone, self._at_ms = {}, {}, None
        self._pending = loaded.pending
        if damage is not None:
            self._pending = (self._memory_lost(Source.ADMIN, self.cluster_id, damage),)
        self._is_loaded = True

    def _restore(self, values: Mapping[str, Any]) -> None:
        for key, body in values.items():
            if key == _LOOK:
                self._at_ms, self._unseen = body["at_ms"], frozenset(body["unseen"])
            elif key.startswith(_TOPIC):
                self._topics[Uuid(key.removeprefix(_TOPIC))] = _topic(body)
        gone = [
            (body, Uuid(key.removeprefix(_GONE))) for key, body in values.items() if key.startswith(_GONE)
        ]
        self._gone = {topic_id: at_ms for at_ms, topic_id in sorted(gone)}


def _image(topic_id: Uuid, topic: _Topic | None) -> ClusterImage:
    """A cluster of this topic alone, as far as the admin API tells it."""
    if topic is None:
        return ClusterImage()
    return ClusterImage(
        topics=MappingProxyType({topic_id: topic.name}),
        topic_ids=MappingProxyType({topic.name: topic_id}),
        partitions=MappingProxyType(
            {PartitionKey(topic_id, number): _state(each) for number, each in topic.partitions.items()}
        ),
    )


def _state(found: DescribedPartition) -> PartitionState:
    return PartitionState(
        replicas=found.replicas,
        directories=(),
        isr=found.isr,
        adding_replicas=(),
        removing_replicas=(),
        leader_id=found.leader_id,
        leader_epoch=NOT_KNOWN,
        partition_epoch=NOT_KNOWN,
        recovery=LeaderRecovery.UNCHANGED,
    )


def _row(topic: _Topic) -> object:
    partitions = [(n, p.leader_id, p.replicas, p.isr) for n, p in sorted(topic.partitions.items())]
    return {"name": topic.name, "at_ms": topic.at_ms, "partitions": partitions}


def _topic(body: Any) -> _Topic:
    partitions = {
        number: DescribedPartition(leader_id=leader, replicas=tuple(replicas), isr=tuple(isr))
        for number, leader, replicas, isr in body["partitions"]
    }
    return _Topic(body["name"], body["at_ms"], partitions)
