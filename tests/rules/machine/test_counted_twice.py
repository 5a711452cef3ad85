"""Fault 10 of RULES.md in whatever order it is heard: START-02, and RET-02 alone beneath it.

A leader that begins counts tier and disk together (KAFKA-20732), moves the start, deletes in the tier, and
then on the disk. Which of these is told first is by chance: each comes by an emitter of its own, and a look
at a disk may fall anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from rules.events import DeleteStarted, LogBaseline
from tests.rules.machine.histories import (
    BROKERS,
    FOUND,
    MIB,
    History,
    fixture,
    found,
    parent_of,
    segment,
)

GONE = 5
LEFT_BYTES = (10 - GONE) * MIB + MIB // 2
SEEDS = 150
KEEPS = {
    "total_retention_ms": '"7d"',
    "total_retention_bytes": '"15MiB"',
    "local_retention_ms": '"1h"',
    "local_retention_bytes": '"15MiB"',
}


def counted_twice(seed: int, *, limit_bytes: int = 15 * MIB, pause_s: int = 4) -> History:
    """In the order that the seed says; each disk's head goes from its lower end."""
    rng = random.Random(seed)
    h = fixture("kip405", local_from=0, declared=KEEPS)
    h.config("retention.bytes", str(limit_bytes), "-1")
    h.after(minutes=5)
    lines: list[list[Callable[[], object]]] = [[lambda: h.elects(2)]]
    lines.append([_deletes(h, index) for index in range(GONE)])
    for broker in BROKERS:
        drops = [_drops(h, broker, index) for index in range(GONE)]
        drops.insert(rng.choice((0, GONE)), _advances(h, broker))
        drops.append(_reads(h, broker))
        lines.append(drops)
    if rng.random() < 0.5:
        lines[0].insert(0, _has_no_leader(h))
    while any(lines):
        rng.choice([each for each in lines if each]).pop(0)()
        h.after(seconds=rng.choice((0, 0, 1, pause_s)))
    return h.after(hours=2)


def _deletes(h: History, index: int) -> Callable[[], object]:
    """The record names the broker that deletes; it leads, whether or not anybody has told that it does."""
    name, base, end, _ = segment(index)
    return lambda: h.tier(DeleteStarted, name, base, end, cause=None, broker_id=2, broker=2)


def _drops(h: History, broker: int, index: int) -> Callable[[], object]:
    return lambda: h.dropped(broker, *segment(index)[1:])


def _advances(h: History, broker: int) -> Callable[[], object]:
    return lambda: h.start(broker, 0, GONE * 1_000, local=None)


def _reads(h: History, broker: int) -> Callable[[], object]:
    return lambda: h.watermark(broker, 10_500, start=GONE * 1_000, size_bytes=LEFT_BYTES)


def _has_no_leader(h: History) -> Callable[[], object]:
    def says() -> None:
        h.epoch += 1
        h.leader = -1
        h.leadership()

    return says


def what_fault_10_is(rule_id: str = "RET-02") -> set[FOUND]:
    children = {(rule_id, "C", ((index * 1_000, (index + 1) * 1_000),)) for index in range(GONE)}
    return {("START-02", "C", ((0, GONE * 1_000),)), *children}


@pytest.mark.slow
def test_in_any_order_it_is_one_loss_by_size() -> None:
    """START-02 over all that went, RET-02 for each segment beneath it, and nothing else."""
    wrong = {
        seed: told
        for seed in range(SEEDS)
        if (told := found(counted_twice(seed).judged())) != what_fault_10_is()
    }

    assert wrong == {}
    assert parent_of(counted_twice(0).judged(), "RET-02") == "START-02"


@pytest.mark.slow
@pytest.mark.parametrize("limit_bytes", [-1, 30 * MIB])
def test_what_no_count_comes_to_is_not_charged_to_size(limit_bytes: int) -> None:
    """Under no limit, and under one above everything that could be counted, it is DEL-01 in any order."""
    wrong = {
        seed: told
        for seed in range(30)
        if (told := found(counted_twice(seed, limit_bytes=limit_bytes).judged()))
        != what_fault_10_is("DEL-01")
    }

    assert wrong == {}


def test_a_disk_that_nobody_measured_since_it_was_empty_counts_as_what_closed_on_it() -> None:
    """As a young log's is: the first reading found nothing, and the next comes with the first deletion."""
    wrong = {
        seed: told
        for seed in range(30)
        if (told := found(_unmeasured(counted_twice(seed)).judged())) != what_fault_10_is()
    }

    assert wrong == {}


def test_what_a_young_log_lets_go_by_its_size_is_no_loss() -> None:
    """Ten segments closed since anybody measured; two may go under a limit of eight, and a third may not."""
    keeps = {"total_retention_ms": '"7d"', "total_retention_bytes": '"8MiB"'}

    def lets_go(count: int) -> History:
        h = fixture("none", declared=keeps, retention_bytes=8 * MIB).after(minutes=5)
        for broker in BROKERS:
            for index in range(count):
                _drops(h, broker, index)()
            h.start(broker, 0, count * 1_000, local=count * 1_000)
            h.watermark(broker, 10_500, start=count * 1_000, size_bytes=(10 - count) * MIB + MIB // 2)
        return _unmeasured(h.after(hours=2))

    assert found(lets_go(2).judged()) == set()
    assert {rule_id for rule_id, _, _ in found(lets_go(3).judged())} == {"START-02", "RET-02"}


def _unmeasured(h: History) -> History:
    """Its disks were measured when they were empty, and not again before something went."""
    h.told = [
        replace(each, event=replace(each.event, size_bytes=0))
        if isinstance(each.event, LogBaseline)
        else each
        for each in h.told
    ]
    return h


def test_a_long_deletion_is_one() -> None:
    """What goes on for longer than settles went by the same count."""
    h = counted_twice(0, pause_s=1)
    alone = fixture("kip405", local_from=0, declared=KEEPS)
    alone.config("retention.bytes", str(15 * MIB), "-1")
    alone.after(minutes=5).elects(2)
    for broker in (2, 1, 3):
        _advances(alone, broker)()
    for index in range(GONE):
        _deletes(alone, index)()
        for broker in BROKERS:
            _drops(alone, broker, index)()
        alone.after(seconds=100)

    assert found(alone.after(hours=2).judged()) == found(h.judged()) == what_fault_10_is()
