"""What coordinator and workers say to each other: each word comes back as it was, and nothing else comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.events import ScrubDepth
from tests.tiering.segments.strategies import segment, segment_records
from tiering.outcome import Failed, Inconclusive, Problem, Skipped, Verified
from tiering.scrub.damage import Reason
from tiering.scrub.shared.words import (
    Answer,
    Hail,
    Seen,
    Task,
    decode_task,
    decode_word,
    encode_task,
    encode_word,
)
from tiering.segments.errors import RecordTooNew, SegmentMetadataError
from tiering.segments.records import SegmentId
from tiering.store.keys import ObjectKind

TEXTS = st.text(max_size=30)
COUNTS = st.integers(0, 2**40)
PROBLEMS = st.builds(
    Problem,
    kind=TEXTS,
    detail=TEXTS,
    position=st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    offset=st.none() | st.integers(-(2**63), 2**63 - 1),
)
OUTCOMES = (
    st.just(Verified())
    | st.builds(Inconclusive, TEXTS)
    | st.lists(PROBLEMS, min_size=1, max_size=5).map(lambda found: Failed(tuple(found)))
)
SEEN = st.builds(
    Seen,
    kind=st.sampled_from(ObjectKind),
    outcome=OUTCOMES,
    reason=st.none() | st.sampled_from(Reason),
    looks=st.integers(0, 2),
)
ANSWERS = st.builds(
    Answer,
    run=TEXTS,
    segment_id=TEXTS.map(SegmentId),
    worker=TEXTS,
    read_bytes=COUNTS,
    no_answer=st.booleans(),
    objects=st.lists(SEEN, max_size=3).map(tuple),
    refused=st.none() | TEXTS,
)
HAILS = st.builds(Hail, worker=TEXTS, threads=st.integers(1, 64))
TASKS = st.builds(
    Task,
    run=TEXTS,
    record=segment_records(),
    depth=st.sampled_from(ScrubDepth),
    bucket=TEXTS,
    live=st.frozensets(st.sampled_from(ObjectKind)),
    until_ms=COUNTS,
    bytes_per_s=st.none() | st.integers(1, 2**40),
)
TASK = Task(
    run="r",
    record=segment(1, 0, 10),
    depth=ScrubDepth.DEEP,
    bucket="tier",
    live=frozenset({ObjectKind.LOG}),
    until_ms=1,
    bytes_per_s=None,
)


@settings(max_examples=20, deadline=None)
@given(task=TASKS)
def test_a_task_comes_back_with_its_whole_record(task: Task) -> None:
    """What is not understood of the record, too: the worker has the very record of the coordinator."""
    assert decode_task(encode_task(task), "a task") == task


@settings(max_examples=40, deadline=None)
@given(word=ANSWERS | HAILS)
def test_an_answer_and_a_hail_come_back(word: Answer | Hail) -> None:
    """Whatever was found, down to each problem's place."""
    assert decode_word(encode_word(word), "a word") == word


@settings(max_examples=40, deadline=None)
@given(content=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_whatever_lies_in_the_topics_is_refused_as_one_kind_of_error(content: bytes) -> None:
    """Others may write there: a reader raises nothing else."""
    for decode in (lambda value: decode_task(value, "it"), lambda value: decode_word(value, "it")):
        with pytest.raises(SegmentMetadataError):
            decode(content)


def changed(value: bytes, **members: Any) -> bytes:
    return json.dumps({**json.loads(value), **members}).encode()


def test_what_a_newer_version_says_is_not_taken_for_what_this_one_knows() -> None:
    """Neither a version beyond it nor an unknown member: a task is done as meant or not at all."""
    hail = encode_word(Hail(worker="w", threads=1))

    with pytest.raises(RecordTooNew):
        decode_task(changed(encode_task(TASK), min_reader=2), "it")
    with pytest.raises(RecordTooNew):
        decode_word(changed(hail, min_reader=2), "it")
    with pytest.raises(SegmentMetadataError, match="does not know"):
        decode_task(changed(encode_task(TASK), also="this"), "it")


def test_a_task_whose_record_was_changed_on_the_way_is_refused() -> None:
    """The record's own seal is in it: a checksum that somebody altered is no task to be done."""
    record = json.loads(encode_task(TASK))["record"].replace("HKKEIBrkMts=", "AAAAAAAAAAA=")

    with pytest.raises(SegmentMetadataError):
        decode_task(changed(encode_task(TASK), record=record), "it")


@pytest.mark.parametrize(
    "members",
    [
        {"outcome": "skipped"},
        {"outcome": "failed", "problems": []},
        {"outcome": "failed"},
        {"outcome": "inconclusive"},
        {"kind": "idx"},
        {"looks": 3},
        {"reason": "because"},
    ],
)
def test_an_object_that_ends_as_no_look_does_is_refused(members: dict[str, Any]) -> None:
    """Failed without a problem would be a finding of nothing."""
    seen = Seen(kind=ObjectKind.LOG, outcome=Verified())
    answer = encode_word(Answer(run="r", segment_id=SegmentId("s"), worker="w", objects=(seen,)))
    objects = [{**json.loads(answer)["objects"][0], **members}]

    with pytest.raises(SegmentMetadataError):
        decode_word(changed(answer, objects=objects), "it")


def test_a_worker_cannot_say_that_it_skipped() -> None:
    """Only newer metadata makes a look count for nothing, and that is the coordinator's to read."""
    seen = Seen(kind=ObjectKind.LOG, outcome=Skipped("no wish"))

    with pytest.raises(AssertionError):
        encode_word(Answer(run="r", segment_id=SegmentId("s"), worker="w", objects=(seen,)))
