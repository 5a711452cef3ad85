"""Slow, broken and hostile clients: each limit is kept and counted, and others are unharmed."""

from __future__ import annotations

import gc
import os
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from seawall.local.waiting import becomes_true
from tests.tiering.reader.tier import LogOfBatches
from tests.tiering.serve.broker import Partition
from tests.tiering.serve.scene import (
    TIERED,
    Scene,
    a_log,
    fetch_of,
    read_all,
    some,
    staged,
)
from tests.tiering.serve.test_seam import contents, tiered
from tests.tiering.serve.wire import HungUp, WireClient
from tiering.reader.interface import ReaderLimits
from tiering.serve.connection import Connection
from tiering.serve.protocol import apis
from tiering.serve.protocol.apis import APIS
from tiering.serve.protocol.asking import MetadataRequest
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.fetching import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.serve.protocol.frames import LENGTH, request_frame
from tiering.serve.protocol.session import ApiVersionsRequest
from tiering.serve.service import Limits

FUZZED = int(os.environ.get("SEAWALL_TEST_FUZZED_REQUESTS", "2000"))
FUZZED_LONG = 100_000
DEADLINE_S = 90.0
GROWTH_BYTES_MAX = 32 * 1024 * 1024


def counted(scene: Scene, name: str, least: int = 1) -> bool:
    return becomes_true(lambda: scene.counters[name] >= least, deadline_s=DEADLINE_S)


@contextmanager
def simple(**how: Any) -> Iterator[tuple[Scene, LogOfBatches]]:
    log = a_log(20)
    with staged(Partition(log), tiered(log, 0, 12), **how) as scene:
        yield scene, log


def real_requests(chance: random.Random) -> bytes:
    """A frame as a client would send it."""
    key, request = chance.choice(
        [
            (apis.API_VERSIONS, ApiVersionsRequest()),
            (apis.METADATA, MetadataRequest(topics=None)),
            (apis.FETCH, fetch_of((TIERED, chance.randrange(50)), max_wait_ms=1)),
        ]
    )
    api = APIS[key]
    return request_frame(api, chance.choice(api.versions), chance.randrange(2**31), "fuzz", request)


def fuzzed(chance: random.Random) -> bytes:
    """A request with bits flipped, its end cut or its key changed; or noise with a fitting length."""
    frame = bytearray(real_requests(chance))
    kind = chance.randrange(5)
    if kind == 0:
        return LENGTH.pack(chance.randrange(8, 60)) + chance.randbytes(60)
    if kind == 1:
        frame[4:6] = struct.pack(">h", chance.choice([*APIS, 19, 44, 999, -1]))
    if kind == 2:
        frame[6:8] = struct.pack(">h", chance.randrange(-2, 30))
    if kind == 3:
        body = frame[4 : chance.randrange(8, len(frame))]
        return LENGTH.pack(len(body)) + bytes(body)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(4, len(frame))
        frame[at] ^= 1 << chance.randrange(8)
    return bytes(frame)


def send_and_forget(address: str, frames: list[bytes]) -> None:
    """Over one connection, for as long as the other side bears it."""
    with suppress(OSError), WireClient(address, timeout_s=2.0) as client:
        for frame in frames:
            client.send(frame)
        client.socket.shutdown(socket.SHUT_WR)
        client.is_hung_up()


def test_fuzzed_requests_end_their_connection_and_nothing_else() -> None:
    """No defect, no growth of what is open; a client beside them reads on, all the while and after."""
    bear(FUZZED)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_fuzzed_requests() -> None:
    """The same; what it took is printed (-s)."""
    began_s = time.monotonic()
    grown = bear(FUZZED_LONG)
    took_s = time.monotonic() - began_s
    sys.stdout.write(f"{FUZZED_LONG} fuzzed requests: {took_s:.0f} s, {grown / 2**20:.1f} MiB more memory\n")


def bear(requests: int) -> int:
    """Send so many; by how much the process grew meanwhile, from a quarter of them on."""
    chance = random.Random(11)
    with simple() as (scene, log), scene.client() as honest:
        scene.world.group_answer = b"\0" * 32
        rounds = requests // 20
        settled_bytes = 0
        for number in range(rounds):
            if number == rounds // 4:
                settled_bytes = resident_bytes()
            send_and_forget(scene.address, [fuzzed(chance) for _ in range(20)])
            if chance.random() < 0.1:
                assert read_all(honest, 0, log.end) == contents(log)
        assert read_all(honest, 0, log.end) == contents(log)
        assert scene.counters["requests_malformed"] + scene.counters["requests_unknown"] > requests // 100
        assert scene.counters["defects"] == 0, scene.troubles
        assert becomes_true(lambda: scene.endpoints[0].server.client_count == 1, deadline_s=DEADLINE_S), (
            "connections are left open"
        )
        assert scene.endpoints[0].service.budget.used_bytes == 0
        grown = resident_bytes() - settled_bytes
        assert grown < GROWTH_BYTES_MAX
        return grown


def resident_bytes() -> int:
    """What this process takes of memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_what_is_not_served_is_hung_up_on_and_a_new_api_versions_is_told() -> None:
    """As Kafka does both."""
    with simple() as (scene, _):
        for key, version in ((19, 5), (999, 0), (apis.METADATA, 99), (apis.DESCRIBE_ACLS, 1)):
            with scene.client() as client:
                head = struct.pack(">hhi", key, version, 1) + b"\0\0\0"
                client.send(LENGTH.pack(len(head)) + head)
                assert client.is_hung_up()
        assert scene.counters["requests_unknown"] == 4
        with scene.client() as client:
            head = struct.pack(">hhi", apis.API_VERSIONS, 99, 7) + b"\0\0\0"
            client.send(LENGTH.pack(len(head)) + head)
            answer = client.receive()
            assert answer[:6] == struct.pack(">ih", 7, Code.UNSUPPORTED_VERSION)
            assert client.ask(apis.API_VERSIONS, 3, ApiVersionsRequest()).error_code == Code.NONE


def test_a_produce_that_wants_no_answer_is_hung_up_on() -> None:
    """With acks=0 the client could not be told otherwise; with acks it is told in words."""
    topics = (
        TopicProduceData(
            name="orders", partition_data=(PartitionProduceData(index=3, records=(b"x" * 3_000_000,)),)
        ),
    )
    with simple() as (scene, _):
        with scene.client() as client:
            answer = client.ask(apis.PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1, topic_data=topics))
            refused = answer.responses[0].partition_responses[0]
            assert (refused.error_code, refused.index) == (Code.POLICY_VIOLATION, 3)
            assert "read" in (refused.error_message or "")
        with scene.client() as client, pytest.raises(HungUp):
            client.ask(apis.PRODUCE, 9, ProduceRequest(acks=0, timeout_ms=1, topic_data=topics))
        assert scene.counters["writes_refused"] == 2


@pytest.mark.parametrize(
    ("limits", "behave", "counter"),
    [
        (
            {"request_bytes_max": 1000},
            lambda client: client.send(LENGTH.pack(1001) + b"\0\3"),
            "requests_too_large",
        ),
        ({}, lambda client: client.send(LENGTH.pack(-1)), "requests_malformed"),
        ({"frame_s": 0.2}, lambda client: client.send(LENGTH.pack(100) + b"\0\3slow"), "requests_slow"),
        ({"idle_s": 0.2}, lambda client: None, "clients_idle"),
    ],
    ids=["too large", "negative", "slow", "idle"],
)
def test_a_client_over_a_limit_is_hung_up_on(
    limits: dict[str, Any], behave: Callable[[WireClient], None], counter: str
) -> None:
    """Each is counted by its name, and another client is answered."""
    with simple(limits=Limits(**limits)) as (scene, log):
        with scene.client() as client:
            behave(client)
            assert client.is_hung_up()
            assert scene.counters[counter] >= 1
        with scene.client() as honest:
            assert read_all(honest, 0, log.end) == contents(log)


def test_more_connections_than_allowed_are_refused() -> None:
    """Those that are there go on; when one goes another may come."""
    with simple(limits=Limits(connections_max=3)) as (scene, log), ExitStack() as stack:
        clients = [stack.enter_context(scene.client()) for _ in range(3)]
        for client in clients:
            assert client.ask(apis.API_VERSIONS, 3, ApiVersionsRequest()).error_code == Code.NONE
        with scene.client() as fourth:
            assert fourth.is_hung_up()
        assert scene.counters["connections_refused"] == 1
        clients[0].close()
        assert becomes_true(lambda: scene.endpoints[0].server.client_count == 2, deadline_s=DEADLINE_S)
        with scene.client() as another:
            assert read_all(another, 0, log.end) == contents(log)


def test_one_host_has_not_all_connections() -> None:
    with simple(limits=Limits(connections_per_host_max=2)) as (scene, _), ExitStack() as stack:
        for _ in range(2):
            client = stack.enter_context(scene.client())
            client.ask(apis.API_VERSIONS, 3, ApiVersionsRequest())
        with scene.client() as third:
            assert third.is_hung_up()
        assert scene.counters["connections_refused"] == 1


def test_a_client_that_does_not_take_its_answers_is_dropped() -> None:
    """It asks for megabytes and reads nothing: what it holds is bounded, and given back in the end."""
    log = LogOfBatches()
    for _ in range(16):
        log.append(some(1, text="x" * 1_000_000))
    limits, reading = Limits(answer_s=1.0), ReaderLimits(chunk_bytes=1_000_000, ahead_chunks=3, fetchers=4)
    with (
        staged(Partition(log), tiered(log, 0, 16), limits=limits, reading=reading) as scene,
        scene.client() as client,
    ):
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = fetch_of((TIERED, 0), max_bytes=8_000_000, partition_max_bytes=8_000_000)
        for _ in range(3):
            client.send(request_frame(APIS[apis.FETCH], 13, 1, "slow", request))
        assert counted(scene, "clients_slow")
        assert becomes_true(lambda: scene.endpoints[0].server.client_count == 0, deadline_s=DEADLINE_S)
        assert scene.endpoints[0].service.budget.used_bytes == 0


def test_answers_wait_for_each_other_within_the_budget() -> None:
    """Ten readers and room for one answer: all are served, one after the other."""
    log = a_log(30, each=20)
    limits = Limits(answers_bytes_max=2000)
    found: list[bool] = []
    with staged(Partition(log), tiered(log, 0, 10, 28), limits=limits) as scene:

        def read() -> None:
            with scene.client() as client:
                found.append(
                    read_all(client, 0, log.end, max_bytes=2000, partition_max_bytes=2000) == contents(log)
                )

        readers = [threading.Thread(target=read) for _ in range(10)]
        for each in readers:
            each.start()
        for each in readers:
            each.join(DEADLINE_S)
        assert found == [True] * 10
        assert scene.counters["budget_waits"] > 0
        assert scene.endpoints[0].service.budget.used_bytes == 0


def test_a_flood_of_requests_is_paced() -> None:
    """Over the rate they are answered later, in order; others are not held up."""
    with simple(limits=Limits(requests_per_s=3.0)) as (scene, log), scene.client() as flood:
        frame = request_frame(APIS[apis.API_VERSIONS], 3, 1, "flood", ApiVersionsRequest())
        flood.send(frame * 10)
        with scene.client() as honest:
            assert read_all(honest, 0, log.end) == contents(log)
        for _ in range(10):
            flood.receive()
        assert scene.counters["requests_paced"] > 0


def test_clients_that_vanish_leave_nothing_waiting_upstream() -> None:
    """A client that goes while its leader waits for news: its connection upstream ends with it."""
    with simple() as (scene, _):
        client = scene.client()
        client.send(
            request_frame(APIS[apis.FETCH], 13, 1, "gone", fetch_of((TIERED, 40), max_wait_ms=25_000))
        )
        assert becomes_true(
            lambda: any(name == "Fetch" for _, name, _ in scene.world.asked), deadline_s=DEADLINE_S
        )
        began_s = time.monotonic()
        client.close()
        assert becomes_true(lambda: scene.endpoints[0].server.client_count == 0, deadline_s=DEADLINE_S)
        assert time.monotonic() - began_s < 20


def test_a_half_closed_connection_is_closed() -> None:
    with simple() as (scene, _), scene.client() as client:
        client.ask(apis.API_VERSIONS, 3, ApiVersionsRequest())
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_hung_up()
        assert becomes_true(lambda: scene.endpoints[0].server.client_count == 0, deadline_s=DEADLINE_S)


def test_it_drains() -> None:
    """Asked to stop: who waits has its answer, who is idle is let go, who comes is refused, and it ends."""
    with simple() as (scene, _), scene.client() as waiting, scene.client() as idle:
        idle.ask(apis.API_VERSIONS, 3, ApiVersionsRequest())
        request = fetch_of((TIERED, 40), max_wait_ms=700)
        waiting.send(request_frame(APIS[apis.FETCH], 13, 5, "waits", request))
        assert becomes_true(
            lambda: any(name == "Fetch" for _, name, _ in scene.world.asked), deadline_s=DEADLINE_S
        )
        scene.drain()
        assert idle.is_hung_up()
        assert waiting.receive()[:4] == struct.pack(">i", 5)
        assert waiting.is_hung_up()
        with pytest.raises(OSError):
            WireClient(scene.address).ask(apis.API_VERSIONS, 3, ApiVersionsRequest())


def test_nothing_is_kept_of_clients_that_are_gone() -> None:
    """Two hundred connections that come and go leave no object behind."""
    with simple() as (scene, _):
        for _ in range(200):
            with scene.client() as client:
                client.ask(apis.API_VERSIONS, 3, ApiVersionsRequest())
        assert becomes_true(lambda: scene.endpoints[0].server.client_count == 0, deadline_s=DEADLINE_S)
        gc.collect()
        assert sum(isinstance(each, Connection) for each in gc.get_objects()) <= 2
