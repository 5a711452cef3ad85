"""The screen is sound: what it excuses, the machine passes, with the very statement; and so the next day.

Histories are random days with random faults, and quiet days after them with something odd now and then;
seeds are printed by every failure.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

import pytest

from audit_engine.run.one_log import canonical
from audit_engine.run.screen import excuse, put_in, words_of
from rules.events import Source
from rules.machine import LogState, Told, fold, newborn
from rules.machine.calm import Calm, calm_of
from rules.machine.verdict import Statement, Verdict, judge
from tests.rules.machine.histories import (
    BROKERS,
    DAY_MS,
    HOUR_MS,
    LOG,
    MIB,
    MINUTE_MS,
    T0_MS,
    TERMS,
    TOPIC,
    History,
    fixture,
)
from tests.rules.machine.random_days import random_history

HISTORIES = int(os.environ.get("SEAWALL_TEST_HISTORIES", "400"))
ODDITIES = (
    "none",
    "none",
    "twice",
    "lost",
    "late",
    "shuffled",
    "start",
    "life",
    "epoch",
    "low",
    "dropped",
    "holed",
    "ahead",
    "old",
    "polled",
    "empty",
    "local",
)


def said_as_json(statement: Statement) -> str:
    return canonical({name: getattr(statement, name) for name in statement.__slots__})


def begun(seed: int) -> History:
    """A history that ends well more often than not: a fixture, or random days without or with faults."""
    rng = random.Random(seed)
    choice = rng.random()
    if choice < 0.6:
        mode = rng.choice(("none", "kip405", "ours"))
        return fixture(mode).after(hours=rng.randint(1, 6))
    return random_history(seed)


def quiet_day(h: History, seed: int) -> tuple[list[Told], str]:
    """What is said on the next day: readings and closed segments, and perhaps one thing that is odd."""
    rng = random.Random(seed * 7 + 1)
    state = fold(newborn(LOG, TOPIC), h.told, TERMS, as_of_ms=h.now_ms)
    odd = rng.choice(ODDITIES)
    at = len(h.told)
    mark, top = state.watermark or 0, max(state.watermark or 0, 10_000)
    moment, odd_broker = rng.randint(0, 5), rng.choice(BROKERS)
    for turn in range(6):
        h.after(minutes=10)
        mark += rng.choice((0, 0, 7))
        for broker in rng.sample(BROKERS, 3) if rng.random() < 0.5 else BROKERS:
            replica = state.replicas.get(broker)
            start = replica.start if replica is not None and replica.start is not None else 0
            local = replica.local_start if replica is not None and replica.local_start is not None else 0
            is_odd = turn == moment and broker == odd_broker
            said = mark - 3 if is_odd and odd == "low" else mark
            size = 0 if is_odd and odd == "empty" else MIB
            start += 1 if is_odd and odd == "start" else 0
            local += 1 if is_odd and odd == "local" else 0
            if is_odd and odd == "life":
                h.lives[broker] += 1
            if is_odd and odd == "epoch":
                h.epoch += 1
            if rng.random() < 0.2:
                h.baseline(broker, start=start, local=local, watermark=said, size_bytes=size)
            else:
                h.watermark(broker, said, start=start, size_bytes=size)
            if is_odd and odd == "dropped":
                h.dropped(broker, local, local + 10, h.now_ms - DAY_MS)
        if rng.random() < 0.3:
            close(h, rng.choice(BROKERS), top, odd, rng)
            top += 10
    return maimed(h.told[at:], odd, rng), odd


def close(h: History, broker: int, base: int, odd: str, rng: random.Random) -> None:
    newest_ms = h.now_ms - rng.randint(0, 3) * HOUR_MS
    newest_ms += 3 * DAY_MS if odd == "ahead" else -8 * DAY_MS if odd == "old" else 0
    own = {"record_count": 3} if odd == "holed" else {"record_count": rng.choice((None, 10))}
    h.closed(broker, base, base + 10, newest_ms, 1_000, **own)


def maimed(said: list[Told], odd: str, rng: random.Random) -> list[Told]:
    if odd == "twice":
        return [*said, rng.choice(said)]
    if odd == "lost":
        return [each for each in said if each is not said[len(said) // 2]]
    if odd == "shuffled":
        return rng.sample(said, len(said))
    if odd == "late":
        told = rng.choice(said)
        return [replace(each, observed_at_ms=T0_MS) if each is told else each for each in said]
    if odd == "polled":
        told = rng.choice(said)
        event = replace(told.event, source=Source.KRAFT)  # type: ignore[type-var]
        return [replace(each, event=event) if each is told else each for each in said]
    return said


def calm_after(h: History, as_of_ms: int) -> tuple[LogState, Calm | None, str | None]:
    state = fold(newborn(LOG, TOPIC), h.told, TERMS, as_of_ms=as_of_ms)
    judged = judge(state, TERMS, from_ms=0)
    words = words_of(judged.statement)
    return state, None if words is None else calm_of(state, TERMS), words


@pytest.mark.slow
def test_what_the_screen_excuses_the_machine_passes() -> None:
    """Over several days each: the same statement to the letter, no finding, and the calm that the machine's
    own state has. What is doubled, lost, polled or moved is never excused."""
    excused: Counter[str] = Counter()
    for seed in range(HISTORIES):
        h = begun(seed)
        as_of_ms = h.now_ms
        state, calm, words = calm_after(h, as_of_ms)
        for day in range(3):
            if calm is None or words is None:
                break
            said, odd = quiet_day(h, seed * 3 + day)
            from_ms, as_of_ms = as_of_ms, h.now_ms + random.Random(seed).choice((0, MINUTE_MS, 30 * DAY_MS))
            after = fold(state, said, TERMS, as_of_ms=as_of_ms)
            judged = judge(after, TERMS, from_ms=from_ms)
            calm = excuse(calm, said, as_of_ms=as_of_ms)
            if calm is None:
                break
            excused[odd] += 1
            assert judged.verdict is Verdict.PASS, (seed, odd, judged.statement)
            assert judged.findings == (), (seed, odd)
            stated = put_in(words, calm, from_ms=from_ms, as_of_ms=as_of_ms)
            assert stated == said_as_json(judged.statement), (seed, odd)
            again = calm_of(after, TERMS)
            assert again is not None, (seed, odd)
            assert calm == replace(again, until_ms=calm.until_ms), (seed, odd)
            assert calm.until_ms <= again.until_ms, (seed, odd)
            h.now_ms = max(h.now_ms, as_of_ms)
            state = after

    assert excused["none"] > HISTORIES // 20, excused
    assert not excused.keys() & {"twice", "lost", "polled", "dropped", "start"}, excused


def test_time_alone_excuses_no_log_past_its_bound() -> None:
    """With nothing said at all: excused before the bound, and what the machine says then is no other."""
    for mode in ("none", "kip405", "ours"):
        h = fixture(mode).after(hours=2)
        state, calm, words = calm_after(h, h.now_ms)
        assert calm is not None, mode
        assert words is not None, mode
        for ahead_ms in (0, HOUR_MS, DAY_MS, 6 * DAY_MS, 9 * DAY_MS, 90 * DAY_MS):
            as_of_ms = h.now_ms + ahead_ms
            judged = judge(fold(state, [], TERMS, as_of_ms=as_of_ms), TERMS, from_ms=0)
            is_excused = excuse(calm, [], as_of_ms=as_of_ms) is not None
            assert not is_excused or said_as_json(judged.statement) == put_in(
                words, calm, from_ms=0, as_of_ms=as_of_ms
            ), (mode, ahead_ms)
        assert excuse(calm, [], as_of_ms=h.now_ms + HOUR_MS) is not None, mode
        assert (excuse(calm, [], as_of_ms=h.now_ms + 90 * DAY_MS) is None) == (calm.until_ms < 2**62), mode
