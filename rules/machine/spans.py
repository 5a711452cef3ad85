"""Sets of offsets as half-open ranges: sorted, apart from each other, none empty.

    join(a, b)   what is in either        cut(a, b)   what is in a and not in b
    meet(a, b)   what is in both          covers(a, b)  whether all of b is in a

Owns this arithmetic. Invariant: every function gives spans in their only normal form, so that equal sets are
equal values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
Spans: TypeAlias = tuple[Span, ...]

NONE: Spans = ()


def span(start: int, end: int) -> Spans:
    """One range; none where it is empty."""
    return ((start, end),) if start < end else NONE


def normal(ranges: Iterable[Span]) -> Spans:
    out: list[Span] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return tuple(out)


def join(*sets: Spans) -> Spans:
    return normal(each for one in sets for each in one)


def cut(left: Spans, right: Spans) -> Spans:
    out: list[Span] = []
    at = 0
    for start, end in left:
        while at < len(right) and right[at][1] <= start:
            at += 1
        here = at
        while here < len(right) and right[here][0] < end:
            if start < right[here][0]:
                out.append((start, right[here][0]))
            start = max(start, right[here][1])
            here += 1
        if start < end:
            out.append((start, end))
    return tuple(out)


def meet(left: Spans, right: Spans) -> Spans:
    return cut(left, cut(left, right))


def covers(whole: Spans, part: Spans) -> bool:
    return not cut(part, whole)


def count(spans: Spans) -> int:
    """How many offsets."""
    return sum(end - start for start, end in spans)
