"""What an emitter said, out of what Spark summed up of it: words of 64 numbers, a bit for each that came.

    one row a run           its numbers, as words of 64; those of logs that are not told which (`elsewhere`);
                            how far a heartbeat says that it had counted (`told_to`)
    one row a run and log   its numbers of one log, as `ranges`: starts and ends, one behind the other

So an emitter's day is a row for each log, in whatever order and however often its events were delivered.

Owns the way from words to spans. Invariant: it is what `rules.machine.emitters.summed` makes of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rules.machine.emitters import RunSaid, Said
from rules.machine.spans import Spans, join, normal

WORD_BITS = 64
FULL = -1  # all bits of a signed word
_AT_ONCE = 1 << 14  # words that are taken apart, each bit a byte


def spans_of(words: Iterable[int], bits: Iterable[int]) -> Spans:
    """The numbers whose bits are set, in words of any order; a word may come several times."""
    of_words, of_bits = np.fromiter(words, np.int64), np.fromiter(bits, np.int64)
    order = np.argsort(of_words, kind="stable")
    of_words, first = np.unique(of_words[order], return_index=True)
    of_bits = np.bitwise_or.reduceat(of_bits[order], first)
    parts = [
        _spans(of_words[at : at + _AT_ONCE], of_bits[at : at + _AT_ONCE])
        for at in range(0, len(of_words), _AT_ONCE)
    ]
    return join(*parts)


def _spans(words: Any, bits: Any) -> Spans:
    if bool((bits == FULL).all()) and bool((np.diff(words) == 1).all()):
        return ((int(words[0]) * WORD_BITS, (int(words[-1]) + 1) * WORD_BITS),)
    little = bits.astype("<i8").view(np.uint8).reshape(-1, WORD_BITS // 8)
    at, bit = np.nonzero(np.unpackbits(little, axis=1, bitorder="little"))
    numbers = words[at] * WORD_BITS + bit
    breaks = [-1, *np.flatnonzero(np.diff(numbers) != 1).tolist(), len(numbers) - 1]
    return normal((int(numbers[one + 1]), int(numbers[other]) + 1) for one, other in pairwise(breaks))


def said_of(broker_id: int, component: str, rows: Iterable[Mapping[str, Any]]) -> Said | None:
    """None of nothing."""
    runs: dict[int, Mapping[str, Any]] = {}
    logs: dict[int, dict[str, Spans]] = {}
    for row in rows:
        of_run = logs.setdefault(row["incarnation"], {})
        if row["log"] is not None:
            of_run[row["log"]] = _ranges(row["ranges"])
            continue
        runs[row["incarnation"]] = row
        if row["elsewhere"]:
            of_run[""] = _ranges(row["elsewhere"])
    if not runs:
        return None
    return Said(
        broker_id=broker_id,
        component=component,
        runs=tuple(_run(row, logs[incarnation]) for incarnation, row in sorted(runs.items())),
        follows=tuple(sorted({pair for row in runs.values() for pair in _pairs(row["follows"])})),
        watches_disks=any(row["watches_disks"] for row in runs.values()),
    )


def _run(row: Mapping[str, Any], log_numbers: Mapping[str, Spans]) -> RunSaid:
    numbers = spans_of(row["words"], row["bits"])
    return RunSaid(
        incarnation=row["incarnation"],
        numbers=numbers,
        told_to=max(row["told_to"] or 0, numbers[-1][1]),
        last_ms=row["last_ms"],
        log_numbers=log_numbers,
    )


def _ranges(ends: Sequence[int]) -> Spans:
    return normal(_pairs(ends))


def _pairs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(numbers[::2], numbers[1::2], strict=True)
