"""Which settings are told: those that can shorten a log, or decide whether what was acknowledged stays.

Owns the lists. TOPIC_KEYS names, for each setting of a topic, the settings of a broker that stand behind it
where the topic has none of its own: the first that is set counts, times its factor. (Kafka's
ServerTopicConfigSynonyms; what DescribeConfigs answers of a topic is of whichever broker was asked.)

Invariant: no key is of a kind that Kafka keeps secret.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiering.cluster.settings import MS_PER_HOUR, MS_PER_MINUTE

Behind = tuple[tuple[str, int], ...]

TOPIC_KEYS: Mapping[str, Behind] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MS_PER_MINUTE),
        ("log.retention.hours", MS_PER_HOUR),
    ),
    "retention.bytes": (("log.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "remote.storage.enable": (),
    "remote.log.copy.disable": (),
    "remote.log.delete.on.disable": (),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", MS_PER_HOUR)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", MS_PER_HOUR)),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}

# Of a broker alone: what runs, how often (the rules' graces are made of these), and what new topics get.
_OF_BROKERS = (
    "default.replication.factor",
    "delete.topic.enable",
    "log.cleaner.enable",
    "log.flush.offset.checkpoint.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
    "log.retention.check.interval.ms",
    "remote.log.manager.task.interval.ms",
    "remote.log.metadata.manager.class.name",
    "remote.log.storage.manager.class.name",
    "remote.log.storage.system.enable",
    "replica.high.watermark.checkpoint.interval.ms",
    "replica.lag.time.max.ms",
)
BROKER_KEYS = tuple(sorted({*_OF_BROKERS, *(name for behind in TOPIC_KEYS.values() for name, _ in behind)}))
