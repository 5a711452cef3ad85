"""Values in memory: each comes back as it was, however it was put there, in a fraction of its size."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.tiering.segments.strategies import segment
from tiering.segments.codec import encode_segment
from tiering.segments.values import CHUNK_BYTES, Place, StoredValues

VALUES = st.lists(st.tuples(st.booleans(), st.integers(0, CHUNK_BYTES + 10)), max_size=12)


@settings(deadline=None)
@given(VALUES, st.integers(0, 2**32))
@example([(False, 0)] * 3 + [(False, CHUNK_BYTES), (False, 0)], 7)  # an empty one behind a chunk that is full
def test_a_value_comes_back(sizes: list[tuple[bool, int]], seed: int) -> None:
    """One by one and many together, small ones and ones larger than a chunk, in any order."""
    chance = random.Random(seed)
    stored = StoredValues()
    placed: list[tuple[Place, bytes]] = []
    values = [chance.randbytes(size) for _, size in sizes]
    together: list[bytes] = []
    for (alone, _), value in zip(sizes, values, strict=True):
        if alone:
            placed.append((stored.add(value), value))
        else:
            together.append(value)
        if len(together) == 3:
            placed += _added(stored, together)
            together = []
    if together:
        placed += _added(stored, together)

    chance.shuffle(placed)
    assert all(stored.get(place) == value for place, value in placed)
    columns = (np.array([place[each] for place, _ in placed], np.int64) for each in range(3))
    assert list(stored.get_all(*columns)) == [value for _, value in placed]
    again = StoredValues(stored.packed, stored.tail)
    assert all(again.get(place) == value for place, value in placed)
    assert stored.stored_bytes == sum(map(len, values))


def _added(stored: StoredValues, values: list[bytes]) -> list[tuple[Place, bytes]]:
    chunks, starts, lengths = stored.add_all(values)
    places = zip(chunks.tolist(), starts.tolist(), lengths.tolist(), strict=True)
    return [(Place(*place), value) for place, value in zip(places, values, strict=True)]


def test_records_take_a_fraction_of_their_size() -> None:
    """What records of one topic have in common is kept once."""
    stored = StoredValues()
    values = [encode_segment(segment(number, 100 * number, 100 * number + 100)) for number in range(2000)]

    stored.add_all(values)
    assert len(stored.packed) > 2  # asked for, so that none of them waits for the thread any more

    assert stored.size_bytes < sum(map(len, values)) / 4
