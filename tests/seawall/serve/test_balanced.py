"""Two instances behind one address, of which one is killed while a real consumer reads through it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import TopicPartition

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.ports import ReservedPort
from tests.cluster.produce import Writer, create_topic, texts
from tests.faults.clean import assert_clean
from tests.seawall.serve.test_process import serving
from tests.tiering.reader.live import PREFIX, tier_partition
from tests.tiering.serve.balancer import Balancer
from tests.tiering.serve.test_clients import consumer, polled

TOPIC = "served-by-two"
RECORDS = 600
EARLY = 100
LITTLE = {  # so that it is in the middle of it for long
    "fetch.message.max.bytes": 4000,
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 8,
    "reconnect.backoff.max.ms": 500,
}


def test_a_consumer_goes_on_where_an_instance_is_killed(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """The instance that it reads through is killed: each record once and in order, over the seam."""
    create_topic(broker, TOPIC)
    written = Writer(broker, TOPIC, "balanced")
    written.send_all(texts(RECORDS))
    tier_partition(broker, bucket, TOPIC)
    with Balancer() as balancer, ExitStack() as stack:
        at = f"127.0.0.1:{balancer.port}"
        instances = {}
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            own = stack.enter_context(ReservedPort()).address
            more = ("--nodes", "1", "--listen", own, "--advertise", at)
            process, told, _ = stack.enter_context(serving(broker, bucket, folder, *more))
            assert told == at
            instances[own] = process
        balancer.start(list(instances))
        client = consumer(at, **LITTLE)
        client.assign([TopicPartition(TOPIC, 0, 0)])
        found = polled(client, lambda pairs: len(pairs) == EARLY)
        before = dict(balancer.carried)
        killed = balancer.latest
        instances.pop(killed).kill()
        found += polled(client, lambda pairs: len(pairs) == RECORDS - EARLY)
        client.close()
        [left] = instances
        assert found == [(each.offset, each.value) for each in written.acknowledged]
        assert balancer.carried[left] > before.get(left, 0)
        assert balancer.latest == left
    assert_clean(broker, bucket, TOPIC, prefix=PREFIX)
