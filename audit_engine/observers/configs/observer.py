"""The observer of effective configuration: asks the cluster, compares with what it told, keeps, emits.

At first sight of a broker, or of a topic on a broker, each of its settings is told as it is. From then on
what changed is: the value, or the place where it was set, each as it was and as it is. A topic made anew
under the old name is another. What was not told at one look is compared with what it was when it last was:
the change lies between the two. That a look was not told everything is an evidence gap, once until one was.

A change and its undoing between two looks is not seen here; the metadata log has those that are dynamic.

Owns the order of these. Refuses to run twice at once: one thread calls `run_once`.

Invariant: a look is durable, with its events, before the first of them is emitted; what a killed process had
not emitted is emitted by the next one first, unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from audit_engine.observers.configs.effective import ConfigsSource, Value, Values, of_broker, of_topic
from audit_engine.observers.configs.memory import Known, Memory, Resource, Seen
from audit_engine.observers.errors import SourceSilent
from audit_engine.observers.telling import MEMORY_LOST, TellingObserver, gap_of
from rules.events import ConfigEffective, ConfigResource, Event, EvidenceGap, Source
from rules.events.emitters import MADE_GOOD
from tiering.cluster.interface import BrokerSettings, Cause, DescribedTopic, Unknown

UNTOLD = "config_untold"
_NAMED_MAX = 5  # of those that were not told, in the words of a gap


@dataclass(slots=True, kw_only=True)
class _Look:
    """What one look was told, and what it was not, with the reason."""

    told: dict[Resource, tuple[str | None, Values]] = field(default_factory=dict)
    untold: dict[str, Unknown] = field(default_factory=dict)  # "broker 1", "topic orders"
    kept: set[Resource] = field(default_factory=set)  # not told, and not known to be gone


@dataclass(slots=True, kw_only=True)
class Observer(TellingObserver):
    """`topics`: the names to be asked for.

    `brokers`: whose configuration is told; None: of each that holds one of these topics.
    """

    source: ConfigsSource
    topics: Callable[[], Iterable[str]]
    cluster_id: str
    brokers: frozenset[int] | None = None
    _memory: Memory = field(init=False)
    _seen: Seen | None = None

    def __post_init__(self) -> None:
        self._memory = Memory(self.folder, cluster_id=self.cluster_id)

    def run_once(self) -> int:
        """Ask, compare, keep, emit; how many events came of it. Raises SourceSilent if nobody answers."""
        seen = self._loaded()
        self._emit()
        look = self._look(seen)
        if look.untold and not look.told:
            raise SourceSilent(what="configuration", act="asked for", why=_spoken(look.untold))
        at_ms = self.now_ms() if seen.at_ms is None else max(self.now_ms(), seen.at_ms)
        events = list(self._events(seen, look, at_ms))
        now = Seen(
            at_ms=at_ms,
            is_partial=bool(look.untold),
            resources={each: Known(*told) for each, told in look.told.items()}
            | {each: _unseen(seen.resources[each], seen.at_ms) for each in look.kept},
        )
        self._memory.keep(seen, now, events)
        self._seen, self._pending = now, tuple(events)
        self._emit()
        return len(events)

    @property
    def setting_count(self) -> int:
        """Of how many settings the value is known."""
        return 0 if self._seen is None else sum(len(each.values) for each in self._seen.resources.values())

    def _loaded(self) -> Seen:
        if self._seen is None:
            self._seen, self._pending, damage = self._memory.load(self.now_ms())
            if damage is not None:
                self._pending = (self._gap(MEMORY_LOST, damage, self.now_ms(), None),)
        return self._seen

    def _look(self, seen: Seen) -> _Look:
        """Which topic it is is asked before and after its settings: these go by name, and names pass on."""
        look = _Look()
        names = sorted(set(self.topics()))
        described = self.source.describe_topics(names)
        entries = self.source.topic_entries(names)
        again = self.source.describe_topics(names)
        brokers = self._ask_brokers(described, look, seen)
        for name in names:
            found, after, own = described[name], again[name], entries[name]
            if isinstance(found, Unknown) or isinstance(after, Unknown) or isinstance(own, Unknown):
                unknown = next(each for each in (found, after, own) if isinstance(each, Unknown))
                self._not_told(name, unknown, look, seen)
            elif found.topic_id == after.topic_id:  # else made anew just now: the next look tells
                for broker_id in self._holding(found):
                    resource, broker = Resource(broker_id, found.topic_id), brokers[broker_id]
                    if not isinstance(broker, Unknown):
                        look.told[resource] = (name, of_topic(own, broker))
                    elif resource in seen.resources:
                        look.kept.add(resource)
        return look

    def _holding(self, topic: DescribedTopic | Unknown) -> frozenset[int]:
        if isinstance(topic, Unknown):
            return frozenset()
        holding = frozenset(each for held in topic.partitions.values() for each in held.replicas)
        return holding if self.brokers is None else holding & self.brokers

    def _ask_brokers(
        self, described: Mapping[str, DescribedTopic | Unknown], look: _Look, seen: Seen
    ) -> Mapping[int, BrokerSettings | Unknown]:
        """Those that hold something, and those that did while it is not told of every topic."""
        asked = set(self.brokers or ()).union(*map(self._holding, described.values()))
        if self.brokers is None and any(isinstance(each, Unknown) for each in described.values()):
            asked |= {each.broker_id for each in seen.resources}
        answers = {broker_id: self.source.broker_settings(broker_id) for broker_id in sorted(asked)}
        for broker_id, found in answers.items():
            resource = Resource(broker_id)
            if not isinstance(found, Unknown):
                look.told[resource] = (None, of_broker(found))
                continue
            look.untold[f"broker {broker_id}"] = found
            if resource in seen.resources:
                look.kept.add(resource)
        return answers

    def _not_told(self, name: str, unknown: Unknown, look: _Look, seen: Seen) -> None:
        """What was known stays. That a topic is gone is no trouble, or a broker has not heard of it yet: it
        is forgotten when nobody asks for it any more, or when there is another under its name."""
        look.kept |= {each for each, known in seen.resources.items() if known.topic == name}
        if unknown.cause is not Cause.NO_SUCH_TOPIC:
            look.untold[f"topic {name}"] = unknown

    def _events(self, seen: Seen, look: _Look, at_ms: int) -> Iterator[Event]:
        if look.untold and not seen.is_partial:
            yield self._gap(UNTOLD, _spoken(look.untold), at_ms, seen.at_ms)
        for resource in sorted(look.told, key=lambda each: (each.topic_id or "", each.broker_id)):
            topic, values = look.told[resource]
            known = seen.resources.get(resource)
            before: Values = {} if known is None else known.values
            since = seen.at_ms if known is None or known.last_seen_ms is None else known.last_seen_ms
            for key in sorted(values):
                if before.get(key) != values[key]:
                    yield self._event(resource, topic, key, (before.get(key), values[key]), (since, at_ms))
        if seen.is_partial and not look.untold:  # what changed meanwhile is told
            yield self._gap(MADE_GOOD, UNTOLD, at_ms, None)

    def _event(
        self,
        resource: Resource,
        topic: str | None,
        key: str,
        change: tuple[Value | None, Value],
        between: tuple[int | None, int],
    ) -> ConfigEffective:
        before, now = change
        return ConfigEffective(
            event_id=self.new_id(),
            occurred_at_ms=between[1],
            cluster_id=self.cluster_id,
            resource=ConfigResource.BROKER if resource.topic_id is None else ConfigResource.TOPIC,
            topic_id=resource.topic_id,
            topic=topic,
            broker_id=resource.broker_id,
            key=key,
            old_value=None if before is None else before.value,
            new_value=now.value,
            config_source=now.source,
            is_first_sight=before is None,
            source=Source.ADMIN,
            metadata_offset=None,
            is_coalesced=False,
            not_before_ms=between[0],
            old_config_source=None if before is None else before.source,
        )

    def _gap(self, problem: str, detail: str, at_ms: int, since_ms: int | None) -> EvidenceGap:
        return gap_of(
            Source.ADMIN,
            problem,
            detail,
            cluster_id=self.cluster_id,
            event_id=self.new_id(),
            at_ms=at_ms,
            since_ms=since_ms,
        )


def _unseen(known: Known, last_look_ms: int | None) -> Known:
    return known if known.last_seen_ms is not None else known._replace(last_seen_ms=last_look_ms)


def _spoken(untold: Mapping[str, Unknown]) -> str:
    named = [f"{what}: {why.cause.value}, {why.reason}" for what, why in sorted(untold.items())]
    more = "" if len(named) <= _NAMED_MAX else f"; and {len(named) - _NAMED_MAX} more"
    return "; ".join(named[:_NAMED_MAX]) + more
