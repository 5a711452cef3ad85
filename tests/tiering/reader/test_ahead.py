"""What is fetched ahead is what will be asked for, within the bound, and not what was passed over."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from rules.identity import LogId, ObjectRef
from tiering.reader.ahead import Ahead, Turn
from tiering.reader.chunks import Source
from tiering.segments.records import SegmentId

SOURCE = Source(LogId("c", "t", 0), SegmentId("s"), ObjectRef("key", 100, "CRC64NVME", "", "v1"))


class AtOnce(Executor):
    """Whatever is submitted is done before anything else: nothing can be cancelled in time."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def turn(piece: int, chunk: int) -> Turn:
    return Turn(piece, chunk, SOURCE)


def read(expected: list[Turn], asked: list[Turn], limit: int) -> tuple[list[bytes], list[Turn]]:
    """What `asked` was answered with, and everything that was fetched, in order."""
    fetched: list[Turn] = []

    def fetch(each: Turn) -> bytes:
        fetched.append(each)
        return b"%d.%d" % each[:2]

    ahead = Ahead(AtOnce(), fetch, iter(expected), limit)
    answers = [ahead.take(each) for each in asked]
    ahead.close()
    return answers, fetched


def test_each_chunk_is_fetched_once_in_order() -> None:
    """Where all goes as expected."""
    turns = [turn(piece, chunk) for piece in range(3) for chunk in range(4)]

    answers, fetched = read(turns, turns, limit=3)

    assert answers == [b"%d.%d" % each[:2] for each in turns]
    assert fetched == turns


def test_what_was_passed_over_is_not_fetched() -> None:
    """A piece that ends long before an index said: its other chunks are left alone."""
    first, second = [turn(0, chunk) for chunk in range(1000)], [turn(1, chunk) for chunk in range(5)]

    answers, fetched = read(first + second, [turn(0, 0), *second], limit=2)

    assert answers == [b"0.0", *(b"1.%d" % chunk for chunk in range(5))]
    assert [each for each in fetched if each.piece == 0] == first[: 1 + 2]
    assert [each for each in fetched if each.piece == 1] == second


def test_what_was_not_expected_is_fetched_all_the_same() -> None:
    """Before, between and behind what was expected, or with nothing expected at all."""
    asked = [turn(0, 5), turn(0, 6), turn(0, 2), turn(0, 7), turn(3, 0)]

    assert read([turn(0, 6), turn(0, 7)], asked, limit=2)[0] == [b"0.5", b"0.6", b"0.2", b"0.7", b"3.0"]
    assert read([], asked, limit=2)[0] == [b"0.5", b"0.6", b"0.2", b"0.7", b"3.0"]
    assert read(asked[:2], asked, limit=0)[0] == [b"0.5", b"0.6", b"0.2", b"0.7", b"3.0"]
