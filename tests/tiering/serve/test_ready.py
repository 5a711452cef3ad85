"""What is made ready for the next answer: the same bytes sooner, and no error that is not there any more."""

from __future__ import annotations

import inspect
import threading
from contextlib import suppress

import pytest

from seawall.local.waiting import becomes_true
from tests.tiering.serve.scene import a_log, read_all
from tests.tiering.serve.test_hostile import simple
from tests.tiering.serve.test_seam import contents, tiered
from tests.tiering.serve.test_store_trouble import DEADLINE_S, Troubled
from tiering.reader.interface import ReaderLimits
from tiering.reader.reader import TieredReader
from tiering.serve.counters import Counters
from tiering.serve.cursors import Cursors, TierBatches
from tiering.store.errors import Unavailable

ANSWER_BYTES = 300  # a few batches, less than a chunk of SMALL
BATCHES, END = 12, 24  # in the store
WHOLE = b"".join(each.content for each in a_log(20).batches[:BATCHES])


class Endpoint:
    """Open reads over a store that can be struck, which fetches nothing but what is asked for."""

    def __init__(self) -> None:
        tier = tiered(a_log(20), 0, 7, BATCHES)
        self.store = Troubled(tier.objects)
        limits = ReaderLimits(chunk_bytes=400, ahead_chunks=0, fetchers=1)
        self.reader = TieredReader(self.store, limits=limits)
        self.cursors = Cursors(self.reader, Counters(), skip_gaps=False)
        self.log = tier.log

    def read(self, offset: int) -> TierBatches:
        return self.cursors.read(self.log, offset, max_bytes=ANSWER_BYTES, committed=False)

    def make_ready(self, offset: int) -> None:
        self.cursors.make_ready(self.log.log, offset, max_bytes=ANSWER_BYTES, committed=False)

    def rest(self, offset: int) -> bytes:
        found = bytearray()
        while offset < END:
            answer = self.read(offset)
            found += answer.content
            offset = answer.next_offset
        return bytes(found)


def test_the_next_answer_is_at_hand() -> None:
    """Made ready, it takes nothing of the store any more, and it is the same to the byte."""
    endpoint = Endpoint()
    first = endpoint.read(0)
    endpoint.make_ready(first.next_offset)
    endpoint.store.refuses = True
    second = endpoint.read(first.next_offset)
    assert len(second.content) > ANSWER_BYTES / 2
    endpoint.store.refuses = False
    whole = first.content + second.content + endpoint.rest(second.next_offset)
    assert whole == WHOLE
    assert (endpoint.cursors.begun, endpoint.cursors.resumed > 1) == (1, True)


def test_an_error_that_nobody_asked_for_is_not_told_later() -> None:
    """A store that refused while something was made ready, and is back when it is asked for."""
    endpoint = Endpoint()
    first = endpoint.read(0)
    endpoint.store.refuses = True
    endpoint.make_ready(first.next_offset)
    endpoint.store.refuses = False
    assert first.content + endpoint.rest(first.next_offset) == WHOLE


def test_what_is_at_hand_comes_before_the_error_behind_it() -> None:
    """A store that refuses from then on: whole batches up to there, then its error, each time it is asked."""
    endpoint = Endpoint()
    first = endpoint.read(0)
    endpoint.make_ready(first.next_offset)
    endpoint.store.refuses = True
    found, offset = bytearray(first.content), first.next_offset
    with suppress(Unavailable):
        while offset < END:
            answer = endpoint.read(offset)
            found += answer.content
            offset = answer.next_offset
            endpoint.make_ready(offset)
    assert len(first.content) < len(found) < len(WHOLE)
    with pytest.raises(Unavailable):
        endpoint.read(offset)
    endpoint.store.refuses = False
    assert found + endpoint.rest(offset) == WHOLE


def test_a_read_that_is_dropped_while_it_is_made_ready_is_closed_when_that_is_done() -> None:
    endpoint = Endpoint()
    first = endpoint.read(0)
    endpoint.store.go_on.clear()
    asked = endpoint.store.asked
    making = threading.Thread(target=endpoint.make_ready, args=(first.next_offset,))
    making.start()
    assert becomes_true(lambda: endpoint.store.asked > asked, deadline_s=DEADLINE_S)
    [read] = endpoint.cursors._open.values()
    endpoint.cursors.close()
    endpoint.store.go_on.set()
    making.join(DEADLINE_S)
    assert not making.is_alive()
    assert inspect.getgeneratorstate(read._items) == inspect.GEN_CLOSED
    assert not read.busy.locked()


def test_what_cannot_be_made_ready_is_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """READYING_MAX: where two are held up, a third is not begun, and no answer waits for any of them."""
    go_on = threading.Event()
    monkeypatch.setattr(Cursors, "make_ready", lambda *_, **__: go_on.wait(DEADLINE_S))
    try:
        with simple() as (scene, log), scene.client() as client:
            assert read_all(client, 0, log.end, partition_max_bytes=ANSWER_BYTES) == contents(log)
            assert scene.counters["tier_fetches"] > 3
            assert scene.counters["ready_put_off"] == scene.counters["tier_fetches"] - 2
    finally:
        go_on.set()
