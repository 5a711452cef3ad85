"""Makes a topic by the admin API.

Refuses to judge what is there: whoever asked looks at the topic afterwards, as brokers know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeout  # another class, before Python 3.11

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not re-exported

from tiering.cluster.quiet import QUIET


def make_topic(
    config: Mapping[str, str],
    name: str,
    *,
    partitions: int,
    replication: int,
    settings: Mapping[str, str],
    deadline_s: float,
) -> str | None:
    """Make a topic; why it could not be made, or None. One that somebody else has just made will do.

    Brokers may not know it yet when this returns, and what it is like is the caller's to look at.
    """
    new = NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(settings))
    client = AdminClient(dict(config), logger=QUIET)  # dropped before the answer is there, it would cancel
    try:
        client.create_topics([new], request_timeout=deadline_s)[name].result(2 * deadline_s)
    except KafkaException as refused:
        error: KafkaError = refused.args[0]
        return None if error.code() == KafkaError.TOPIC_ALREADY_EXISTS else error.str()
    except FutureTimeout:
        return "the client did not answer"
    return None
