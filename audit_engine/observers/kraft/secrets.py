"""Which configured values are told.

A ConfigRecord holds what an operator has set in the clear, a key store's password too, and DescribeConfigs
hides what its broker knows to be one. Here nothing but names can tell: a topic has no secrets; of a broker
only what bears on its logs is told, as the name of some plugin's setting says nothing of what it holds.

Invariant: a value that is not told is None in every event, and never on our disk.
"""

from __future__ import annotations

from tiering.log.kraft.topics import ConfigResource

_TOLD_OF_BROKERS = (
    "log.",
    "message.",
    "compression.",
    "min.insync.replicas",
    "unclean.leader.election.",
    "remote.log.manager.",
    "remote.log.index.",
    "remote.log.reader.",
    "remote.fetch.",
    "remote.list.",
    "leader.replication.",
    "follower.replication.",
    "num.",
    "background.threads",
    "max.connection",
)


def is_told(resource: int, key: str) -> bool:
    if resource == ConfigResource.TOPIC:
        return True
    return resource == ConfigResource.BROKER and key.startswith(_TOLD_OF_BROKERS)


def told(resource: int, key: str, value: str | None) -> str | None:
    """The value as an event has it."""
    return value if is_told(resource, key) else None
