"""Which offset is answered from where, and what each answer says of the log."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.tiering.reader.tier import T0_MS, LogOfBatches, Tier
from tests.tiering.serve.broker import TOPIC, Partition
from tests.tiering.serve.scene import TIERED, a_log, fetch_of, fetched, read_all, some, staged
from tests.tiering.serve.wire import WireClient
from tiering.segments.records import Gap, GapCause
from tiering.serve.protocol import apis
from tiering.serve.protocol.asking import (
    EpochPartition,
    EpochTopic,
    ListedPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetForLeaderEpochRequest,
)
from tiering.serve.protocol.codes import Code
from tiering.serve.service import NODE_IDS_FROM


def tiered(log: LogOfBatches, *cuts: int) -> Tier:
    """Copies of the batches between cuts."""
    tier = Tier()
    tier.claim(log)
    for first, last in pairwise(cuts):
        tier.copy(log, first, last)
    return tier


def contents(log: LogOfBatches, first: int = 0) -> bytes:
    return b"".join(batch.content for batch in log.batches[first:])


@pytest.mark.parametrize("max_bytes", [1, 300, 100_000])
def test_every_batch_comes_once_over_segments_and_the_seam(max_bytes: int) -> None:
    """In order and to the byte, however little is asked for at once; the first batch is whole."""
    log = a_log(30)
    with staged(Partition(log, local_start=44), tiered(log, 0, 7, 15, 24)) as scene, scene.client() as client:
        assert read_all(client, 0, log.end, partition_max_bytes=max_bytes) == contents(log)
        assert scene.counters["tier_bytes"] == len(b"".join(each.content for each in log.batches[:24]))
        assert scene.counters["handovers"] == 1
        assert scene.counters["out_of_range"] == 0


def test_answers_carry_the_leaders_marks_and_our_log_start() -> None:
    """From the store and from the leader alike."""
    log = a_log(20)
    partition = Partition(log, local_start=20, last_stable=36)
    with staged(partition, tiered(log, 0, 8, 12)) as scene, scene.client() as client:
        for offset in (0, 23, 24, 39):
            data = fetched(client, offset)
            assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (40, 36, 0)


def test_what_lies_below_the_tier_is_the_brokers_if_it_has_it() -> None:
    """Tiering began at offset 10: the broker's older offsets are read from it, and the log begins there."""
    log = a_log(20)
    with staged(Partition(log, local_start=4), tiered(log, 5, 12)) as scene, scene.client() as client:
        tier = scene.tier.log
        assert (tier.start, tier.end) == (0, 0) or tier.start <= 10
        assert read_all(client, 4, log.end) == contents(log, 2)
        assert fetched(client, 4).log_start_offset == 4
        assert fetched(client, 3).error_code == Code.OFFSET_OUT_OF_RANGE


def test_a_hole_between_tier_and_broker_is_come_again_and_never_out_of_range() -> None:
    """The broker trimmed beyond the frontier: the client waits for the tier; outside the log it is told."""
    log = a_log(20)
    partition = Partition(log, local_start=30)
    with staged(partition, tiered(log, 0, 10)) as scene, scene.client() as client:
        assert fetched(client, 20).error_code == Code.KAFKA_STORAGE_ERROR
        assert fetched(client, 29).error_code == Code.KAFKA_STORAGE_ERROR
        assert fetched(client, 30).error_code == Code.NONE
        assert fetched(client, 41).error_code == Code.OFFSET_OUT_OF_RANGE
        assert scene.counters["seam_retries"] == 2
        scene.tier.copy(log, 10, 16)  # the agent catches up
        assert read_all(client, 20, log.end) == contents(log, 10)


@pytest.mark.parametrize("skip_gaps", [False, True])
def test_a_gap_on_record_is_an_error_or_is_passed_by_setting(skip_gaps: bool) -> None:
    """Come again, as the bytes may be found; or the batches behind it, as of a compacted log."""
    log = a_log(20)
    tier = Tier()
    tier.gaps.append(
        Gap(
            start_offset=10,
            end_offset=16,
            cause=GapCause.RETENTION_OVERTOOK,
            leader_epoch=0,
            event_id="lost",
            recorded_at_ms=T0_MS,
        )
    )
    tier.claim(log)
    tier.copy(log, 0, 5)
    tier.copy(log, 8, 14)
    with staged(Partition(log, local_start=24), tier, skip_gaps=skip_gaps) as scene, scene.client() as client:
        data = fetched(client, 12)
        if skip_gaps:
            assert read_all(client, 12, log.end) == contents(log, 8)
        else:
            assert data.error_code == Code.KAFKA_STORAGE_ERROR
            assert scene.counters["gaps_met"] == 1
        assert read_all(client, 16, log.end) == contents(log, 8)


def test_aborted_transactions_are_told_over_segments() -> None:
    """With read_committed: those that overlap what is given; with read_uncommitted none, as by a broker."""
    log = LogOfBatches()
    log.append(some(2))
    log.append(some(2), producer_id=7)
    log.append(some(2))
    log.append(some(2), producer_id=7)
    log.append(some(2), producer_id=8)
    log.finish(7, commit=False)
    log.finish(8, commit=True)
    log.append(some(20))
    with staged(Partition(log), tiered(log, 0, 3, 6, 8)) as scene, scene.client() as client:
        first = fetched(client, 0, committed=True, partition_max_bytes=1)
        assert [each.first_offset for each in first.aborted_transactions or ()] == []
        inside = fetched(client, 6, committed=True)
        assert [(each.producer_id, each.first_offset) for each in inside.aborted_transactions or ()] == [
            (7, 2)
        ]
        assert not fetched(client, 6).aborted_transactions
        behind = fetched(client, 11, committed=True)
        assert not behind.aborted_transactions


def test_stale_and_unknown_epochs_are_refused_as_by_a_leader() -> None:
    """So a client that is behind, or ahead of, a change of leader asks for metadata again."""
    log = a_log(10)
    partition = Partition(log, epoch=4)
    with staged(partition, tiered(log, 0, 6)) as scene, scene.client() as client:
        for offset in (0, 12):
            assert fetched(client, offset, epoch=4).error_code == Code.NONE
            assert fetched(client, offset, epoch=3).error_code == Code.FENCED_LEADER_EPOCH
            assert fetched(client, offset, epoch=5).error_code == Code.UNKNOWN_LEADER_EPOCH


def test_an_epoch_ends_where_the_logs_own_history_says() -> None:
    """Though the broker's history is cut: a client that read beyond a truncation is told where it was."""
    log = a_log(4)
    log.epoch = 2
    for _ in range(4):
        log.append(some(2))
    log.epoch = 5
    for _ in range(4):
        log.append(some(2))
    partition = Partition(log, local_start=20, epoch=5)
    with staged(partition, tiered(log, 0, 4, 8, 10)) as scene, scene.client() as client:
        assert epoch_end(client, 0) == (0, 8)
        assert epoch_end(client, 1) == (0, 8)
        assert epoch_end(client, 2) == (2, 16)
        assert epoch_end(client, 4) == (2, 16)
        assert epoch_end(client, 5) == (5, 24)  # its leader's word
        assert len(scene.tier.log.coverage.lineage) == 3


def epoch_end(client: WireClient, epoch: int) -> tuple[int, int]:
    asked = EpochTopic(topic=TOPIC, partitions=(EpochPartition(partition=TIERED, leader_epoch=epoch),))
    answer = client.ask(apis.OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest(topics=(asked,)))
    found = answer.topics[0].partitions[0]
    assert found.error_code == Code.NONE
    return found.leader_epoch, found.end_offset


def listed(client: WireClient, timestamp: int, *, committed: bool = False) -> ListedPartition:
    asked = ListOffsetsPartition(partition_index=TIERED, timestamp=timestamp)
    request = ListOffsetsRequest(
        isolation_level=int(committed), topics=(ListOffsetsTopic(name=TOPIC, partitions=(asked,)),)
    )
    found: ListedPartition = client.ask(apis.LIST_OFFSETS, 9, request).topics[0].partitions[0]
    return found


def test_offsets_by_time_and_by_mark() -> None:
    """Earliest, latest by isolation, earliest local, latest tiered, latest time, and times in both tiers."""
    log = a_log(10)
    log.append(some(2, at_ms=T0_MS + 5000))  # out of order: later than all behind it
    for _ in range(5):
        log.append(some(2, at_ms=T0_MS + 100))
    partition = Partition(log, local_start=24, last_stable=30)
    with staged(partition, tiered(log, 0, 6, 13)) as scene, scene.client() as client:
        assert listed(client, -2).offset == 0
        assert listed(client, -1).offset == 32
        assert listed(client, -1, committed=True).offset == 30
        assert listed(client, -5).offset == 25
        assert listed(client, -3).offset == 21
        assert listed(client, T0_MS).offset == 0
        assert listed(client, T0_MS + 13).offset == 13
        assert listed(client, T0_MS + 50).offset == 20
        found = listed(client, T0_MS + 5001)
        assert (found.offset, found.timestamp) == (21, T0_MS + 5001)
        assert listed(client, T0_MS + 5002).offset == -1
        assert scene.counters["out_of_range"] == 0


def test_prefixes_appear_and_vanish_as_the_metadata_topic_says() -> None:
    """Without a restart, over one connection: what is gone is out of range, what is back is read."""
    log = a_log(20)
    tier = tiered(log, 0, 6, 12)
    with staged(Partition(log, local_start=20), tier) as scene, scene.client() as client:
        assert read_all(client, 0, log.end) == contents(log)
        tier.log_start = 12
        tier.claim(log)
        assert fetched(client, 11).error_code == Code.OFFSET_OUT_OF_RANGE
        assert listed(client, -2).offset == 12
        tier.log_start = 0
        tier.claim(log)
        assert listed(client, -2).offset == 0
        assert read_all(client, 0, log.end) == contents(log)


def test_no_answer_names_a_broker() -> None:
    """Metadata of any kind names our nodes alone, whoever leads; the same at every instance."""
    log = a_log(10)
    with staged(Partition(log, leader=2), tiered(log, 0, 6), brokers=3, endpoints=2, nodes=2) as scene:
        answers = []
        for endpoint in scene.endpoints:
            ports = {each.port for each in endpoint.nodes}
            with WireClient(str(endpoint.nodes[0])) as client:
                for topics in (None, (MetadataRequestTopic(name=TOPIC),)):
                    answer = client.ask(apis.METADATA, 12, MetadataRequest(topics=topics))
                    assert {each.port for each in answer.brokers} == ports
                    assert {each.node_id for each in answer.brokers} == {NODE_IDS_FROM, NODE_IDS_FROM + 1}
                    [topic] = answer.topics
                    [found] = topic.partitions
                    assert found.leader_id == found.replica_nodes[0] == found.isr_nodes[0]
                    answers.append(found)
        assert len(set(answers)) == 1


def test_a_leader_that_moves_is_followed() -> None:
    """The client is told to look again, does, and goes on; from the store it can go on meanwhile."""
    log = a_log(20)
    partition = Partition(log, leader=1)
    with staged(partition, tiered(log, 0, 6), brokers=2) as scene, scene.client() as client:
        assert fetched(client, 30).error_code == Code.NONE
        partition.leader, partition.epoch = 2, 1
        scene.run(scene.world.brokers[1].stop())
        codes = [fetched(client, 30).error_code for _ in range(3)]
        assert codes[0] == Code.NOT_LEADER_OR_FOLLOWER
        assert codes[-1] == Code.NONE
        assert read_all(client, 0, log.end) == contents(log)


def test_history_is_read_while_no_broker_answers() -> None:
    """What is in the store needs no leader once the topic is known."""
    log = a_log(20)
    with staged(Partition(log), tiered(log, 0, 12)) as scene, scene.client() as client:
        assert fetched(client, 0).error_code == Code.NONE
        scene.run(scene.world.brokers[1].stop())
        data = fetched(client, 2)
        assert data.error_code == Code.NONE
        assert data.high_watermark == 40
        assert read_all(client, 0, 24) == contents(log)[: -len(contents(log, 12))]


def test_one_request_over_both_tiers_does_not_wait_for_the_tail() -> None:
    """A partition with nothing new beside one in the store: the answer comes at once, and is whole."""
    log = a_log(20)
    with staged(Partition(log), tiered(log, 0, 12), others=3) as scene, scene.client(timeout_s=20) as client:
        request = fetch_of((0, 0), (TIERED, 0), (1, 0), max_wait_ms=3_600_000)
        answer = client.ask(apis.FETCH, 13, request)
        codes = [(each.partition_index, each.error_code) for each in answer.responses[0].partitions]
        assert codes == [(0, 0), (TIERED, 0), (1, 0)]
        assert b"".join(answer.responses[0].partitions[1].records or ()).startswith(log.batches[0].content)


def test_the_slowest_leader_holds_nobody_up() -> None:
    """Two leaders, of which one has news: its records come, and the other's answer is kept for next time."""
    log = a_log(20)
    with staged(Partition(log, leader=1), Tier(), brokers=2, others=1) as scene, scene.client() as client:
        scene.world.partitions[0].leader = 2
        quiet = scene.world.partitions[0].log
        for offset in (0, 10, 20):
            answer = client.ask(apis.FETCH, 13, fetch_of((0, 0), (TIERED, offset), max_wait_ms=600))
            empty, full = answer.responses[0].partitions
            assert not b"".join(empty.records or ())
            assert b"".join(full.records or ()).startswith(log.batches[offset // 2].content)
        asked = [broker for broker, name, _ in scene.world.asked if name == "Fetch"]
        assert asked.count(2) == 1
        quiet.append(some(1))
        answer = client.ask(apis.FETCH, 13, fetch_of((0, 0), (TIERED, 40), max_wait_ms=20_000))
        assert b"".join(answer.responses[0].partitions[0].records or ()) == contents(quiet)
