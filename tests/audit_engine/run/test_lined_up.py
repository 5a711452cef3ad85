"""Logs are judged as their rows come, batch by batch: as by the machine, and in memory that is bounded."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from audit_engine.run.groups.spark import LOG_KEY, judged_logs
from audit_engine.run.lines import READ
from audit_engine.run.one_log import Task
from audit_engine.run.told import COLUMNS, row_of
from rules.events import HighWatermark, LogEvent
from rules.identity import LogId
from rules.machine import LogState, Told, encode, fold, has_own_clock, is_late, newborn
from rules.machine.verdict import judge, stated
from tests.rules.machine.histories import LOG, MIB, TERMS, TOPIC, fixture
from tests.rules.machine.random_days import random_history

BATCH = 7
_NONE = dict.fromkeys(("carried", "base", "is_again", "part"))


def lined_up(said: Iterable[Told], log: LogId, **asked: Any) -> list[dict[str, Any]]:
    """What Spark hands over of one log: its task, its facts by their own clocks, all of it in order."""
    place = {**dict(zip(LOG_KEY, log, strict=True)), "log_topic": TOPIC}
    line = sorted(said, key=lambda each: each.order)
    facts = sorted(
        (each for each in line if has_own_clock(each)),
        key=lambda each: (getattr(each.event, "metadata_offset", 0), each.order),
    )
    task = {**dict.fromkeys((*COLUMNS, "body")), **place, **_NONE, "is_again": False, **asked, "part": 0}
    rows = [{**row_of(each), **place, **_NONE, "part": 1} for each in facts]
    return [task, *rows, *({**row_of(each), **place, **_NONE, "part": 2} for each in line)]


def batches(rows: Iterable[dict[str, Any]], size: int = BATCH) -> Iterator[pa.RecordBatch]:
    """In batches that end anywhere."""
    line = iter(rows)
    while some := list(islice(line, size)):
        yield pa.RecordBatch.from_pylist([{**row, "read": read_of(row)} for row in some])


def read_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Of a reading, as Spark cuts it out."""
    if row["kind"] != HighWatermark.kind:
        return None
    body = json.loads(row["body"])
    return {name: body[name] for name in READ}


def carried_on(state: LogState) -> bytes:
    """What a run carries of a state: what it stated is in it."""
    stated(state, judge(state, TERMS, from_ms=0).statement)
    return encode(state)


@pytest.mark.slow
def test_what_is_streamed_is_judged_as_what_is_held() -> None:
    """Random histories, several logs side by side, doubled and shuffled: the machine's own states, byte for
    byte, and over a carried state the machine's own word on what is late."""
    several: list[dict[str, Any]] = []
    wanted: list[bytes] = []
    late = 0
    for seed in range(120):
        h, chance = random_history(seed), random.Random(seed)
        said = [*h.told, *h.told[:: chance.randint(1, 4)]]
        chance.shuffle(said)
        task = Task(terms=TERMS, from_ms=0, as_of_ms=h.now_ms)
        whole = carried_on(fold(newborn(LOG, TOPIC), said, TERMS, as_of_ms=h.now_ms))
        [judged] = judged_logs(batches(lined_up(said, LOG)), task)
        assert judged["state"] == whole, seed

        early = [each for each in said if chance.random() < 0.8 or each.observed_at_ms < h.now_ms // 2]
        cut_ms = chance.choice(sorted({each.observed_at_ms for each in said}))
        first = fold(newborn(LOG, TOPIC), early, TERMS, as_of_ms=cut_ms)
        rest = [each for each in said if each not in early or each.observed_at_ms > cut_ms]
        [judged] = judged_logs(batches(lined_up(rest, LOG, carried=encode(first))), task)
        is_behind = [each.observed_at_ms for each in rest if is_late(first, each)]
        if is_behind:
            late += 1
            assert judged["late_ms"] == min(is_behind), seed
        else:
            assert judged["state"] == carried_on(fold(first, rest, TERMS, as_of_ms=h.now_ms)), seed
        other = LOG._replace(partition=seed)
        moved = [
            replace(each, event=replace(each.event, log=other)) if isinstance(each.event, LogEvent) else each
            for each in h.told
        ]
        as_of_ms = 2**52
        several += lined_up(moved, other)
        wanted.append(carried_on(fold(newborn(other, TOPIC), moved, TERMS, as_of_ms=as_of_ms)))

    assert 10 < late < 110
    found = judged_logs(batches(several, 100), Task(terms=TERMS, from_ms=0, as_of_ms=2**52))
    assert [each["state"] for each in found] == wanted


def test_rows_of_a_log_that_nobody_asked_about_go_nowhere() -> None:
    """Its task is missing: nothing is said of it, and the log behind it is judged."""
    h = fixture("none")
    other = LOG._replace(partition=7)
    rows = [*lined_up(h.told, other)[1:], *lined_up(h.told, LOG)]

    found = list(judged_logs(batches(rows), Task(terms=TERMS, from_ms=0, as_of_ms=h.now_ms)))

    assert [each["partition"] for each in found] == [0]


def test_a_log_with_most_of_the_events_takes_no_more_memory() -> None:
    """Four times the events of one log, and nearly the same peak: a batch is held, and never the log."""
    peaks = []
    for turns in (250, 1_000):
        h = fixture("none")
        begun = len(h.told)
        line = lined_up(h.told, LOG)
        h.watermark(1, 10_500, size_bytes=MIB, start=0)
        template = lined_up(h.told[-1:], LOG)[-1]

        def rows(
            turns: int = turns,
            h: Any = h,
            line: Any = line,
            template: dict[str, Any] = template,
            n: int = begun,
        ) -> Iterator[dict[str, Any]]:
            yield from line
            for turn in range(turns):
                at_ms = h.now_ms + turn * 1_000
                numbers = {"emitter_seq": n + turn + 100, "log_seq": template["log_seq"] + turn}
                yield {**template, **numbers, "observed_at_ms": at_ms, "occurred_at_ms": at_ms}

        task = Task(terms=TERMS, from_ms=0, as_of_ms=2**52)
        tracemalloc.start()
        [judged] = judged_logs(batches(rows(), 50), task)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert judged["state"] is not None

    assert peaks[1] < 1.25 * peaks[0]
