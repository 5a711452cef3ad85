"""Makes and checks the topics of a shared scrub.

Owns their creation. Refuses one that is not fit, rather than put it right: settings are the operator's.

Invariant: what is returned was looked at after it was made, and was fit; two processes that make it at once
both get the one topic that is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.new_topic.kafka import make_topic
from tiering.scrub.shared.errors import ScrubTopicSilent, ScrubTopicUnfit
from tiering.scrub.shared.topics import (
    LETTERS_RETENTION_MS,
    PARTITIONS,
    REPLICAS,
    RETENTION_MS,
    Names,
    faults,
    settings,
)

DEADLINE_S = 30.0
SETTLE_S = 0.1


def ensure_topics(
    config: Mapping[str, str], names: Names | None = None, *, deadline_s: float = DEADLINE_S
) -> Names:
    """All three, each made if there is none, with as many replicas as there are brokers, up to three.

    Raises ScrubTopicUnfit, ScrubTopicSilent, or a ClusterError.
    """
    names = names or Names()
    cluster = KafkaCluster(config, monotonic_s=time.monotonic)
    wanted = (
        (names.tasks, PARTITIONS, None, RETENTION_MS),
        (names.answers, 1, 1, RETENTION_MS),
        (names.letters, 1, None, LETTERS_RETENTION_MS),
    )
    last_moment_s = time.monotonic() + deadline_s
    for name, partitions, must_have, retention_ms in wanted:
        if _is_fit(cluster, name, must_have):
            continue
        copies = min(REPLICAS, len(cluster.identity().broker_ids))
        refusal = make_topic(
            config,
            name,
            partitions=partitions,
            replication=copies,
            settings=settings(copies, retention_ms),
            deadline_s=deadline_s,
        )
        if refusal is not None:
            raise ScrubTopicSilent(topic=name, what="made", why=refusal)
        while not _is_fit(cluster, name, must_have):
            if time.monotonic() >= last_moment_s:
                raise ScrubTopicSilent(
                    topic=name, what="found", why="brokers do not know it after its creation"
                )
            time.sleep(SETTLE_S)
    return names


def _is_fit(cluster: KafkaCluster, name: str, partitions: int | None) -> bool:
    """Whether it is there; fit, or else an error."""
    described = cluster.describe_topics([name])[name]
    if not isinstance(described, Unknown):
        found = cluster.topic_settings([name])[name]
        if not isinstance(found, Unknown):
            if wrong := "; ".join(faults(described, found, partitions=partitions)):
                raise ScrubTopicUnfit(topic=name, why=wrong)
            return True
        described = found
    if described.cause is Cause.NO_SUCH_TOPIC:
        return False
    raise ScrubTopicSilent(topic=name, what="described", why=described.reason)
