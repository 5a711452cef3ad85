"""A store that hangs, refuses or has other bytes, and the cache: right bytes, or an error in time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from seawall.local.waiting import becomes_true
from tests.tiering.reader.tier import LogOfBatches
from tests.tiering.serve.broker import Partition
from tests.tiering.serve.scene import (
    TIERED,
    Scene,
    a_log,
    fetch_of,
    fetched,
    read_all,
    staged,
)
from tests.tiering.serve.test_hostile import counted, simple
from tests.tiering.serve.test_seam import contents, tiered
from tiering.reader.disk_cache import DiskCache
from tiering.reader.interface import Objects
from tiering.serve.objects import Coalesced, Recent
from tiering.serve.protocol import apis
from tiering.serve.protocol.apis import APIS
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.frames import request_frame
from tiering.store.errors import Unavailable
from tiering.store.interface import Stored

DEADLINE_S = 30.0


class Troubled:
    """Objects that hang, refuse, or have other bytes, as long as they are told to."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.go_on = threading.Event()
        self.go_on.set()
        self.refuses = False
        self.garbles = False
        self.asked = 0

    @property
    def bucket(self) -> str:
        return self._objects.bucket

    def read_range(self, key: str, version_id: str, start: int, end: int) -> bytes:
        self.asked += 1
        self.go_on.wait(DEADLINE_S)
        if self.refuses:
            raise Unavailable(bucket=self.bucket, key=key, operation="read", why="503")
        found = self._objects.read_range(key, version_id, start, end)
        return bytes(each ^ 1 for each in found) if self.garbles and key.endswith(".log") else found

    def head(self, key: str, version_id: str | None = None) -> Stored:
        return self._objects.head(key, version_id)


@contextmanager
def troubled(**how: Any) -> Iterator[tuple[Scene, LogOfBatches, Troubled]]:
    made: list[Troubled] = []

    def wrap(objects: Objects) -> Objects:
        made.append(Troubled(objects))
        return made[0]

    with simple(objects=wrap, **how) as (scene, log):
        try:
            yield scene, log, made[0]
        finally:
            made[0].go_on.set()


def test_a_store_that_hangs_is_come_again_and_the_tail_goes_on() -> None:
    """The answer comes in time and is one that clients try again; the live end is not held up by it."""
    with troubled(answer_s=0.3) as (scene, log, store), scene.client() as client, scene.client() as tail:
        store.go_on.clear()
        assert fetched(client, 0).error_code == Code.KAFKA_STORAGE_ERROR
        assert read_all(tail, 24, log.end) == contents(log, 12)
        store.go_on.set()
        assert becomes_true(lambda: fetched(client, 0).error_code == Code.NONE, deadline_s=DEADLINE_S)
        assert read_all(client, 0, log.end) == contents(log)
        assert scene.counters["reads_late"] >= 1


def test_reads_that_hang_are_bounded() -> None:
    """However many clients wait for the store, so many threads do; the others are told at once."""
    with troubled(answer_s=5.0) as (scene, log, store), ExitStack() as stack:
        store.go_on.clear()
        clients = [stack.enter_context(scene.client()) for _ in range(60)]
        for number, client in enumerate(clients):
            request = fetch_of((TIERED, number % 20))
            client.send(request_frame(APIS[apis.FETCH], 13, 1, "many", request))
        assert counted(scene, "reads_refused", 60 - 48)
        assert sum("seawall-serve" in each.name for each in threading.enumerate()) <= 14
        store.go_on.set()
        with scene.client() as honest:
            assert becomes_true(lambda: fetched(honest, 0).error_code == Code.NONE, deadline_s=DEADLINE_S)
            assert read_all(honest, 0, log.end) == contents(log)


def test_a_store_that_refuses_is_come_again() -> None:
    with troubled() as (scene, log, store), scene.client() as client:
        store.refuses = True
        assert fetched(client, 0).error_code == Code.KAFKA_STORAGE_ERROR
        store.refuses = False
        assert read_all(client, 0, log.end) == contents(log)
        assert [what for what, _ in scene.troubles] == ["failed"]


def test_bytes_that_are_not_what_was_stored_are_never_served() -> None:
    """The client is stopped by a corrupt-message error, and the operator told; nothing of it goes out."""
    with troubled() as (scene, log, store), scene.client() as client:
        store.garbles = True
        data = fetched(client, 0)
        assert data.error_code == Code.CORRUPT_MESSAGE
        assert not b"".join(data.records or ())
        assert scene.counters["damaged"] == 1
        assert [what for what, _ in scene.troubles] == ["damaged"]
        store.garbles = False
        assert read_all(client, 0, log.end) == contents(log)


def test_what_many_want_at_once_is_fetched_once(tmp_path: Path) -> None:
    """Twenty readers of the same history at the same time, and a second round from the cache alone."""
    made: list[Troubled] = []

    def wrap(objects: Objects) -> Objects:
        made.append(Troubled(objects))
        return Coalesced(made[0])

    log = a_log(40, each=5)
    cache = Recent(DiskCache(tmp_path), limit_bytes=1000)
    with staged(Partition(log), tiered(log, 0, 38), objects=wrap, cache=cache) as scene:
        made[0].go_on.clear()
        results: list[bool] = []

        def read() -> None:
            with scene.client() as client:
                results.append(read_all(client, 0, log.end) == contents(log))

        readers = [threading.Thread(target=read) for _ in range(20)]
        for each in readers:
            each.start()
        assert becomes_true(lambda: scene.counters["requests"] >= 20, deadline_s=DEADLINE_S)
        made[0].go_on.set()
        for each in readers:
            each.join(DEADLINE_S)
        assert results == [True] * 20
        asked = made[0].asked
        size = len(contents(log)) - len(contents(log, 38))
        assert asked <= 2 * (size // 400 + 3)
        with scene.client() as client:
            assert read_all(client, 0, log.end) == contents(log)
        assert made[0].asked == asked


def test_a_damaged_cache_entry_is_fetched_again(tmp_path: Path) -> None:
    """Every file of the cache is damaged: the same bytes come, and each entry is counted."""
    log = a_log(30)
    disk = DiskCache(tmp_path)
    with staged(Partition(log), tiered(log, 0, 28), cache=disk) as scene, scene.client() as client:
        assert read_all(client, 0, log.end) == contents(log)
        for path in tmp_path.glob("??/*"):
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(bytes(content))
        assert read_all(client, 0, log.end) == contents(log)
        assert disk.counters.corrupt > 0


def test_a_broker_that_hangs_does_not_hold_up_the_store() -> None:
    """No broker answers anything any more: history is read on by a client that is there."""
    with simple() as (scene, log), scene.client() as client:
        assert fetched(client, 0).error_code == Code.NONE
        scene.world.hangs = True
        assert read_all(client, 0, 24) == contents(log)[: -len(contents(log, 12))]
        scene.world.hangs = False
