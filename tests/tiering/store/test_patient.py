"""Asking patiently: every request is retried, bodies are paced and timed, listings come to an end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rules.identity import ObjectRef
from tests.tiering.store.contract import checksum_of
from tests.tiering.store.hands import Hands
from tests.tiering.store.memory import MemoryStore
from tiering.store.content import PIECE_BYTES, InMemory
from tiering.store.errors import DeadlinePassed, Missing, Throttled, Transient, Unavailable
from tiering.store.interface import Content, ListedKey, Page, PageToken
from tiering.store.patient import READ_BYTES_MAX, PatientStore, patient
from tiering.store.retry import Retrier, RetryPolicy
from tiering.store.throttle import Throttle

CONTENT = bytes(range(256)) * 10_000


def patiently(store: MemoryStore, hands: Hands, *, bytes_per_s: float | None = None) -> PatientStore:
    policy = RetryPolicy(attempts_max=3, attempt_s=10, overall_s=100, soon_s=0.1)
    retrier = Retrier(policy, clock=hands.clock, sleep=hands.sleep, random=lambda: 0.5)
    throttle = Throttle(
        bytes_per_s=bytes_per_s, burst_bytes=PIECE_BYTES, clock=hands.clock, sleep=hands.sleep
    )
    return PatientStore(store, retrier, throttle)


@pytest.fixture
def stored() -> tuple[MemoryStore, ObjectRef]:
    """A store with one object."""
    store = MemoryStore()
    version_id = store.put_new("a", InMemory(CONTENT), checksum_of(CONTENT))
    return store, ObjectRef("a", len(CONTENT), "CRC64NVME", checksum_of(CONTENT), version_id)


def test_every_request_is_tried_again(stored: tuple[MemoryStore, ObjectRef]) -> None:
    """None of the port's methods gives up at the first failure that may pass."""
    store, ref = stored
    assert ref.version_id is not None
    asking = patiently(store, Hands())
    upload_id = store.start_parts("b")
    part = store.put_part("b", upload_id, 1, InMemory(b"x"), checksum_of(b"x"))
    requests: dict[str, Any] = {
        "put": lambda: asking.put_new("c", InMemory(b"x"), checksum_of(b"x")),
        "start": lambda: asking.start_parts("d"),
        "part": lambda: asking.put_part("b", upload_id, 1, InMemory(b"x"), checksum_of(b"x")),
        "finish": lambda: asking.finish_parts(
            "b", upload_id, (part,), size_bytes=1, checksum=checksum_of(b"x")
        ),
        "abort": lambda: asking.abort_parts("b", upload_id),
        "head": lambda: asking.head("a"),
        "read": lambda: asking.read_range("a", ref.version_id, 0, 5),
        "list keys": lambda: list(asking.list_keys("")),
        "list versions": lambda: list(asking.list_versions("")),
        "list uploads": lambda: list(asking.list_uploads("")),
        "hold": lambda: asking.set_hold("a", ref.version_id, held=False),
        "held": lambda: asking.is_held("a", ref.version_id),
        "versioning": asking.keeps_versions,
        "mark": lambda: asking.mark_deleted("a"),
        "copy": lambda: asking.copy_version(ref),
    }
    store.asked.clear()

    for operation, request in requests.items():
        store.refuse(operation, Transient, Throttled)
        request()

    assert store.asked == dict.fromkeys(requests, 3)


def test_a_body_is_paced_inside_of_itself() -> None:
    """Not a pause after the body, but one before each piece of it."""
    hands = Hands()
    store = MemoryStore()

    patiently(store, hands, bytes_per_s=PIECE_BYTES).put_new("a", InMemory(CONTENT), checksum_of(CONTENT))

    assert len(hands.slept) == -(-len(CONTENT) // PIECE_BYTES)
    assert max(hands.slept) == pytest.approx(1.0)
    assert sum(hands.slept) == pytest.approx(len(CONTENT) / PIECE_BYTES)


def test_a_body_that_takes_too_long_is_broken_off() -> None:
    """An attempt ends by its deadline although each send of it succeeds."""

    class Slow(MemoryStore):
        def put_new(self, key: str, content: Content, checksum: str) -> str | None:
            for _ in content:
                hands.turn(4)
            return super().put_new(key, content, checksum)

    hands = Hands()

    with pytest.raises(DeadlinePassed) as raised:
        patiently(Slow(), hands).put_new("a", InMemory(CONTENT), checksum_of(CONTENT))

    assert raised.value.attempts == 3
    assert raised.value.operation == "put"


def test_a_read_that_takes_too_long_is_broken_off(stored: tuple[MemoryStore, ObjectRef]) -> None:
    """A store that drips its answer does not hold a reader for ever."""

    class Slow(MemoryStore):
        def read_range(self, key: str, version_id: str, start: int, end: int) -> Iterator[bytes]:
            for piece in super().read_range(key, version_id, start, end):
                hands.turn(4)
                yield piece

    hands = Hands()
    store, ref = stored
    assert ref.version_id is not None

    with pytest.raises(DeadlinePassed):
        patiently(Slow(store.kept), hands).read_range("a", ref.version_id, 0, 10_000)


def test_a_short_read_is_asked_for_again(stored: tuple[MemoryStore, ObjectRef]) -> None:
    """What is shorter than the range is no answer."""
    store, ref = stored
    assert ref.version_id is not None

    class Short(MemoryStore):
        def read_range(self, key: str, version_id: str, start: int, end: int) -> Iterator[bytes]:
            pieces = list(super().read_range(key, version_id, start, end))
            yield from pieces[:-1] if self.asked["read"] == 1 else pieces

    short = Short(store.kept)

    found = patiently(short, Hands()).read_range("a", ref.version_id, 1, 5000)

    assert found == CONTENT[1:5000]
    assert short.asked["read"] == 2


def test_an_empty_range_asks_nothing(stored: tuple[MemoryStore, ObjectRef]) -> None:
    """HTTP cannot even ask for it."""
    store, ref = stored
    assert ref.version_id is not None
    store.asked.clear()

    assert patiently(store, Hands()).read_range("a", ref.version_id, 7, 7) == b""
    assert store.asked == {}


def test_a_read_is_bounded(stored: tuple[MemoryStore, ObjectRef]) -> None:
    """Nobody reads a whole segment into memory by mistake."""
    with pytest.raises(AssertionError):
        patiently(stored[0], Hands()).read_range("a", "v", 0, READ_BYTES_MAX + 1)


def test_a_listing_goes_on_where_it_failed() -> None:
    """A page that fails is asked for again; the pages before are not."""
    store = MemoryStore(page_entries=2)
    for name in "abcde":
        store.put_new(name, InMemory(b""), checksum_of(b""))
    listing = patiently(store, Hands()).list_keys("")
    found = [next(listing), next(listing)]

    store.refuse("list keys", Unavailable)
    found += list(listing)

    assert [entry.key for entry in found] == list("abcde")
    assert store.asked["list keys"] == 4


def _entry(key: str) -> ListedKey:
    return ListedKey(key=key, size_bytes=0, modified_ms=0)


def test_an_entry_that_two_pages_share_is_listed_once() -> None:
    """Some stores begin a page with the last entry of the page before."""

    class Overlapping(MemoryStore):
        def keys_page(self, prefix: str, token: PageToken | None) -> Page[ListedKey]:
            if token is None:
                return Page(entries=(_entry("a"), _entry("b")), next=("b",))
            return Page(entries=(_entry("b"), _entry("c")), next=None)

    assert [entry.key for entry in patiently(Overlapping(), Hands()).list_keys("")] == ["a", "b", "c"]


def test_a_listing_that_goes_in_circles_is_an_error() -> None:
    """A store that gives the same page again and again is not asked for ever, nor taken for complete."""

    class Circling(MemoryStore):
        def keys_page(self, prefix: str, token: PageToken | None) -> Page[ListedKey]:
            return Page(entries=(_entry("a"),), next=("a",))

    with pytest.raises(Transient, match="does not get any further"):
        list(patiently(Circling(), Hands()).list_keys(""))


def test_the_clock_of_this_machine_will_do(stored: tuple[MemoryStore, ObjectRef]) -> None:
    """Made with defaults, a store answers, and says what is missing at once."""
    store = patient(stored[0], bytes_per_s=1e9)

    assert store.head("a").size_bytes == len(CONTENT)
    with pytest.raises(Missing):
        store.head("b")


def test_a_stream_goes_on_where_its_answer_broke_off(stored: tuple[MemoryStore, ObjectRef]) -> None:
    """Refused at its start and cut in its middle: every byte comes, once and in order."""
    store, ref = stored
    assert ref.version_id is not None
    whole, asked = store.read_range, []

    def breaking(key: str, version_id: str, start: int, end: int) -> Iterator[bytes]:
        asked.append(start)
        for number, piece in enumerate(whole(key, version_id, start, end)):
            if number == 3 and len(asked) < 3:
                raise Unavailable(bucket="memory", key=key, operation="read", why="cut")
            yield piece

    store.read_range = breaking  # type: ignore[method-assign]
    store.refuse("read", Throttled)

    pieces = [bytes(each) for each in patiently(store, Hands()).stream("a", ref.version_id, 7, 20_000)]

    assert b"".join(pieces) == CONTENT[7:20_000]
    assert asked == [7, 7, 3007]


@pytest.mark.parametrize("end", [0, 5])
def test_a_stream_that_brings_too_little_is_not_taken_for_whole(
    stored: tuple[MemoryStore, ObjectRef], end: int
) -> None:
    """An answer that ends early is asked for again, and then given up with what came of it."""
    store, ref = stored
    assert ref.version_id is not None
    until = end

    def ending(key: str, version_id: str, start: int, end: int) -> Iterator[bytes]:
        yield CONTENT[start:until]

    store.read_range = ending  # type: ignore[method-assign]

    with pytest.raises(Transient, match=f"{end} bytes came of 10"):
        list(patiently(store, Hands()).stream("a", ref.version_id, 0, 10))
