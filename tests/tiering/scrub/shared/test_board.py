"""The coordinator's board: who is there, what is out, what share of the rate each look gets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.events import ScrubDepth
from tests.tiering.segments.strategies import LOG, segment
from tiering.outcome import Inconclusive, Verified
from tiering.scrub.damage import Reason
from tiering.scrub.look import size_of
from tiering.scrub.looks import Due
from tiering.scrub.shared.board import ANSWER_S, HEARD_S, QUIET_S, Board
from tiering.scrub.shared.words import Answer, Hail, Seen, Task
from tiering.segments.records import SegmentRecord
from tiering.store.keys import ObjectKind

RUN = "run-1"


def due_of(record: SegmentRecord) -> Due:
    return Due(
        name=record.key_stem,
        log=LOG,
        segment_id=record.segment_id,
        size_bytes=record.size_bytes,
        metadata_offset=0,
    )


def send(board: Board, number: int, now_s: float = 0.0) -> SegmentRecord:
    record = segment(number, number * 10, number * 10 + 10)
    share = board.share(now_s)
    task = Task(
        run=board.run,
        record=record,
        depth=ScrubDepth.DEEP,
        bucket="tier",
        live=frozenset(),
        until_ms=0,
        bytes_per_s=share,
    )
    board.sent(due_of(record), task, now_s + board.within_s(record, task.depth, share))
    return record


def answer_to(record: SegmentRecord, **fields: object) -> Answer:
    whole = Answer(
        run=RUN,
        segment_id=record.segment_id,
        worker="w",
        read_bytes=size_of(record),
        objects=tuple(Seen(kind=each, outcome=Verified()) for each in ObjectKind),
    )
    return replace(whole, **fields)  # type: ignore[arg-type]


def board(rate: int | None = None, *threads: int) -> Board:
    made = Board(run=RUN, rate=rate)
    for number, count in enumerate(threads):
        made.hailed(Hail(worker=f"w{number}", threads=count), 0.0)
    return made


def test_nothing_is_sent_while_nobody_is_there() -> None:
    """And nothing more once the last one has not been heard of for a while: no task waits for nobody."""
    alone, seen = board(), board(None, 4)

    assert (alone.room(0.0), seen.room(0.0), seen.room(HEARD_S)) == (0, 8, 0)


def test_an_answer_counts_once_and_of_this_run_only() -> None:
    """A task that came to two workers, one of a run that was killed, one of nothing that is out: ignored."""
    made = board(None, 4)
    record = send(made, 1)

    assert made.answered(answer_to(record, run="another")) is None
    found = made.answered(answer_to(record))
    assert found is not None
    assert {each.outcome for each in found[1].checked} == {Verified()}
    assert made.answered(answer_to(record)) is None
    assert made.answered(answer_to(segment(9, 0, 10))) is None
    assert (made.out, made.ignored) == (0, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"objects": ()},
        {"objects": (Seen(kind=ObjectKind.LOG, outcome=Verified()),) * 3},
        {"objects": tuple(Seen(kind=each, outcome=Verified()) for each in list(ObjectKind)[:2])},
        {"read_bytes": 10},
        {"refused": "it has another bucket"},
    ],
)
def test_an_answer_that_cannot_be_of_a_look_verifies_nothing(fields: dict[str, object]) -> None:
    """Objects left out or named twice, fewer bytes than it vouches for: each is unclear, never right."""
    made = board(None, 4)

    found = made.answered(answer_to(send(made, 1), **fields))

    assert found is not None
    assert [(type(each.outcome), each.reason) for each in found[1].checked] == [
        (Inconclusive, Reason.UNANSWERED)
    ] * 3


def test_what_nobody_answers_is_overdue_once() -> None:
    """Not before its time; and a late answer to it comes to nothing."""
    made = board(None, 4)
    record = send(made, 1)

    assert made.overdue(ANSWER_S - 1) == []
    assert [each.due.segment_id for each in made.overdue(ANSWER_S)] == [record.segment_id]
    assert made.overdue(ANSWER_S) == []
    assert made.answered(answer_to(record)) is None


def test_a_small_share_has_time_for_a_large_segment() -> None:
    """At 1 byte a second of three objects twice: else a slow rate would make everything unclear."""
    record = segment(1, 0, 10)

    assert board(1, 1).within_s(record, ScrubDepth.DEEP, 1) > ANSWER_S + 2 * size_of(record)


def test_silence_is_counted_from_when_somebody_listens() -> None:
    """While the bucket is listed nobody reads what workers say."""
    made = board(None, 4)
    made.listens(500.0)

    assert not made.is_quiet(500.0 + QUIET_S - 1)
    assert made.is_quiet(500.0 + QUIET_S)


@settings(max_examples=50, deadline=None)
@given(
    rate=st.integers(1, 1000),
    acts=st.lists(
        st.tuples(st.sampled_from(["hail", "send", "answer", "wait"]), st.integers(0, 5), st.integers(1, 9)),
        max_size=60,
    ),
)
def test_shares_never_come_to_more_than_the_rate(rate: int, acts: list[tuple[str, int, int]]) -> None:
    """Whoever comes or goes while tasks are out; and each task that was sent leaves the board once."""
    made, now_s, number = Board(run=RUN, rate=rate), 0.0, 0
    out: dict[str, tuple[SegmentRecord, int]] = {}
    for act, which, count in acts:
        if act == "hail":
            made.hailed(Hail(worker=f"w{which}", threads=count), now_s)
        elif act == "wait":
            now_s += count * HEARD_S / 4
        elif act == "answer" and out:
            record, _ = out.pop(sorted(out)[which % len(out)])
            assert made.answered(answer_to(record)) is not None
        elif act == "send" and made.room(now_s):
            number += 1
            share = made.share(now_s)
            assert share is not None
            record = send(made, number, now_s)
            out[record.segment_id] = record, share
        assert sum(share for _, share in out.values()) <= rate
        assert made.out == len(out)
    assert {each.due.segment_id for each in made.cleared()} == set(out)
