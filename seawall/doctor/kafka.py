"""Looks at the brokers: does one answer, and can each be reached at the address that it advertises?

The second is where a new cluster most often fails: the first connection goes to `kafka.bootstrap`, all others
go to whatever the brokers say their addresses are.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from seawall.doctor.finding import Finding, fail, ok, skipped, unknown, warn
from seawall.settings import KafkaSettings

ANSWER_TIMEOUT_S = 8.0
CONNECT_TIMEOUT_S = 3.0
CONNECTS_AT_MOST = 12  # enough to see that advertised addresses are wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    broker_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    cluster_id: str | None
    brokers: tuple[Broker, ...]


def examine(settings: KafkaSettings) -> Iterator[Finding]:
    if settings.bootstrap is None:
        remedy = "Set kafka.bootstrap in seawall.toml, or give --bootstrap HOST:PORT."
        yield skipped("kafka", "not configured: kafka.bootstrap is not set", remedy)
        return
    answer = _ask(settings)
    if isinstance(answer, Finding):
        yield answer
        yield unknown("kafka brokers", "no broker answered, so their addresses are not known")
        return
    named = f"cluster {answer.cluster_id}" if answer.cluster_id else "a cluster without an id"
    yield ok("kafka", f"{settings.bootstrap} answers for {named}")
    yield advertised(answer.brokers)


def _ask(settings: KafkaSettings) -> _Cluster | Finding:
    told: list[str] = []

    def on_error(error: KafkaError) -> None:
        # The timeout below only says "timed out"; why no broker answered is told here.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            told.append(error.str())

    quiet: dict[str, Any] = {"error_cb": on_error, "log_level": 0, "client.id": "seawall-doctor"}
    try:
        client = AdminClient({**quiet, **settings.librdkafka()})
    except KafkaException as refused:
        why = refused.args[0].str()
        return fail(
            "kafka", f"librdkafka refuses the settings: {why}", "Correct [kafka.client] in the settings."
        )
    try:
        metadata = client.list_topics(timeout=ANSWER_TIMEOUT_S)
    except KafkaException as failure:
        client.poll(0)  # runs `on_error`
        why = told[-1] if told else failure.args[0].str()
        remedy = "Check kafka.bootstrap, that the broker is up, and security.protocol in [kafka.client]."
        return fail("kafka", f"{settings.bootstrap} does not answer: {why}", remedy)
    brokers = (
        Broker(broker_id=broker.id, host=str(broker.host), port=broker.port)
        for _, broker in sorted(metadata.brokers.items())
    )
    return _Cluster(cluster_id=metadata.cluster_id, brokers=tuple(brokers))


def advertised(brokers: tuple[Broker, ...]) -> Finding:
    """Whether a connection can be made to each broker's own address."""
    subject = "kafka brokers"
    tried = brokers[:CONNECTS_AT_MOST]
    refused = [
        f"{broker.broker_id} at {broker.host}:{broker.port}" for broker in tried if not _is_open(broker)
    ]
    if refused:
        detail = f"cannot be reached at the address they advertise: {', '.join(refused)}"
        return fail(subject, detail, "Correct the brokers' advertised.listeners, or the network between.")
    if len(tried) < len(brokers):
        detail = f"{len(tried)} of {len(brokers)} tried, all reachable"
        return warn(subject, detail, "Nothing to do; the others were not tried.")
    return ok(subject, f"{len(brokers)} reachable at the addresses they advertise")


def _is_open(broker: Broker) -> bool:
    try:
        socket.create_connection((broker.host, broker.port), timeout=CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True
