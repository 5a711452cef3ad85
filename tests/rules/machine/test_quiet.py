"""A fold that takes readings by the short way against one that looks at every rule after each of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from rules.events import Event, HighWatermark, Source
from rules.machine import LogState, Speaker, Told, encode, fold, in_order, newborn, quiet
from rules.machine.quiet import Rest
from tests.rules.machine.faults import FAULTS, Fault
from tests.rules.machine.histories import HOUR_MS, TERMS, TOPIC, History, kip405, ours, untiered
from tests.rules.machine.random_days import random_history
from tests.rules.machine.random_limits import random_limits, random_rises
from tests.rules.machine.random_tiers import random_tier

SEEDS = 150
GENERATORS: dict[str, Callable[[int], History]] = {
    "days": random_history,
    "limits": random_limits,
    "rises": random_rises,
    "tiers": random_tier,
}


def with_more_readings(said: Iterable[Told], seed: int, *, until_ms: int) -> list[Told]:
    """Between any two events some that repeat what a replica read last, at times a little more or less."""
    rng = random.Random(seed)
    line = in_order(said)
    inserted: Counter[Speaker] = Counter()
    last: dict[Speaker, tuple[int, int]] = {}  # numbers, in all and in the log
    read: dict[int, Told] = {}
    made: list[Told] = []

    def add(told: Told) -> None:
        made.append(told)
        seq, log_seq = last.get(told.speaker, (-1, -1))
        last[told.speaker] = (
            max(seq, told.seq),
            log_seq if told.log_seq is None else max(log_seq, told.log_seq),
        )
        if isinstance(told.event, HighWatermark) and told.event.source is Source.LOG_DIR:
            read[told.event.broker_id] = told

    for at, each in enumerate(line):
        more = inserted[each.speaker]
        add(replace(each, seq=each.seq + more, log_seq=None if each.log_seq is None else each.log_seq + more))
        end_ms = line[at + 1].observed_at_ms if at + 1 < len(line) else until_ms
        at_ms = each.observed_at_ms
        for _ in range(rng.choice((0, 1, 3, 6)) if read else 0):
            at_ms += max(0, end_ms - at_ms) // rng.choice((2, 3, 10))
            before = read[rng.choice(sorted(read))]
            seq, log_seq = last[before.speaker]
            inserted[before.speaker] += 1
            said_again = _again(before.event, at_ms, rng)
            add(replace(before, event=said_again, seq=seq + 1, log_seq=log_seq + 1, observed_at_ms=at_ms))
    return made


def _again(event: Event | None, at_ms: int, rng: random.Random) -> HighWatermark:
    assert isinstance(event, HighWatermark)
    return replace(
        event,
        event_id=f"{event.event_id}+",
        occurred_at_ms=at_ms,
        high_watermark=event.high_watermark + rng.choice((*[0] * 30, 1, 5, -1)),
        log_start=event.log_start + rng.choice((*[0] * 300, 1)),
        size_bytes=event.size_bytes if rng.random() < 0.99 else rng.choice((None, 0, 7)),
    )


def folded(monkeypatch: pytest.MonkeyPatch, h: History, said: list[Told], as_of_ms: int) -> tuple[int, int]:
    """How many were taken by the short way, of how many. Fails where it made a difference."""
    base = newborn(h.log, TOPIC)
    short = 0
    passed = quiet.passed

    def counted(state: LogState, told: Told, rest: Rest) -> bool:
        nonlocal short
        was_taken = passed(state, told, rest)
        short += was_taken
        return was_taken

    with monkeypatch.context() as patched:
        patched.setattr(quiet, "passed", counted)
        quickly = encode(fold(base, said, TERMS, as_of_ms=as_of_ms))
    with monkeypatch.context() as patched:
        patched.setattr(quiet, "rest_of", lambda *_: None)
        slowly = encode(fold(base, said, TERMS, as_of_ms=as_of_ms))
    assert quickly == slowly
    return short, len(said)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_short_way_comes_to_the_same_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random histories, their faults among them, with and without more readings."""
    short = every = 0
    for seed in range(SEEDS):
        h = GENERATORS[name](seed)
        as_of_ms = h.now_ms + 30 * 24 * HOUR_MS
        for said in ([*h.told], with_more_readings(h.told, seed, until_ms=h.now_ms + 3 * HOUR_MS)):
            taken, of = folded(monkeypatch, h, said, as_of_ms)
            short, every = short + taken, every + of
    assert short > 150, f"{short} of {every} events by the short way"


@pytest.mark.parametrize("fault", FAULTS, ids=[each.name for each in FAULTS])
def test_it_does_so_around_each_fault(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        h = fault.make(fault.mode)
        said = with_more_readings(h.told, seed, until_ms=h.now_ms + 3 * HOUR_MS)
        folded(monkeypatch, h, said, h.now_ms + 3 * HOUR_MS)


@pytest.mark.parametrize("make", [kip405, ours, untiered], ids=["kip405", "ours", "none"])
def test_a_day_of_readings_goes_by_the_short_way(
    make: Callable[[], History], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nothing of this would be worth its lines."""
    h = make()
    began = len(h.told)
    for turn in range(200):
        h.after(minutes=5)
        for broker in (1, 2, 3):
            h.watermark(broker, 90_000 + turn)
    short, _ = folded(monkeypatch, h, [*h.told], h.now_ms)

    assert short > 0.9 * (len(h.told) - began)
