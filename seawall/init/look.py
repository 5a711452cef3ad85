"""Looks at a cluster twice, some seconds apart, and asks in between for all that does not change so soon.

Owns the order of the questions. Each broker is asked for its own word by a thread of its own, a few at once.

Invariant: between the two looks lie at least the seconds that were asked for, if a broker answered at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from seawall.init.seen import Ages, BrokerAddress, Cluster, Listing, Look, Seen, SeenBroker
from seawall.policy.cluster import ClusterSource, SeenTopic
from seawall.policy.cluster import look as look_at_topics
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    DescribedTopic,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.log_sizes import LogDir, Quorum

T = TypeVar("T")

BROKERS_AT_ONCE = 8
DAY_MS = 86_400_000
TICK_S = 0.25  # how often progress is told while time passes
STEPS = 6  # of `Progress`, beside the seconds


class Progress(Protocol):
    """Told what is being done, and how many of all seconds and steps that is."""

    def __call__(self, what: str, *, done: float, total: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """The clocks, given by tests."""

    now_ms: Callable[[], int]
    monotonic_s: Callable[[], float]
    sleep: Callable[[float], None]


def look(cluster: Cluster, *, observe_s: float, time: Time, progress: Progress) -> Seen:
    """Raises ClusterUnreachable; all else that goes wrong is `Unknown` where it belongs."""
    steps = _Steps(progress, total=STEPS + observe_s)
    steps.next("asking for brokers and topics")
    listing = cluster.listing()
    partitions = [
        TopicPartition(topic, number) for topic, held in listing.topics.items() for number in sorted(held)
    ]
    steps.next("asking how far each log is")
    first = _look(cluster, listing, partitions, time)
    steps.next("asking what is configured")
    asked_once = _BrokersOnce(cluster)
    settings = look_at_topics(asked_once, listing.topics)
    steps.next("asking how old each log is")
    ages = _ages(cluster, [each for each in partitions if _is_local(settings.get(each.topic))], time)
    quorum = _quorum(cluster, listing)
    while (left_s := first.at_s + observe_s - time.monotonic_s()) > 0:
        steps.observed("observing how much comes in", observe_s - left_s)
        time.sleep(min(TICK_S, left_s))
    steps.observed("asking again how far each log is", observe_s)
    last, log_dirs = _looked(cluster, listing, partitions, time)
    steps.next("asking brokers about themselves")
    features = _of_each(listing, lambda each: cluster.word_of(each).features())
    return Seen(
        cluster_id=listing.cluster_id,
        brokers=tuple(
            SeenBroker(
                address=each,
                log_dirs=log_dirs[each.broker_id],
                features=features[each.broker_id],
                settings=asked_once.broker_settings(each.broker_id),
            )
            for each in listing.brokers
        ),
        quorum=quorum,
        topics=listing.topics,
        settings={name: settings.get(name, _GONE) for name in listing.topics},
        first=first,
        last=last,
        ages=ages,
    )


_GONE = Unknown(cause=Cause.NO_SUCH_TOPIC, reason="it was deleted meanwhile")


class _Steps:
    def __init__(self, progress: Progress, *, total: float) -> None:
        self._progress, self._total = progress, total
        self._steps, self._observed_s = 0, 0.0

    def next(self, what: str) -> None:
        self._tell(what)
        self._steps += 1

    def observed(self, what: str, seconds: float) -> None:
        self._observed_s = max(self._observed_s, seconds)
        self._tell(what)

    def _tell(self, what: str) -> None:
        self._progress(what, done=self._steps + self._observed_s, total=self._total)


class _BrokersOnce(ClusterSource):
    """Each broker is asked for its settings once, whoever wants them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[int, BrokerSettings | Unknown] = {}

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown:
        if broker_id not in self._known:
            self._known[broker_id] = self._cluster.broker_settings(broker_id)
        return self._known[broker_id]

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        return self._cluster.describe_topics(topics)

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        return self._cluster.topic_settings(topics)


def _look(cluster: Cluster, listing: Listing, partitions: list[TopicPartition], time: Time) -> Look:
    return _looked(cluster, listing, partitions, time)[0]


def _looked(
    cluster: Cluster, listing: Listing, partitions: list[TopicPartition], time: Time
) -> tuple[Look, Mapping[int, tuple[LogDir, ...] | Unknown]]:
    log_dirs = _of_each(listing, lambda each: cluster.word_of(each).log_dirs())
    offsets = cluster.leader_offsets(partitions)
    sizes = {
        (broker_id, partition): size_bytes
        for broker_id, found in log_dirs.items()
        if not isinstance(found, Unknown)
        for log_dir in found
        for partition, size_bytes in log_dir.size_bytes.items()
    }
    return Look(at_s=time.monotonic_s(), offsets=offsets, size_bytes=sizes), log_dirs


def _ages(cluster: Cluster, partitions: list[TopicPartition], time: Time) -> Ages:
    now_ms = time.now_ms()
    return Ages(
        now_ms=now_ms,
        oldest=cluster.first_since(partitions, 0),
        last_day=cluster.first_since(partitions, now_ms - DAY_MS),
    )


def _is_local(found: SeenTopic | Unknown | None) -> bool:
    """Kafka would read remote segments to find a time in them, which costs, so it is not asked to."""
    return isinstance(found, SeenTopic) and not found.settings.remote_storage_enable.value


def _quorum(cluster: Cluster, listing: Listing) -> Quorum | Unknown:
    found: Quorum | Unknown = Unknown(cause=Cause.NO_ANSWER, reason="no broker is known")
    for each in listing.brokers[:3]:  # any of them knows, or none
        found = cluster.word_of(each).quorum()
        if isinstance(found, Quorum):
            break
    return found


def _of_each(listing: Listing, ask: Callable[[BrokerAddress], T]) -> dict[int, T]:
    with ThreadPoolExecutor(BROKERS_AT_ONCE, thread_name_prefix="seawall-broker") as pool:
        answers = pool.map(ask, listing.brokers)
        return dict(zip((each.broker_id for each in listing.brokers), answers, strict=True))
