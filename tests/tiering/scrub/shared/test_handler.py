"""A worker's handler: what becomes of a task, and what is answered before its offset may move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rules.events import ScrubDepth
from tests.tiering.scrub.kit import NOW_MS, Kit, flip
from tests.tiering.store.hands import Hands
from tests.tiering.store.memory import MemoryStore
from tiering.outcome import Failed, Inconclusive, Verified
from tiering.scrub.look import Objects, size_of
from tiering.scrub.shared.handler import DEFECT_TRIES, STORE_RETRIES, Looking, Unsaid
from tiering.scrub.shared.words import HEADER, Answer, Task, encode_task
from tiering.segments.records import SegmentRecord
from tiering.store.errors import Unavailable
from tiering.store.patient import patient
from tiering.store.throttle import unlimited
from workers.consumer.outcomes import DeadLetter, Done, Outcome, Retry, Skip
from workers.consumer.records import Partition, Record

TASKS = Partition("tasks", 0)


@dataclass
class Worker:
    """One, over the kit's bucket, with a topic of answers that can refuse."""

    objects: Objects
    answers: list[Answer] = field(default_factory=list)
    hands: Hands = field(default_factory=Hands)
    refusals: int = 0
    is_ending: bool = False
    now_ms: Callable[[], int] = lambda: NOW_MS
    tries: int = 0

    def __post_init__(self) -> None:
        self.handler = Looking(
            self.objects,
            bucket="tier",
            worker="w",
            say=self._say,
            limit=unlimited(),
            clock=self.hands.clock,
            sleep=self.hands.sleep,
            now_ms=lambda: self.now_ms(),
            is_ending=lambda: self.is_ending,
        )

    def _say(self, answer: Answer) -> None:
        self.tries += 1
        if self.refusals:
            self.refusals -= 1
            raise Unsaid("no leader")
        self.answers.append(answer)

    def gets(self, value: bytes | None, *, attempt: int = 0, header: str | None = "r") -> Outcome:
        headers = () if header is None else ((HEADER, header.encode()),)
        return self.handler(Record(TASKS, 7, b"segment", value, headers=headers, attempt=attempt))


def task_of(record: SegmentRecord, **fields: object) -> Task:
    whole = Task(
        run="r",
        record=record,
        depth=ScrubDepth.DEEP,
        bucket="tier",
        live=frozenset(),
        until_ms=NOW_MS + 1000,
        bytes_per_s=None,
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


def test_the_answer_is_what_a_look_here_would_have_been(kit: Kit) -> None:
    """Each object, the bytes that were read, and which worker it was; then the offset may move."""
    right, wrong = kit.copy(), kit.copy(stored=lambda content: flip(content, 80))
    worker = Worker(kit.store)

    ended = [worker.gets(encode_task(task_of(each))) for each in (right, wrong)]

    assert ended == [Done(), Done()]
    first, second = worker.answers
    assert (first.run, first.segment_id, first.worker) == ("r", right.segment_id, "w")
    assert first.read_bytes == size_of(right)
    assert {each.outcome for each in first.objects} == {Verified()}
    assert [each.kind.value for each in second.objects if isinstance(each.outcome, Failed)] == ["log"]


def test_a_look_keeps_to_its_share_of_the_rate(kit: Kit) -> None:
    """From the first byte: many small segments may not each begin with a burst."""
    record = kit.copy()
    worker = Worker(kit.store)

    worker.gets(encode_task(task_of(record, bytes_per_s=100)))

    assert sum(worker.hands.slept) == pytest.approx(size_of(record) / 100)


@pytest.mark.parametrize(
    "fields", [{"until_ms": NOW_MS}, {"bucket": "another"}], ids=["too late", "another bucket"]
)
def test_a_task_that_is_not_for_it_is_refused_aloud(kit: Kit, fields: dict[str, object]) -> None:
    """No byte is read; the coordinator hears why, instead of waiting."""
    store = MemoryStore(kit.bucket)
    worker = Worker(patient(store))

    ended = worker.gets(encode_task(task_of(kit.copy(), **fields)))

    assert isinstance(ended, Skip)
    assert [each.refused for each in worker.answers] == [ended.reason]
    assert not store.asked["read"]


def test_a_store_that_does_not_answer_is_asked_again_later_and_then_unclear(kit: Kit) -> None:
    """Retried so often and no more; then the answer is that it cannot be told, never that it is missing."""
    value = encode_task(task_of(kit.copy()))
    store = MemoryStore(kit.bucket)
    store.refuse("read", *[Unavailable] * 1000)
    store.refuse("head", *[Unavailable] * 1000)
    worker = Worker(patient(store, sleep=lambda _: None))

    ended = [worker.gets(value, attempt=number) for number in range(STORE_RETRIES + 1)]

    assert [type(each) for each in ended] == [Retry] * STORE_RETRIES + [Done]
    [answer] = worker.answers
    assert answer.no_answer
    assert {type(each.outcome) for each in answer.objects} == {Inconclusive}


def test_an_answer_that_was_not_taken_is_sent_again_without_another_look(kit: Kit) -> None:
    """The offset waits for it; the bucket is not read twice for want of a broker."""
    store = MemoryStore(kit.bucket)
    value = encode_task(task_of(kit.copy()))
    worker = Worker(patient(store), refusals=2)

    ended = [type(worker.gets(value, attempt=number)) for number in range(3)]

    assert (ended, worker.tries, len(worker.answers)) == ([Retry, Retry, Done], 3, 1)
    assert store.asked["read"] == 3


@pytest.mark.parametrize("value", [None, b"", b"{}", b"\xff"])
def test_what_cannot_be_read_is_a_dead_letter_and_its_coordinator_hears_of_it(value: bytes | None) -> None:
    """By the header and the key; without them nobody can be told, and it is a dead letter all the same."""
    worker = Worker(patient(MemoryStore()))

    named, unnamed = worker.gets(value), worker.gets(value, header=None)

    assert isinstance(named, DeadLetter)
    assert isinstance(unnamed, DeadLetter)
    assert "tasks-0, 7" in named.reason
    [answer] = worker.answers
    assert (answer.run, answer.segment_id) == ("r", "segment")
    assert answer.refused is not None


def test_a_defect_in_looking_is_told_and_buried(kit: Kit) -> None:
    """Raised to the consumer, which tries again, and then no more: whoever waits for an answer has one."""
    value = encode_task(task_of(kit.copy()))

    def defect() -> None:
        raise ZeroDivisionError("somewhere in a reader")

    worker = Worker(Ends(kit, defect))

    for attempt in range(DEFECT_TRIES - 1):
        with pytest.raises(ZeroDivisionError):
            worker.gets(value, attempt=attempt)
    ended = worker.gets(value, attempt=DEFECT_TRIES - 1)

    assert isinstance(ended, DeadLetter)
    assert [each.refused for each in worker.answers] == [ended.reason]
    assert "ZeroDivisionError" in ended.reason


class Ends:
    """A bucket in which reading takes until something happens."""

    def __init__(self, kit: Kit, act: Callable[[], None]) -> None:
        self.head, self.list_versions = kit.store.head, kit.store.list_versions
        self._kit, self._act = kit, act

    def stream(self, key: str, version_id: str, start: int, end: int) -> Iterator[Any]:
        self._act()
        return self._kit.store.stream(key, version_id, start, end)


def test_a_worker_that_ends_gives_its_task_back(kit: Kit) -> None:
    """No answer, and no offset: another worker gets it."""
    record = kit.copy()
    worker = Worker(patient(MemoryStore()))
    worker = Worker(Ends(kit, lambda: setattr(worker, "is_ending", True)))

    assert isinstance(worker.gets(encode_task(task_of(record))), Retry)
    assert worker.answers == []


def test_a_look_that_nobody_waits_for_any_more_is_given_up(kit: Kit) -> None:
    """In the middle of it, and said so."""
    record = kit.copy()
    worker = Worker(Ends(kit, lambda: setattr(worker, "now_ms", lambda: NOW_MS + 1000)))

    ended = worker.gets(encode_task(task_of(record)))

    assert isinstance(ended, Skip)
    assert [each.refused for each in worker.answers] == [ended.reason]
