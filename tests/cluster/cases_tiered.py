"""Cases of Kafka's own tiered storage (KIP-405): segments copied, deleted, and a whole topic removed.

They make remote segments under the cluster's `remote_folder` and records in `__remote_log_metadata`.
Kafka 4.3.1 knows a record kind for the removal of a partition but never writes it: deleting a topic writes
the removal of each of its segments, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from seawall.local.broker import LocalCluster
from seawall.local.kafka import SILENT, admin_client, delete_topic
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.cases_logs import partition_folder, segment_bases
from tests.cluster.produce import Writer, Written, texts, transactional, written

DEADLINE_S = 60.0
METADATA_TOPIC = "__remote_log_metadata"
# A value begins with the frame version, then the kind of record.
SEGMENT, UPDATE = 0, 1
TIERED = {"remote.storage.enable": "true", "local.retention.bytes": "1"}


def tiered(cluster: LocalCluster) -> Written:
    """`tiered`: closed segments copied away and gone locally, the oldest then deleted by DeleteRecords."""
    topic = "tiered"
    produce.create_topic(cluster, topic, config=TIERED)
    one = transactional(cluster, topic, "txn-tiered")
    plain = Writer(cluster, topic, "plain", {"compression.type": "zstd"})
    for turn in range(4):
        one.begin()
        one.send_all(texts(100, seed=turn))
        one.abort() if turn % 2 else one.commit()
        plain.send_all(texts(100, seed=turn))
    _wait(topic, "every closed segment only remote", lambda: _only_active_is_local(cluster, topic))
    bases = [int(path.name.split("-")[0]) for path in remote_logs(cluster, topic)]
    start = 250
    admin = admin_client(cluster.bootstrap)
    for answer in admin.delete_records([TopicPartition(topic, 0, start)]).values():
        answer.result(DEADLINE_S)
    below = sum(1 for next_base in bases[1:] if next_base <= start)
    _wait_for_events(cluster, topic, copied=len(bases), deleted=below)
    return written(topic, [one, plain], {"log_start": start, "copied": len(bases), "deleted": below})


def tiered_and_deleted(cluster: LocalCluster) -> Written:
    """`tiered-deleted`: copied, then the topic is deleted, and each of its remote segments with it."""
    topic = "tiered-deleted"
    produce.create_topic(cluster, topic, config=TIERED)
    writer = Writer(cluster, topic, "plain")
    writer.send_all(texts(300))
    _wait(topic, "every closed segment only remote", lambda: _only_active_is_local(cluster, topic))
    copied = len(remote_logs(cluster, topic))
    before = remote_events(cluster)
    delete_topic(cluster.bootstrap, topic)
    _wait_for_events(cluster, topic, copied=0, deleted=copied, after=before)
    return written(topic, [writer], {"copied": copied, "deleted": copied})


def remote_logs(cluster: LocalCluster, topic: str) -> list[Path]:
    """LocalTieredStorage's copies of segments: `<topic>-<partition>-<topic id>/<base>-<segment id>.log`."""
    return sorted(cluster.remote_folder.glob(f"kafka-tiered-storage/{topic}-0-*/*.log"))


def remote_events(cluster: LocalCluster) -> Counter[int]:
    """How many records of each kind are in the metadata topic."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.auto.commit": "false"},
        logger=SILENT,
    )
    where = TopicPartition(METADATA_TOPIC, 0, OFFSET_BEGINNING)
    try:
        _, end = consumer.get_watermark_offsets(where, timeout=DEADLINE_S)
        consumer.assign([where])
        kinds: Counter[int] = Counter()
        while kinds.total() < end:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"{METADATA_TOPIC}: {kinds.total()} of {end} records"
            kinds[(message.value() or b"\xff\xff")[1]] += 1
        return kinds
    finally:
        consumer.close()


def _only_active_is_local(cluster: LocalCluster, topic: str) -> bool:
    return bool(remote_logs(cluster, topic)) and len(segment_bases(partition_folder(cluster, topic))) == 1


def _wait_for_events(
    cluster: LocalCluster, topic: str, *, copied: int, deleted: int, after: Counter[int] | None = None
) -> None:
    """A copy is one segment record and one update (finished); a deletion two updates (started, finished)."""
    before = Counter(after or {})
    wanted = before + Counter({SEGMENT: copied, UPDATE: copied + 2 * deleted})
    _wait(topic, f"{wanted} in {METADATA_TOPIC}", lambda: remote_events(cluster) == wanted)


def _wait(topic: str, wanted: str, condition: Callable[[], bool]) -> None:
    wait_until(condition, name=topic, wanted=wanted, deadline_s=DEADLINE_S)
