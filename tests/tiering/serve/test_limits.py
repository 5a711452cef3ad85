"""Each limit that no client of good will meets: exceeded, it is kept, counted, and nothing is lost by it."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress

import pytest

from tests.tiering.segments.strategies import LOG, log_record, segment
from tests.tiering.segments.topic import Topic
from tests.tiering.serve.broker import TOPIC, Partition
from tests.tiering.serve.scene import TIERED, a_log, fetch_of, fetched, read_all, staged
from tests.tiering.serve.test_hostile import simple
from tests.tiering.serve.test_room import large_produce
from tests.tiering.serve.test_seam import contents, tiered
from tests.tiering.serve.wire import HungUp
from tiering.log.wire import Uuid
from tiering.segments.table import ReferenceTable
from tiering.serve.cluster import Cluster
from tiering.serve.coordinators import Coordinators
from tiering.serve.counters import Counters
from tiering.serve.marks import Marks, MarksOf
from tiering.serve.protocol import apis
from tiering.serve.protocol.asking import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataResponse,
    MetadataTopic,
)
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.session import FindCoordinatorRequest
from tiering.serve.server import Access
from tiering.serve.service import Limits
from tiering.serve.tier import TierTable
from tiering.serve.upstream import Address
from tiering.serve.who import Kept


def test_who_does_not_sign_in_is_let_go() -> None:
    """sign_in_s: where clients are to show who they are, one that says nothing does not keep its place."""
    with simple(access=Access(sasl=True), limits=Limits(sign_in_s=0.3)) as (scene, _):
        with scene.client() as client:
            assert client.is_hung_up()
        assert scene.counters["clients_idle"] == 1


def test_a_leader_is_not_kept_waiting_for_longer() -> None:
    """tail_wait_ms_max: a client that would wait an hour for news is told soon that there is none."""
    with simple(limits=Limits(tail_wait_ms_max=300)) as (scene, _), scene.client() as client:
        data = fetched(client, 40, max_wait_ms=3_600_000)
        assert (data.error_code, b"".join(data.records or ())) == (Code.NONE, b"")
        assert scene.counters["waits_cut"] == 1


def test_one_answer_is_no_larger() -> None:
    """answer_bytes_max: from the store and from leaders alike, and what is left comes next."""
    with simple(limits=Limits(answer_bytes_max=600)) as (scene, log), scene.client() as client:
        for offset in (0, 26):
            content = b"".join(fetched(client, offset).records or ())
            assert 0 < len(content) <= 600
        assert scene.counters["answers_cut"] == 2
        assert read_all(client, 0, log.end) == contents(log)


def test_partitions_of_one_answer_take_turns() -> None:
    """tiered_at_once: the others are answered with nothing, and are first the next time."""
    with simple(limits=Limits(tiered_at_once=1)) as (scene, _), scene.client() as client:
        request = fetch_of((TIERED, 0), (TIERED, 4), (TIERED, 8))
        had = set()
        for _ in range(3):
            [topic] = client.ask(apis.FETCH, 13, request).responses
            full = [number for number, each in enumerate(topic.partitions) if b"".join(each.records or ())]
            assert len(full) == 1
            had |= set(full)
        assert had == {0, 1, 2}
        assert scene.counters["turns_put_off"] == 6


def test_a_write_that_is_too_large_is_not_read() -> None:
    """produce_bytes_max: it is hung up on; a smaller one is read to be refused."""
    with simple(limits=Limits(produce_bytes_max=100_000)) as (scene, _):
        with scene.client() as client:
            client.send(large_produce(50_000))
            assert client.receive()
        with scene.client() as client:
            with suppress(OSError):
                client.send(large_produce(100_000))
            with pytest.raises(HungUp):
                client.receive()
        assert scene.counters["requests_too_large"] == 1
        assert scene.counters["writes_refused"] == 1


def test_open_reads_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """CURSORS_MAX: of five readers three find their read dropped, begin anew, and miss nothing."""
    monkeypatch.setattr("tiering.serve.cursors.CURSORS_MAX", 2)
    with simple() as (scene, log), ExitStack() as stack:
        clients = [stack.enter_context(scene.client()) for _ in range(5)]
        for number, client in enumerate(clients):
            assert fetched(client, 4 * number, partition_max_bytes=1).error_code == Code.NONE
        assert scene.counters["cursors_dropped"] == 3
        for client in clients:
            assert read_all(client, 0, log.end, partition_max_bytes=300) == contents(log)


def test_one_client_is_connected_to_few_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """UPSTREAMS_MAX: the connection that was opened first is closed, and opened again when it is needed."""
    monkeypatch.setattr("tiering.serve.client.UPSTREAMS_MAX", 1)
    log = a_log(20)
    with staged(Partition(log), tiered(log, 0, 2), brokers=2, others=1) as scene, scene.client() as client:
        scene.world.partitions[0].leader = 2
        for partition, offset in ((TIERED, 20), (0, 0), (TIERED, 20)):
            request = fetch_of((partition, offset), max_wait_ms=10)
            [topic] = client.ask(apis.FETCH, 13, request).responses
            assert topic.partitions[0].error_code == Code.NONE
        assert scene.counters["upstreams_dropped"] >= 2


def test_offsets_are_asked_for_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """AT_ONCE: all partitions of a request are answered all the same."""
    monkeypatch.setattr("tiering.serve.offsets.AT_ONCE", 2)
    log = a_log(4)
    with staged(Partition(log), tiered(log, 0, 2), others=3) as scene, scene.client() as client:
        wanted = tuple(ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(4))
        request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=TOPIC, partitions=wanted),))
        [topic] = client.ask(apis.LIST_OFFSETS, 9, request).topics
        assert [(each.partition_index, each.offset) for each in topic.partitions] == [
            (each, 8 if each == TIERED else 0) for each in range(4)
        ]
        assert scene.counters["offsets_queued"] == 2


def test_groups_beyond_the_limit_of_one_lookup_are_to_be_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KEYS_MAX: each is answered, those beyond by an error that clients try again: all are found."""
    monkeypatch.setattr("tiering.serve.groups.KEYS_MAX", 2)
    with simple() as (scene, _), scene.client() as client:
        left, rounds = tuple(f"group-{number}" for number in range(5)), 0
        while left:
            answer = client.ask(apis.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=left))
            assert [each.key for each in answer.coordinators] == list(left)
            assert [each.error_code for each in answer.coordinators[:2]] == [Code.NONE] * len(left[:2])
            left = tuple(
                each.key for each in answer.coordinators if each.error_code == Code.COORDINATOR_NOT_AVAILABLE
            )
            rounds += 1
        assert rounds == 3
        assert scene.counters["groups_put_off"] == 3 + 1


def test_what_is_forgotten_is_counted_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """KEPT_MAX, GROUPS_MAX, TOPICS_MAX and KNOWN_MAX: what was used longest ago goes first."""
    monkeypatch.setattr("tiering.serve.who.KEPT_MAX", 2)
    monkeypatch.setattr("tiering.serve.coordinators.GROUPS_MAX", 2)
    counters = Counters()
    asked: list[str] = []

    def may(kept: Kept, name: str) -> bool:
        async def ask() -> bool:
            asked.append(name)
            return True

        return asyncio.run(kept.of((name,), ask))

    kept = Kept(counters)
    assert all(may(kept, name) for name in ("a", "b", "c", "c", "a"))
    assert asked == ["a", "b", "c", "a"]
    known = Coordinators(counters)
    for number, group in enumerate(("a", "b", "c")):
        known.learn(group, Address("broker", number))
    assert (known.of("a"), known.of("c")) == (None, Address("broker", 2))
    assert counters["forgotten"] == 2 + 1

    monkeypatch.setattr("tiering.serve.cluster.TOPICS_MAX", 2)
    monkeypatch.setattr("tiering.serve.marks.KNOWN_MAX", 2)
    cluster = Cluster({"bootstrap.servers": "broker:1"}, counters)
    ids = [Uuid(letter * 21 + "A") for letter in "abc"]
    topics = tuple(
        MetadataTopic(error_code=Code.NONE, name=f"topic {each}", topic_id=each, partitions=())
        for each in ids
    )
    cluster.learn(MetadataResponse(brokers=(), cluster_id="c", controller_id=1, topics=topics))
    assert [cluster.identified(each) is not None for each in ids] == [False, True, True]
    marks = MarksOf(cluster, counters)
    for each in ids:
        marks.learn(each, 0, Marks(high_watermark=1))
    assert counters["forgotten"] == 3 + 1 + 1


def test_more_logs_than_pictures_are_kept_for_are_all_told_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """PICTURES_MAX: a log that was forgotten is made again, as it was; one that is asked for stays."""
    monkeypatch.setattr("tiering.serve.tier.PICTURES_MAX", 2)
    logs = [LOG._replace(partition=each) for each in range(3)]
    topic = Topic()
    for number, log in enumerate(logs):
        topic.claim(log_record(0, log=log))
        topic.copy(segment(number, 0, 10 * (number + 1), log=log))
    tier = TierTable(ReferenceTable([topic.table]), LOG.cluster_id)

    def end_of(partition: int) -> int:
        found = tier.log(LOG.topic_id, partition)
        assert found is not None
        return found.end

    assert [end_of(each) for each in (0, 1, 0, 2)] == [10, 20, 10, 30]
    assert tier.forgotten == 1  # of these, 1 was not asked for the longest
    assert [end_of(each) for each in (0, 2, 1)] == [10, 30, 20]
    assert tier.forgotten == 2
