"""The questions that starting a broker asks of it, through confluent-kafka; its errors stop here.

Owns no server and no topic. Clients are made where they are used and thrown away: an AdminClient that has
lived through an election can answer "no leader" for a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

# librdkafka reports every refused connection; while a broker starts or is down that is expected.
_silent = logging.getLogger("seawall.local.kafka.client")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


def admin_client(bootstrap: str, settings: Mapping[str, str | int] | None = None) -> AdminClient:
    """An admin client that says nothing on the terminal."""
    return AdminClient({"bootstrap.servers": bootstrap, **(settings or {})}, logger=_silent)


def live_broker_ids(bootstrap: str, *, timeout_s: float = 2.0) -> frozenset[int]:
    """The ids of the brokers that the cluster considers alive (unfenced); empty if nobody answers."""
    try:
        metadata = admin_client(bootstrap).list_topics(timeout=timeout_s)
    except KafkaException:
        return frozenset()
    return frozenset(metadata.brokers)
