"""Hard cases of whole logs, on one broker: transactions, compaction, deletions, recreated topics, churn.

Each function makes its own topic, named in its docstring, and returns what it wrote. Where the broker has to
do something in its own time (clean, delete), the function waits until the files show that it did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from seawall.local.broker import LocalCluster
from seawall.local.kafka import SILENT, admin_client, create_topic, delete_topic, set_config
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.produce import Writer, Written, idempotent, keys, texts, transactional, written

DEADLINE_S = 60.0
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
}


def transactions(cluster: LocalCluster) -> Written:
    """`transactions`: two transactional producers and a plain one interleaved; each transaction is longer
    than a segment, so that it begins in one and its marker lies in another. Some abort, one is empty."""
    topic = "transactions"
    produce.create_topic(cluster, topic)
    one = transactional(cluster, topic, "txn-one")
    two = transactional(cluster, topic, "txn-two", **{"compression.type": "zstd"})
    plain = Writer(cluster, topic, "plain")
    for turn in range(3):
        one.begin()
        one.send_all(texts(60, seed=turn))
        two.begin()
        two.send_all(texts(200, seed=turn))
        plain.send_all(texts(20, seed=turn))
        one.send_all(texts(60, seed=turn + 100))
        one.commit() if turn != 1 else one.abort()
        plain.send_all(texts(40, seed=turn))
        two.abort() if turn != 1 else two.commit()
    one.begin()
    one.commit()  # nothing was sent, so nothing is written
    return written(topic, [one, two, plain])


def hanging_transaction(cluster: LocalCluster) -> Written:
    """`hanging-transaction`: one transaction stays open for ever; the last stable offset stands at its first
    record while others commit, abort and write plainly behind it, over several segments."""
    topic = "hanging-transaction"
    produce.create_topic(cluster, topic)
    plain = Writer(cluster, topic, "plain")
    plain.send_all(texts(10))
    hanging = transactional(cluster, topic, "txn-hanging")
    hanging.begin()
    hanging.send_all(texts(40))
    other = transactional(cluster, topic, "txn-other")
    other.begin()
    other.send_all(texts(100))
    other.abort()
    other.begin()
    other.send_all(texts(50))
    other.commit()
    plain.send_all(texts(50))
    return written(topic, [plain, hanging, other], {"last_stable_offset": 10})


def compaction(cluster: LocalCluster) -> Written:
    """`compacted`: holes; tombstones, whose batches get a delete horizon; and an empty batch.

    The empty batch is the last one of the idempotent producer `early`: every record in it is superseded, but
    the cleaner keeps the batch, with no records, as long as the producer is active, for its sequence number.
    """
    topic = "compacted"
    produce.create_topic(cluster, topic, segment_bytes=8 * 1024, config=COMPACTED)
    early = idempotent(cluster, topic, "early")
    late = idempotent(cluster, topic, "late", **{"compression.type": "lz4"})
    early.send_all(texts(5), key=b"superseded")
    for turn in range(6):
        for key, value in zip(keys(60, distinct=40), texts(60, seed=turn), strict=True):
            late.send(value, key=key)
        late.flush()
    for number in range(0, 40, 4):
        late.send(None, key=f"key-{number:04d}".encode())
    late.send(b"the last word", key=b"superseded")
    late.flush()
    return _cleaned(cluster, topic, [early, late])


def compaction_of_transactions(cluster: LocalCluster) -> Written:
    """`compacted-transactions`: aborted records are cleaned away, the markers stay for a while."""
    topic = "compacted-transactions"
    produce.create_topic(cluster, topic, segment_bytes=8 * 1024, config=COMPACTED)
    one = transactional(cluster, topic, "txn-compacted")
    for turn in range(8):
        one.begin()
        for key, value in zip(keys(20, distinct=12), texts(20, seed=turn), strict=True):
            one.send(value, key=key)
        one.flush()
        one.commit() if turn % 2 else one.abort()
    # The pass that takes a transaction's last records keeps its marker as it is; only a later pass, which
    # finds none, sets the marker's delete horizon.
    _cleaned(cluster, topic, [one])
    return _cleaned(cluster, topic, [one])


def compaction_twice(cluster: LocalCluster) -> Written:
    """`compacted-twice`: no grace for tombstones, so that a second cleaning takes them, and the markers of
    transactions that have no records left, away altogether."""
    topic = "compacted-twice"
    produce.create_topic(
        cluster, topic, segment_bytes=8 * 1024, config=COMPACTED | {"delete.retention.ms": "0"}
    )
    one = transactional(cluster, topic, "txn-compacted-twice")
    plain = Writer(cluster, topic, "plain", {"compression.type": "snappy"})
    for turn in range(3):
        one.begin()
        one.send_all(texts(20, seed=turn), key=b"moving")
        one.commit()
        plain.send_all([None], key=b"moving")
        _cleaned(cluster, topic, [plain])
    return written(topic, [one, plain])


def _cleaned(cluster: LocalCluster, topic: str, writers: list[Writer]) -> Written:
    """Fill the active segment so that everything before it is closed, and wait until that is cleaned."""
    last = writers[-1]
    filler = Writer(cluster, topic, "filler")
    target = max(record.offset for writer in writers for record in writer.acknowledged) + 1
    while _active_base(cluster, topic) < target:
        filler.send_all(texts(10, size_bytes=600), key=b"filler")
    last.acknowledged += filler.acknowledged
    wait_until(
        lambda: _cleaner_position(cluster, topic) >= target,
        name=topic,
        wanted=f"cleaned up to offset {target}",
        deadline_s=DEADLINE_S,
    )
    return written(topic, writers, {"cleaned_up_to_at_least": target})


def partition_folder(cluster: LocalCluster, topic: str, partition: int = 0, node_id: int = 1) -> Path:
    for log_dir in cluster.log_dirs(node_id):
        if (found := log_dir / f"{topic}-{partition}").is_dir():
            return found
    raise FileNotFoundError(f"no log dir of node {node_id} holds {topic}-{partition}")


def segment_bases(folder: Path) -> list[int]:
    """The base offsets of the log segments in a partition folder, in order."""
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def _active_base(cluster: LocalCluster, topic: str) -> int:
    return segment_bases(partition_folder(cluster, topic))[-1]


def _cleaner_position(cluster: LocalCluster, topic: str) -> int:
    """What cleaner-offset-checkpoint says of partition 0: `topic partition offset` lines."""
    for log_dir in cluster.log_dirs():
        checkpoint = log_dir / "cleaner-offset-checkpoint"
        for line in checkpoint.read_text().splitlines() if checkpoint.exists() else []:
            if line.startswith(f"{topic} 0 "):
                return int(line.split()[2])
    return -1


def delete_records(cluster: LocalCluster) -> Written:
    """`delete-records`: a client moved the log start to the middle of a segment; the segments before it are
    renamed to `.deleted` and stay for file.delete.delay.ms."""
    topic = "delete-records"
    produce.create_topic(cluster, topic)
    writer = Writer(cluster, topic, "plain")
    writer.send_all(texts(400))
    start = 203
    admin = admin_client(cluster.bootstrap)
    for answer in admin.delete_records([TopicPartition(topic, 0, start)]).values():
        answer.result(DEADLINE_S)
    _wait_for_first_segment(cluster, topic, lambda base: base > 0)
    return written(topic, [writer], {"log_start": start})


def size_retention(cluster: LocalCluster) -> Written:
    """`size-retention`: the broker deleted old segments by size; the first file's base is the log start."""
    topic = "size-retention"
    produce.create_topic(cluster, topic, config={"retention.bytes": str(3 * produce.SMALL_SEGMENT_BYTES)})
    writer = Writer(cluster, topic, "plain")
    writer.send_all(texts(600))
    _wait_for_first_segment(cluster, topic, lambda base: base > 200)
    return written(topic, [writer])


def _wait_for_first_segment(cluster: LocalCluster, topic: str, accept: Callable[[int], bool]) -> None:
    wait_until(
        lambda: accept(segment_bases(partition_folder(cluster, topic))[0]),
        name=topic,
        wanted="old segments deleted",
        deadline_s=DEADLINE_S,
    )


def recreated_topic(cluster: LocalCluster) -> Written:
    """`recreated`: deleted and made again under the same name; the old folder stays as `…-delete`."""
    topic = "recreated"
    produce.create_topic(cluster, topic)
    Writer(cluster, topic, "before").send_all(texts(100))
    delete_topic(cluster.bootstrap, topic)
    produce.create_topic(cluster, topic)
    after = Writer(cluster, topic, "after")
    after.send_all(texts(50, seed=1))
    return written(topic, [after])


def committed_offsets(cluster: LocalCluster) -> Written:
    """`committed-offsets`: a group commits many times and is deleted: `__consumer_offsets` has tombstones."""
    topic = "committed-offsets"
    produce.create_topic(cluster, topic)
    writer = Writer(cluster, topic, "plain")
    writer.send_all(texts(30))
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "corpus", "enable.auto.commit": "false"}
    consumer = Consumer(settings, logger=SILENT)
    for offset in range(30):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()
    admin = admin_client(cluster.bootstrap)
    admin.delete_consumer_groups(["corpus"])["corpus"].result(DEADLINE_S)
    return written(topic, [writer])


def metadata_churn(cluster: LocalCluster) -> Written:
    """`churn-*`: many topics made, changed and deleted, for the KRaft metadata log; `churn-kept` remains.

    Also a few records of other kinds: access rules, passwords, settings of a broker.
    """
    names = [f"churn-{n:02d}" for n in range(10)]
    for number, name in enumerate([*names, "churn-kept"]):
        create_topic(cluster.bootstrap, name, partitions=1 + number % 4)
        set_config(cluster.bootstrap, name, {"retention.ms": str(3_600_000 + number)})
        set_config(cluster.bootstrap, name, {"retention.ms": "-1", "max.message.bytes": "2000000"})
    for name in names:
        delete_topic(cluster.bootstrap, name)
    set_config(cluster.bootstrap, "1", {"log.cleaner.threads": "1"}, kind=ResourceType.BROKER)
    _rules_and_passwords(cluster)
    writer = Writer(cluster, "churn-kept", "plain")
    writer.send_all(texts(5))
    return written("churn-kept", [writer], {"deleted": names})


def _rules_and_passwords(cluster: LocalCluster) -> None:
    admin = admin_client(cluster.bootstrap)
    fields = (
        *(ResourceType.TOPIC, "churn-", ResourcePatternType.PREFIXED),
        *("User:reader", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    rule = AclBinding(*fields)
    admin.create_acls([rule])[rule].result(DEADLINE_S)
    for answer in admin.delete_acls([AclBindingFilter(*fields)]).values():
        answer.result(DEADLINE_S)
    scram = UserScramCredentialUpsertion(
        "reader", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"not a secret"
    )
    admin.alter_user_scram_credentials([scram])["reader"].result(DEADLINE_S)


LOG_CASES: Mapping[str, Callable[[LocalCluster], Written]] = {
    "transactions": transactions,
    "hanging-transaction": hanging_transaction,
    "compacted": compaction,
    "compacted-transactions": compaction_of_transactions,
    "compacted-twice": compaction_twice,
    "delete-records": delete_records,
    "size-retention": size_retention,
    "recreated": recreated_topic,
    "committed-offsets": committed_offsets,
    "churn-kept": metadata_churn,
}
