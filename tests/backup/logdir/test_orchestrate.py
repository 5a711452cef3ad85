"""Which brokers stop and what goes with them, what would take the range again, and all replicas or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backup.logdir.errors import Cleaned, LogDirRestoreError, NotCleanlyStopped
from backup.logdir.orchestrate import Here, restore_here, steps
from backup.logdir.outage import Outage, outage
from backup.logdir.retention import KEEPING, complaints
from backup.logdir.side_files import offsets_text
from tests.backup.logdir.disk import WANTED, Disk, log_of
from tests.tiering.retention.trim_world import settings_with
from tiering.cluster.interface import DescribedPartition, DescribedTopic
from tiering.log.checkpoints import CLEANER_OFFSETS, TopicPartition
from tiering.log.wire import Uuid

TOPIC_ID = Uuid("T" * 22)
BROKERS = st.integers(1, 5)
PARTITION = st.builds(
    lambda replicas, in_sync: DescribedPartition(
        leader_id=replicas[0], replicas=tuple(replicas), isr=tuple(replicas[: max(1, in_sync)])
    ),
    st.lists(BROKERS, min_size=1, max_size=3, unique=True),
    st.integers(0, 3),
)


class Operator:
    """Brokers that stop and start, as this process is told to."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []

    def stop(self, broker_id: int) -> None:
        self.done.append(("stop", broker_id))

    def start(self, broker_id: int) -> None:
        self.done.append(("start", broker_id))


def described(name: str, *partitions: DescribedPartition) -> DescribedTopic:
    return DescribedTopic(topic=name, topic_id=TOPIC_ID, partitions=dict(enumerate(partitions)))


@settings(max_examples=50, deadline=None)
@given(own=PARTITION, others=st.lists(PARTITION, max_size=6))
def test_what_goes_offline_is_what_keeps_no_replica_in_sync(
    own: DescribedPartition, others: list[DescribedPartition]
) -> None:
    """Every replica of the log stops, its leader last, and starts first; a partition is named if and only if
    all of its in-sync replicas are on those brokers."""
    log = TopicPartition("orders", 0)
    found = outage([described("orders", own, *others)], log)

    assert found is not None
    assert found.brokers[0] == found.stopping[-1] == own.leader_id
    assert sorted(found.brokers) == sorted(own.replicas)
    assert found.offline == tuple(
        TopicPartition("orders", number)
        for number, each in enumerate(others, start=1)
        if set(each.isr) <= set(own.replicas)
    )


def test_without_a_leader_nobody_tells_whose_history_counts() -> None:
    """No leader, no such topic: there is no outage to plan."""
    headless = DescribedPartition(leader_id=None, replicas=(1, 2), isr=())
    assert outage([described("orders", headless)], TopicPartition("orders", 0)) is None
    assert outage([], TopicPartition("orders", 0)) is None


def test_the_steps_name_each_host_in_order() -> None:
    """The leader is stopped last and started first; each replica is restored between, and looked at after."""
    told = list(steps(Outage(brokers=(2, 1, 3), offline=()), "orders.plan"))
    hosts = [line.partition("HOST-OF-")[2][:1] for line in told if line.startswith("ssh ")]
    assert hosts == [*"312", *"213", *"213", *"213"]


@pytest.mark.parametrize(
    ("changed", "live_bytes", "said"),
    [
        ({}, None, []),
        ({"retention_ms": "1000"}, None, ["on broker 2 retention is 1000 ms"]),
        ({"retention_bytes": "1"}, 0, ["on broker 2 retention is 1 bytes, and the log would have"]),
        ({"retention_bytes": str(1 << 40)}, 0, []),
        ({"retention_bytes": str(1 << 40)}, None, ["and the log grows against it"]),
        ({"cleanup_policy": "compact,delete"}, None, ["on broker 2 the topic is compacted"]),
    ],
)
def test_retention_that_would_take_it_again_is_told_by_broker(
    tmp_path: Path, changed: dict[str, str], live_bytes: int | None, said: list[str]
) -> None:
    """By time, by size, by compaction, on the one broker where it is so; what keeps everything is none."""
    records = [each.record for each in Disk(folder=tmp_path, log=log_of(8), first=4).copies((0, 4))]
    keeping = {name.replace(".", "_"): value for name, value in KEEPING.items()}
    of_brokers = {1: settings_with(**keeping), 2: settings_with(**(keeping | changed))}

    found = list(complaints(of_brokers, records, live_bytes=live_bytes, until_ms=4_000_000_000_000))

    assert len(found) == len(said)
    assert all(words in line for words, line in zip(said, found, strict=True))


@pytest.mark.parametrize("error", [None, NotCleanlyStopped, Cleaned])
def test_all_replicas_are_restored_or_none(tmp_path: Path, error: type[LogDirRestoreError] | None) -> None:
    """The last of three cannot be: the others are put back as they were, and all are started, the leader
    first."""
    disks = {
        broker: Disk(folder=tmp_path / str(broker), log=log_of(24), first=14).make() for broker in (1, 2, 3)
    }
    for broker, disk in disks.items():
        properties = disk.log_dir / "meta.properties"
        properties.write_text(properties.read_text().replace("node.id=1", f"node.id={broker}"))
    if error is NotCleanlyStopped:
        (disks[3].log_dir / ".kafka_cleanshutdown").unlink()
    elif error is Cleaned:
        entries = {TopicPartition("orders", WANTED.log.partition): 40}
        (disks[3].log_dir / CLEANER_OFFSETS).write_bytes(offsets_text(entries))
    before = {broker: disk.state() for broker, disk in disks.items()}
    asked, operator = disks[1].asked(disks[1].copies((0, 14))), Operator()
    here = Here(
        asked=replace(asked, wanted=replace(WANTED, broker_id=None)),
        outage=Outage(brokers=(2, 1, 3), offline=()),
        log_dirs={broker: disk.log_dir for broker, disk in disks.items()},
        brokers=operator,
    )

    if error is None:
        assert [each.broker_id for each in restore_here(here, disks[1].pieces)] == [2, 1, 3]
        assert {disk.content()[0] for disk in disks.values()} == {0}
    else:
        with pytest.raises(error):
            restore_here(here, disks[1].pieces)
        assert {broker: disk.state() for broker, disk in disks.items()} == before
    stops, starts = operator.done[:3], operator.done[3:]
    assert stops == [("stop", 3), ("stop", 1), ("stop", 2)]
    assert starts == [("start", 2), ("start", 1), ("start", 3)]
