"""What every topic must be like that an acknowledged record may not be lost from, and is deleted by time.

    max.message.bytes                room for the largest record that is written
    unclean.leader.election.enable   false
    min.insync.replicas              2, of three replicas or more: else one disk's word is an acknowledgement

Owns these rules; how long a topic keeps is its owner's. Invariant: `settings` of any replication have no
fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from tiering.cluster.interface import DescribedTopic, TopicSettings


def settings(replication: int, message_bytes_max: int) -> dict[str, str]:
    """What one is made with."""
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "max.message.bytes": str(message_bytes_max),
        "message.timestamp.type": "LogAppendTime",  # a host whose clock is wrong ages nothing
        "min.insync.replicas": str(_in_sync_least(replication)),
        "unclean.leader.election.enable": "false",
    }


def faults(described: DescribedTopic, found: TopicSettings, message_bytes_max: int) -> Iterator[str]:
    """Everything that is wrong, in words."""
    if found.max_message_bytes.value < message_bytes_max:
        yield f"max.message.bytes is {found.max_message_bytes.value}, less than {message_bytes_max}"
    if found.unclean_leader_election_enable.value:
        yield "unclean.leader.election.enable is true"
    replication = min(len(each.replicas) for each in described.partitions.values())
    if not _in_sync_least(replication) <= found.min_insync_replicas.value <= replication:
        yield f"min.insync.replicas is {found.min_insync_replicas.value}, of {replication} replicas"


def _in_sync_least(replication: int) -> int:
    return max(1, min(2, replication - 1))
