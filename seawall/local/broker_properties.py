"""What stands in a local broker's server.properties: pure, values in, text out.

Everything that these entries leave out is Kafka's default, so that a local broker behaves as an unmodified
one. They only fix what a small, short-lived cluster on one machine needs: addresses, replication factors
that the number of nodes allows, one partition for each internal topic, and memory in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

# Kafka refuses a dedupe buffer under 1 MiB per cleaner thread; its default, 128 MiB, would fill our heap.
CLEANER_BUFFER_BYTES = 4 * 1024 * 1024
RSM_PREFIX = "rsm.config."
RLMM_PREFIX = "rlmm.config."


def node_properties(
    *,
    node_id: int,
    listen: str | None,
    controller_listen: str | None,
    voters: Mapping[int, str],
    log_dirs: Sequence[Path],
    brokers: int,
) -> dict[str, str]:
    """A broker if it has an address for clients, a controller if it has one for controllers, or both.

    `voters` maps each controller's node id to its host:port.
    """
    copies = str(min(3, brokers))
    roles = {"broker": listen, "controller": controller_listen}
    listeners = {"PLAINTEXT": listen, "CONTROLLER": controller_listen}
    properties = {
        "process.roles": ",".join(role for role, at in roles.items() if at is not None),
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{voter}@{at}" for voter, at in sorted(voters.items())),
        "listeners": ",".join(f"{name}://{at}" for name, at in listeners.items() if at is not None),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": ",".join(map(str, log_dirs)),
        "default.replication.factor": copies,
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(CLEANER_BUFFER_BYTES),
    }
    if listen is not None:
        properties["advertised.listeners"] = f"PLAINTEXT://{listen}"
    return properties


def kip405_properties(*, remote_folder: Path, brokers: int) -> dict[str, str]:
    """Kafka's own tiered storage, over files in `remote_folder`, its metadata in `__remote_log_metadata`."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": (
            "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
        ),
        "remote.log.storage.manager.impl.prefix": RSM_PREFIX,
        f"{RSM_PREFIX}dir": str(remote_folder),
        "remote.log.metadata.manager.class.name": (
            "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
        ),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.metadata.manager.impl.prefix": RLMM_PREFIX,
        f"{RLMM_PREFIX}remote.log.metadata.topic.num.partitions": "1",
        f"{RLMM_PREFIX}remote.log.metadata.topic.replication.factor": str(min(3, brokers)),
        f"{RLMM_PREFIX}remote.log.metadata.initialization.retry.interval.ms": "300",
        "remote.log.manager.task.interval.ms": "500",
        "remote.log.manager.thread.pool.size": "2",
        "remote.log.reader.threads": "2",
    }


def as_text(properties: Mapping[str, str]) -> str:
    """java.util.Properties' format; backslashes are its escape character."""
    lines = [f"{key}={value}".replace("\\", "\\\\") for key, value in properties.items()]
    return "\n".join(lines) + "\n"
