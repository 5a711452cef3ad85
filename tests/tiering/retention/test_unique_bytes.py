"""The bytes that a log has for certain: never more than it has, whatever overlaps."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering.retention.unique_bytes import Extent, UniqueBytes

MIB = 2**20
LOG_BYTES = st.lists(st.integers(1, 50), min_size=1, max_size=20)  # of each offset


def extents_of(sizes: list[int], ranges: list[tuple[int, int]]) -> list[Extent]:
    """Who holds these ranges holds just these bytes."""
    return [Extent(start, end, sum(sizes[start:end])) for start, end in ranges]


@st.composite
def held_logs(draw: st.DrawFn) -> tuple[list[int], list[Extent]]:
    """A log's bytes by offset, and holders of ranges of it that overlap at random."""
    sizes = draw(LOG_BYTES)
    edges = st.integers(0, len(sizes))
    ranges = draw(st.lists(st.tuples(edges, edges).map(sorted).map(tuple), max_size=8))
    return sizes, extents_of(sizes, [(a, b) for a, b in ranges if a < b])


@given(held_logs(), st.integers(0, 20))
def test_never_more_than_there_is(log: tuple[list[int], list[Extent]], offset: int) -> None:
    """However the holders overlap, no offset counts twice."""
    sizes, extents = log

    assert UniqueBytes(extents).from_offset(offset) <= sum(sizes[offset:])


@given(held_logs())
def test_the_heaviest_set_without_overlap(log: tuple[list[int], list[Extent]]) -> None:
    """The bound is the best that can be told from ranges and sizes alone."""
    _, extents = log

    def best(left: list[Extent], end: int) -> int:
        if not left:
            return 0
        first, *rest = left
        without = best(rest, end)
        if first.base_offset < end:
            return without
        return max(without, first.size_bytes + best(rest, first.end_offset))

    assert UniqueBytes(extents).from_offset(0) == best(sorted(extents), 0)


@given(LOG_BYTES, st.data())
def test_exact_without_overlaps(sizes: list[int], data: st.DataObject) -> None:
    """One holder an offset: the number is the log's own, at each boundary."""
    cuts = data.draw(st.sets(st.integers(1, len(sizes))))
    bases = sorted({0, len(sizes)} | cuts)

    unique = UniqueBytes(extents_of(sizes, list(pairwise(bases))))

    assert [unique.from_offset(base) for base in bases] == [sum(sizes[base:]) for base in bases]


@pytest.mark.slow
@given(held_logs())
def test_more_of_the_log_is_never_fewer_bytes(log: tuple[list[int], list[Extent]]) -> None:
    """It does not rise with the offset: a size limit cuts the log in one place."""
    sizes, extents = log
    unique = UniqueBytes(extents)

    counted = [unique.from_offset(offset) for offset in range(len(sizes) + 1)]

    assert counted == sorted(counted, reverse=True)


def test_what_is_on_disk_as_well_counts_once() -> None:
    """KAFKA-20732: everything is in the tier and on the leader's disk; that is 10.5 MiB, not 20.5."""
    tier = [Extent(base, base + 1000, MIB) for base in range(0, 10_000, 1000)]
    disk = [*tier, Extent(10_000, 10_500, MIB // 2)]

    assert UniqueBytes([*tier, *disk]).from_offset(0) == 10 * MIB + MIB // 2


def test_an_empty_range_counts_nothing() -> None:
    """A holder of no offset has no bytes, whatever it says."""
    assert UniqueBytes([Extent(5, 5, 1000)]).from_offset(0) == 0
