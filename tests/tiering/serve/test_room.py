"""What clients take of memory together: a bound for answers and one for requests, though clients are slow."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import ExitStack

import pytest

from seawall.local.waiting import becomes_true
from tests.tiering.serve.broker import Partition
from tests.tiering.serve.scene import TIERED, Scene, a_log, fetch_of, fetched, read_all, some, staged
from tests.tiering.serve.test_hostile import DEADLINE_S, counted, simple
from tests.tiering.serve.test_seam import contents, tiered
from tests.tiering.serve.wire import WireClient
from tiering.reader.interface import ReaderLimits
from tiering.serve.budget import Budget, Room
from tiering.serve.counters import Counters
from tiering.serve.protocol import apis
from tiering.serve.protocol.apis import APIS
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.fetching import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.serve.protocol.frames import LENGTH, request_frame
from tiering.serve.service import Limits

SLOW = 6
MB = 1_000_000


def asked_of_brokers(scene: Scene) -> int:
    return sum(name == "Fetch" for _, name, _ in list(scene.world.asked))


def slow_client(scene: Scene) -> WireClient:
    """It reads nothing, and its kernel takes little for it."""
    client = scene.client(timeout_s=DEADLINE_S)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return client


def test_many_slow_readers_of_the_live_end_take_no_more_than_the_bound() -> None:
    """Each leader's answer waits at its broker for room; who reads meanwhile is given what it asks for."""
    log = a_log(20)
    for _ in range(420):
        log.append(some(1, text="x" * 20_000))
    limits = Limits(answers_bytes_max=20 * MB, connections_max=100, stalled_s=1.0)
    reading = ReaderLimits(chunk_bytes=20_000, ahead_chunks=3, fetchers=4)
    scene_of = staged(Partition(log), tiered(log, 0, 20), limits=limits, reading=reading)
    with scene_of as scene, ExitStack() as stack:
        budget = scene.endpoints[0].service.budget
        request = fetch_of((TIERED, 40), max_bytes=8 * MB, partition_max_bytes=8 * MB)
        with scene.client(timeout_s=DEADLINE_S) as honest:
            assert fetched(honest, 40).error_code == Code.NONE
            asked = asked_of_brokers(scene)
            scene.world.holds = apis.FETCH  # so that all are asked for before the first has come
            for _ in range(SLOW):
                client = stack.enter_context(slow_client(scene))
                client.send(request_frame(APIS[apis.FETCH], 13, 1, "slow", request) * 2)
            assert becomes_true(lambda: asked_of_brokers(scene) == asked + SLOW, deadline_s=DEADLINE_S)
            scene.world.holds = -1
            assert counted(scene, "budget_waits", SLOW - 1)
            for _ in range(3):
                assert read_all(honest, 0, 40) == contents(log)[: -len(contents(log, 20))]
                assert b"".join(fetched(honest, 400).records or ()).startswith(log.batches[380].content)
            assert counted(scene, "clients_slow")
        stack.close()
        assert becomes_true(lambda: scene.endpoints[0].server.client_count == 0, deadline_s=DEADLINE_S)
        assert 7 * MB < budget.most_bytes <= limits.answers_bytes_max
        assert becomes_true(lambda: budget.used_bytes == 0, deadline_s=DEADLINE_S)


def test_many_slow_readers_of_history_take_no_more_than_the_bound() -> None:
    """From half of it on answers are no larger than a share, so that there is one for every client."""
    log = a_log(20)
    for _ in range(420):
        log.append(some(1, text="x" * 20_000))
    limits = Limits(answers_bytes_max=20 * MB, connections_max=100, stalled_s=1.0)
    reading = ReaderLimits(chunk_bytes=MB, ahead_chunks=3, fetchers=4)
    scene_of = staged(Partition(log), tiered(log, 0, 440), limits=limits, reading=reading)
    with scene_of as scene, ExitStack() as stack:
        budget = scene.endpoints[0].service.budget
        request = fetch_of((TIERED, 40), max_bytes=8 * MB, partition_max_bytes=8 * MB)
        for _ in range(SLOW):
            client = stack.enter_context(slow_client(scene))
            client.send(request_frame(APIS[apis.FETCH], 13, 1, "slow", request) * 2)
        assert becomes_true(lambda: budget.used_bytes > 7 * MB, deadline_s=DEADLINE_S)
        with scene.client(timeout_s=DEADLINE_S) as honest:
            data = fetched(honest, 40, max_bytes=8 * MB, partition_max_bytes=8 * MB)
            assert 0 < len(b"".join(data.records or ())) <= 8 * MB
            assert contents(log).startswith(read_all(honest, 0, 40))
        stack.close()
        assert budget.most_bytes <= limits.answers_bytes_max
        assert becomes_true(lambda: budget.used_bytes == 0, deadline_s=DEADLINE_S)


def large_produce(size_bytes: int) -> bytes:
    data = PartitionProduceData(index=TIERED, records=(b"r" * size_bytes,))
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=1000,
        topic_data=(TopicProduceData(name="orders", partition_data=(data,)),),
    )
    return request_frame(APIS[apis.PRODUCE], 9, 1, "writer", request)


def test_many_large_requests_that_are_half_sent_take_no_more_than_the_bound() -> None:
    """Each takes room before it is read, or waits; in time all are ended, and a whole one is answered. One
    that is larger than requests may be (it is read to be refused) may come on top, never two."""
    limits = Limits(requests_bytes_max=MB, request_bytes_max=200_000, request_small_bytes=10_000, frame_s=4.0)
    with simple(limits=limits) as (scene, log), ExitStack() as stack:
        requests = scene.endpoints[0].service.requests
        half_sent = [large_produce(400_000)] * 6 + [request_of(150_000)] * 8
        for frame in half_sent:
            client = stack.enter_context(scene.client(timeout_s=DEADLINE_S))
            client.send(frame[: len(frame) // 2])
        assert counted(scene, "request_waits", 5)
        assert requests.used_bytes > 300_000
        with scene.client(timeout_s=DEADLINE_S) as honest:
            assert read_all(honest, 0, log.end) == contents(log)
        assert counted(scene, "requests_slow", len(half_sent))
        assert requests.most_bytes <= limits.requests_bytes_max + len(large_produce(400_000))
        with scene.client(timeout_s=DEADLINE_S) as writer:
            writer.send(large_produce(400_000))
            assert struct.unpack_from(">i", writer.receive())[0] == 1
        assert becomes_true(lambda: requests.used_bytes == 0, deadline_s=DEADLINE_S)


def request_of(size_bytes: int) -> bytes:
    """A request to read of that size, as far as its head tells."""
    head = struct.pack(">hhih", apis.METADATA, 9, 1, 2) + b"me\0"
    return LENGTH.pack(size_bytes) + head + b"\1" * (size_bytes - len(head))


def test_an_answer_of_a_groups_coordinator_takes_room_too() -> None:
    """Forwarded unread, whatever its size: it is in the count until its client has it."""
    heartbeat = struct.pack(">hhih", apis.HEARTBEAT, 4, 9, 2) + b"me\0" + b"\x06group" + b"anything"
    with simple() as (scene, _), scene.client() as client:
        scene.world.group_answer = b"\0" * 300_000
        client.send(LENGTH.pack(len(heartbeat)) + heartbeat)
        assert client.receive()[4:] == scene.world.group_answer
        budget = scene.endpoints[0].service.budget
        assert budget.most_bytes >= 300_000
        assert becomes_true(lambda: budget.used_bytes == 0, deadline_s=DEADLINE_S)


def test_an_answer_that_nobody_comes_for_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two leaders answers behind the other, and the client stays away: its room is given back."""
    monkeypatch.setattr("tiering.serve.tail.LEFT_S", 0.3)
    log = a_log(20)
    with staged(Partition(log), tiered(log, 0, 2), brokers=2, others=1) as scene, scene.client() as client:
        scene.world.partitions[0].leader = 2
        request = fetch_of((0, 0), (TIERED, 20), max_wait_ms=400)
        answer = client.ask(apis.FETCH, 13, request)
        assert [each.error_code for each in answer.responses[0].partitions] == [Code.NONE, Code.NONE]
        assert counted(scene, "answers_left")
        budget = scene.endpoints[0].service.budget
        assert becomes_true(lambda: budget.used_bytes == 0, deadline_s=DEADLINE_S)


def a_budget(limit_bytes: int, share_bytes: int) -> tuple[Budget, Counters]:
    counters = Counters()
    return Budget(limit_bytes, counters, share_bytes=share_bytes, waits="budget_waits"), counters


def test_small_ones_pass_large_ones_and_each_sort_keeps_its_order() -> None:
    """The second half is the small ones'; large ones go one after the other, as they came."""

    async def run() -> None:
        budget, counters = a_budget(100, 10)
        first = await budget.take(45)
        large = [asyncio.create_task(budget.take(size)) for size in (30, 20)]
        await asyncio.sleep(0)
        small = [await budget.take(10) for _ in range(5)]
        assert (budget.used_bytes, counters["budget_waits"]) == (95, 2)
        waiting = asyncio.create_task(budget.take(10))
        await asyncio.sleep(0)
        assert budget.is_pressed
        first.give_back()
        given = await asyncio.wait_for(large[0], 5)
        await asyncio.wait_for(waiting, 5)
        assert not large[1].done()
        given.give_back()
        (await asyncio.wait_for(large[1], 5)).give_back()
        for each in [*small, waiting.result()]:
            each.give_back()
        assert (budget.used_bytes, budget.is_pressed) == (0, False)
        assert budget.most_bytes <= 100

    asyncio.run(run())


def test_who_goes_while_it_waits_takes_nothing() -> None:
    """Before it was its turn, and in the very moment in which it was."""

    async def run() -> None:
        budget, _ = a_budget(100, 1)
        held = await budget.take(80)
        waiting = [asyncio.create_task(budget.take(80)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        held.give_back()
        waiting[1].cancel()
        found = await asyncio.wait_for(waiting[2], 5)
        assert isinstance(found, Room)
        assert budget.used_bytes == 80
        found.give_back()
        assert budget.used_bytes == 0

    asyncio.run(run())


def test_an_answer_is_made_as_large_as_there_is_room() -> None:
    """As it asks while half is free, a share from then on; what it came to is what counts."""

    async def run() -> None:
        budget, _ = a_budget(100, 10)
        assert budget.room_bytes(80) == 80
        held = await budget.take(45)
        assert (budget.room_bytes(5), budget.room_bytes(30)) == (5, 10)
        held.resize(10)
        assert (budget.used_bytes, budget.room_bytes(30)) == (10, 30)
        held.resize(70)
        assert budget.used_bytes == 70
        held.give_back()
        held.give_back()
        assert budget.used_bytes == 0

    asyncio.run(run())
