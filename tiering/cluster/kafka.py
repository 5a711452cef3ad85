"""The cluster by its admin API: librdkafka's AdminClient behind the protocols of `interface`.

Owns which client is asked, and what is asked again. A client that answers no more, or from what it remembers,
is thrown away: `admin_client` says how that comes. Everything in [kafka.client] of the settings goes to
librdkafka as it is: SASL, TLS, addresses.

Invariant: what got no answer is asked once more at the most, of another client; each question is answered.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AdminClient,
    ConfigResource,
    ResourceType,
)

from tiering.cluster.admin_client.kafka import Connection
from tiering.cluster.config_entries.kafka import typed
from tiering.cluster.errors import ClientRefused, ClusterUnreachable
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    ClusterIdentity,
    DescribedTopic,
    LeaderOffsets,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.settings import Setting

ANSWER_TIMEOUT_S = 5.0  # of each request; a healthy broker takes milliseconds
REOPEN_INTERVAL_S = 10.0  # a client is not thrown away more often than that

K = TypeVar("K")
T = TypeVar("T")
Answers: TypeAlias = Mapping[TopicPartition, LeaderOffsets | Unknown]

_log = logging.getLogger(__name__)


# Ours, and the settings may override them. Cached leaders are forgotten after 10 s, whatever else happens.
_DEFAULTS = {
    "client.id": "seawall-agent",
    "topic.metadata.refresh.interval.ms": "10000",
    "metadata.max.age.ms": "10000",
}
_WORTH_A_NEW_CLIENT = frozenset({Cause.STALE, Cause.NO_ANSWER})


class KafkaCluster:
    """Answers about topics, offsets and settings, to any number of threads; every call keeps its timeouts.

    librdkafka's calls may come from any thread. What may not happen is that a client goes while a request of
    it is under way, as that would be cancelled: each question keeps the client it was begun with.
    `open_client` and `monotonic_s` are given by tests.
    """

    def __init__(
        self,
        librdkafka: Mapping[str, str],
        *,
        monotonic_s: Callable[[], float],
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        open_client: Callable[[dict[str, Any]], AdminClient] | None = None,
    ) -> None:
        self._bootstrap = librdkafka.get("bootstrap.servers", "")
        self._settings: dict[str, Any] = {**_DEFAULTS, **librdkafka}
        self._monotonic_s = monotonic_s
        self._timeout_s = answer_timeout_s
        self._open_client = open_client or (lambda settings: AdminClient(settings, logger=_log))
        self._lock = threading.Lock()  # of the next two
        self._connection = self._opened()
        self._reopened_at_s = monotonic_s() - REOPEN_INTERVAL_S  # the first one may go as soon as it fails

    def identity(self) -> ClusterIdentity:
        """Which cluster answers. Raises ClusterUnreachable."""
        found = self._answered(["cluster"], lambda asked, _: {"cluster": asked.describe_cluster()})["cluster"]
        if isinstance(found, Unknown):
            raise ClusterUnreachable(bootstrap=self._bootstrap, why=found.reason)
        return ClusterIdentity(
            cluster_id=found.cluster_id or "", broker_ids=frozenset(node.id for node in found.nodes)
        )

    def topic_names(self) -> frozenset[str] | Unknown:
        """Of all topics that some broker knows now."""
        return self._answered(["topics"], lambda asked, _: {"topics": asked.topic_names()})["topics"]

    def describe_topics(self, topics: Iterable[str]) -> Mapping[str, DescribedTopic | Unknown]:
        """What any broker knows of these topics. Refreshes what the client believes of their leaders."""
        return self._answered(sorted(set(topics)), Connection.describe_topics)

    def leader_offsets(self, partitions: Iterable[TopicPartition]) -> Answers:
        """What the leader of each partition says now."""
        return self._answered(list(partitions), Connection.ask_leaders)

    def topic_settings(self, topics: Iterable[str]) -> Mapping[str, TopicSettings | Unknown]:
        """What is configured for these topics now, as one broker sees it."""
        found = self._answered(sorted(set(topics)), Connection.describe_topic_configs)
        return {
            name: entries if isinstance(entries, Unknown) else typed(name, entries)
            for name, entries in found.items()
        }

    def topic_entries(self, topics: Iterable[str]) -> Mapping[str, Mapping[str, Setting] | Unknown]:
        """Every entry of these topics, as one broker sees it."""
        return self._answered(sorted(set(topics)), Connection.describe_topic_configs)

    def broker_settings(self, broker_id: int) -> BrokerSettings | Unknown:
        """What a broker gives of itself, static entries and defaults included. It answers for itself."""
        name = str(broker_id)
        resources = [ConfigResource(ResourceType.BROKER, name)]
        entries = self._answered([name], lambda asked, _: asked.describe_configs(resources))[name]
        if isinstance(entries, Unknown):
            return entries
        return BrokerSettings(broker_id=broker_id, entries=entries)

    def _answered(
        self, questions: list[K], ask: Callable[[Connection, list[K]], Mapping[K, T | Unknown]]
    ) -> dict[K, T | Unknown]:
        """An answer to each question. A new client asks once more where this one got none."""
        asked = self._now()
        answers = dict(ask(asked, questions))
        again = [each for each in questions if _cause(answers[each]) in _WORTH_A_NEW_CLIENT]
        if again and (fresh := self._instead_of(asked)) is not None:
            answers |= ask(fresh, again)
        return answers

    def _now(self) -> Connection:
        with self._lock:
            return self._connection

    def _instead_of(self, failed: Connection) -> Connection | None:
        """Another client than this one, by now or from now on; None if a new one was taken a moment ago.

        The old one ends when the last thread that asks it has its answer.
        """
        with self._lock:
            if self._connection is not failed:
                return self._connection
            if self._monotonic_s() - self._reopened_at_s < REOPEN_INTERVAL_S:
                return None
            self._reopened_at_s = self._monotonic_s()
            self._connection = self._opened()
            return self._connection

    def _opened(self) -> Connection:
        try:
            return Connection(self._settings, self._open_client, self._timeout_s)
        except KafkaException as refused:
            raise ClientRefused(why=refused.args[0].str()) from refused


def _cause(answer: object) -> Cause | None:
    return answer.cause if isinstance(answer, Unknown) else None
