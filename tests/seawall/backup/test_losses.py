"""A prefix that brokers lost for real, by each way of losing one, put back into the tier and into a topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.backup.logdir.test_on_a_broker import (
    SMALL,
    STARTS_S,
    by_a_checkpoint_beyond_the_end,
    by_a_corrupted_checkpoint,
    by_delete_records,
    by_retention,
)
from tests.backup.logdir.test_on_three_brokers import by_a_corrupted_checkpoint as on_three_nodes
from tests.backup.lost_logs import compare, consumed, earliest, write_all_kinds
from tests.cluster import produce
from tests.seawall.cli.calling import call
from tests.seawall.cli.test_backup import expire, read_all
from tests.tiering.reader.live import tier_partition

ISOLATIONS = ("read_committed", "read_uncommitted")


@pytest.mark.long
@pytest.mark.parametrize(
    ("lose", "segment_bytes", "nodes"),
    [
        (by_delete_records, (64 * 1024, 8 * 1024), 1),
        (by_retention, (4 * 1024, 48 * 1024), 1),
        (by_a_corrupted_checkpoint, SMALL, 1),
        (by_a_checkpoint_beyond_the_end, SMALL, 1),
        (on_three_nodes, SMALL, 3),
    ],
)
def test_what_brokers_lost_is_had_back_from_the_tier_and_from_a_topic(
    lose: Callable[[LocalCluster, str], None],
    segment_bytes: tuple[int, int],
    nodes: int,
    broker: LocalCluster,
    cluster3: LocalCluster,
    bucket: LocalBucket,
    tmp_path: Path,
) -> None:
    """Lost by the broker, then expired in the tier: planned, applied, and read through the tier and through
    a consumer of the topic, it is what was produced, record for record. Segments of several sizes
    and leader epochs; on three nodes the leader that lost it comes back and leads, and the others follow."""
    cluster = broker if nodes == 1 else cluster3
    topic = f"losses-{lose.__name__}-{nodes}"
    first_bytes, then_bytes = segment_bytes
    config = {"file.delete.delay.ms": "0"}
    produce.create_topic(cluster, topic, replication=nodes, segment_bytes=first_bytes, config=config)
    write_all_kinds(cluster, topic)
    kafka.set_config(cluster.bootstrap, topic, {produce.SEGMENT_BYTES: str(then_bytes)})
    first_leader = kafka.leaders(cluster.bootstrap, topic)[0]
    cluster.stop(first_leader)  # another leader epoch, by another broker if there is one
    cluster.restart(first_leader, deadline_s=STARTS_S)
    write_all_kinds(cluster, topic, rounds=1, name=f"{topic}-again")
    leader = kafka.leaders(cluster.bootstrap, topic)[0]
    tiered = tier_partition(cluster, bucket, topic, node_id=leader)
    produced = {each: consumed(cluster, topic, isolation=each, end=tiered.end) for each in ISOLATIONS}
    assert len({epoch for each in tiered.segments for epoch, _ in each.leader_epochs}) > 1
    at = bucket.address
    environ = {
        "SEAWALL_KAFKA__BOOTSTRAP": cluster.bootstrap,
        "SEAWALL_S3__BUCKET": at.bucket,
        "SEAWALL_S3__PREFIX": "reader-tests",
        "SEAWALL_S3__ENDPOINT_URL": at.endpoint_url,
        "SEAWALL_S3__REGION": at.region,
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
        "AWS_EC2_METADATA_DISABLED": "true",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }

    def seawall(*arguments: object) -> None:
        ran = call("backup", *map(str, arguments), environ=environ)
        assert ran.status == 0, ran.stderr

    lose(cluster, topic)
    assert earliest(cluster, topic) > 0
    start = expire(tiered, cluster, bucket, len(tiered.segments) // 2)

    into_topic, into_tier = tmp_path / "topic.plan", tmp_path / "tier.plan"
    seawall("plan", f"{topic}:0", "--offsets", f"0:{tiered.end}", "--target", "topic", "--out", into_topic)
    seawall("restore-topic", into_topic, "--to-topic", f"{topic}-copy", "--confirm")
    seawall("plan", f"{topic}:0", "--out", into_tier)
    seawall("apply", into_tier, "--confirm")

    copied = consumed(cluster, f"{topic}-copy", isolation="read_committed")
    assert [each[1:] for each in copied] == [each[1:] for each in produced["read_committed"]]
    found = read_all(tiered, cluster, bucket)
    assert start > 0
    for isolation, wanted in produced.items():
        compare(found[isolation], wanted)
