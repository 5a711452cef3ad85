"""What an emitter said, out of what Spark summed up of it: words of 64 numbers, a bit for each that came.

    one row a word    of an emitter's numbers, or of its numbers of one log (`log`)
    one row a run     how far a heartbeat says that it had counted (`told_to`)

So an emitter's day is as many rows as its numbers fill words, in whatever order and however often its
events were delivered.

Owns the way from words to spans. Invariant: it is what `rules.machine.emitters.summed` makes of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from rules.machine.emitters import RunSaid, Said
from rules.machine.spans import Spans, join, normal

WORD_BITS = 64
FULL = -1  # all bits of a signed word
_AT_ONCE = 1 << 14  # words that are taken apart, each bit a byte


def spans_of(words: Iterable[int], bits: Iterable[int]) -> Spans:
    """The numbers whose bits are set, in words of any order; a word may come in several rows."""
    of_words, of_bits = np.fromiter(words, np.int64), np.fromiter(bits, np.int64)
    order = np.argsort(of_words, kind="stable")
    of_words, of_bits = of_words[order], of_bits[order]
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
    numbers = np.unique(words[at] * WORD_BITS + bit)
    breaks = [-1, *np.flatnonzero(np.diff(numbers) != 1).tolist(), len(numbers) - 1]
    return normal((int(numbers[one + 1]), int(numbers[other]) + 1) for one, other in pairwise(breaks))


def said_of(broker_id: int, component: str, rows: Iterable[Mapping[str, Any]]) -> Said | None:
    """None of nothing."""
    words: dict[tuple[int, str | None], list[tuple[int, int]]] = {}
    told_to: dict[int, int] = {}
    last_ms: dict[int, int] = {}
    follows, watches = set(), False
    for row in rows:
        incarnation = row["incarnation"]
        if row["word"] is None:
            told_to[incarnation] = max(told_to.get(incarnation, 0), row["told_to"])
            continue
        words.setdefault((incarnation, row["log"]), []).append((row["word"], row["bits"]))
        if row["log"] is None:
            last_ms[incarnation] = max(last_ms.get(incarnation, 0), row["last_ms"])
            watches = watches or row["watches_disks"]
            if row["follows_incarnation"] is not None and row["follows_last_seq"] is not None:
                follows.add((row["follows_incarnation"], row["follows_last_seq"]))
    numbers = {key: spans_of(*zip(*each, strict=True)) for key, each in words.items()}
    runs = sorted(incarnation for incarnation, log in numbers if log is None)
    if not runs:
        return None
    return Said(
        broker_id=broker_id,
        component=component,
        runs=tuple(
            RunSaid(
                incarnation=each,
                numbers=numbers[each, None],
                told_to=max(told_to.get(each, 0), numbers[each, None][-1][1]),
                last_ms=last_ms[each],
                log_numbers={
                    log: spans for (run, log), spans in numbers.items() if run == each and log is not None
                },
            )
            for each in runs
        ),
        follows=tuple(sorted(follows)),
        watches_disks=watches,
    )
