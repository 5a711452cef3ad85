"""Records as columns: the same as one by one, and silent about whatever is not in order."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.record_batch import CODECS, PlainRecord, encode_batch, varint
from tests.encode.segment import T0_MS, batches, plain_records
from tests.tiering.log.fuzz import SEED, mutation
from tests.tiering.log.test_batch import record_lists
from tiering.log import record_columns
from tiering.log.batch import HEADER_BYTES, LOG_APPEND_TIME, read_header, read_records
from tiering.log.columns import read_block
from tiering.log.errors import LogFormatError
from tiering.log.record_checks import check_records, suspects
from tiering.log.record_columns import read_record_columns

Told = list[tuple[int, int, int, int]]  # offset, time, size of key, size of value


def by_columns(content: list[bytes]) -> list[Told | None]:
    """What the columns tell of each batch; None where it is not sound."""
    bounds = [0, *accumulate(len(batch) for batch in content)]
    told: list[Told | None] = []
    for columns in read_record_columns(memoryview(b"".join(content)), bounds):
        for index in range(len(columns)):
            rows = slice(int(columns.starts[index]), int(columns.starts[index + 1]))
            parts = (columns.offset, columns.timestamp_ms, columns.key_bytes, columns.value_bytes)
            listed = zip(*(part[rows].tolist() for part in parts), strict=True)
            told.append(list(listed) if columns.is_sound[index] else None)
    return told


def one_by_one(batch: bytes) -> Told | None:
    """What `read_records` tells of a batch; None where it refuses."""
    try:
        return [
            (
                record.offset,
                record.timestamp_ms,
                -1 if record.key is None else len(record.key),
                -1 if record.value is None else len(record.value),
            )
            for record in read_records(batch, read_header(batch))
        ]
    except LogFormatError:
        return None


@pytest.mark.slow
@given(lists=st.lists(record_lists(), min_size=1, max_size=6), data=st.data())
def test_columns_tell_what_reading_one_by_one_tells(
    lists: list[list[PlainRecord]], data: st.DataObject
) -> None:
    """Any records, in any codecs beside each other, with either kind of time: all sound, all the same; but
    for batches with a time so far from the first that it takes a varint of ten bytes."""
    content = [
        encode_batch(
            listed,
            codec=data.draw(st.sampled_from(sorted(CODECS))),
            attributes=data.draw(st.sampled_from([0, LOG_APPEND_TIME])),
        )
        for listed in lists
    ]

    assert by_columns(content) == [
        None if is_far(listed, batch) else one_by_one(batch)
        for listed, batch in zip(lists, content, strict=True)
    ]


def is_far(listed: list[PlainRecord], batch: bytes) -> bool:
    """Whether a time has more than 63 bits of zigzag as it is written, which columns leave to the other."""
    first_ms = read_header(batch).base_timestamp_ms
    return any(not -(2**62) <= each.timestamp_ms - first_ms < 2**62 for each in listed)


def test_nothing_broken_is_told_as_sound() -> None:
    """Ten thousand broken payloads, good ones between them: what is sound agrees, and the good stay sound."""
    payloads = [batch[HEADER_BYTES:] for batch in batches(0, count=4, records_each=6)]
    good = batches(0, count=1, records_each=20)[0]
    refused = agreed = 0
    for first in range(0, 10_000, 500):
        broken = [
            encode_batch(plain_records(60, 6), payload=mutation(payloads, SEED, number).blob)
            for number in range(first, first + 500)
        ]
        told = by_columns([batch for each in broken for batch in (each, good)])
        assert told[1::2] == [one_by_one(good)] * 500
        for number, (batch, found) in enumerate(zip(broken, told[::2], strict=True), first):
            if found is not None:
                assert found == one_by_one(batch), f"seed {SEED}, number {number}"
        refused += told.count(None)
        agreed += 500 - told.count(None)

    assert refused > 1000
    assert agreed > 100


def test_a_compressed_batch_that_is_broken_leaves_its_neighbours_alone() -> None:
    """What cannot be decompressed, or has a codec that nobody knows, is not sound; the next one is."""
    good = encode_batch(plain_records(0, 5), codec="zstd")
    torn = encode_batch(plain_records(5, 5), codec="zstd", payload=good[HEADER_BYTES:-4])
    unknown = encode_batch(plain_records(10, 5), attributes=7)

    assert by_columns([torn, good, unknown, good]) == [None, one_by_one(good), None, one_by_one(good)]


@pytest.mark.parametrize("record_count", [-1, 2, 4, 2**31 - 1])
def test_a_count_that_is_not_true_is_not_sound(record_count: int) -> None:
    """More records than the header says, fewer, or so many that they would not fit in memory."""
    lying = encode_batch(plain_records(0, 3), record_count=record_count)

    assert by_columns([lying]) == [None]


def test_numbers_beyond_int64_are_left_to_the_other_reader() -> None:
    """A varint of ten bytes, and a sum that leaves int64: Python holds what a column cannot."""
    far = encode_batch([PlainRecord(offset=0, timestamp_ms=2**62)], base_timestamp_ms=-(2**62) - 2**61)
    body = b"\0" + varint(0) + b"\x80" * 9 + b"\0" + varint(-1) + varint(-1) + varint(0)
    long = encode_batch(plain_records(0, 1), payload=varint(len(body)) + body)

    assert one_by_one(long) == [(0, T0_MS, -1, -1)]
    assert by_columns([far, long]) == [None, None]


def test_many_compressed_batches_are_read_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain bytes held at once are bounded: the columns then come in several pieces, none missing."""
    content = batches(0, count=50, records_each=10, codec="lz4")
    monkeypatch.setattr(record_columns, "PLAIN_BYTES", 1000)
    bounds = [0, *accumulate(len(batch) for batch in content)]

    groups = list(read_record_columns(memoryview(b"".join(content)), bounds))

    assert len(groups) > 5
    assert np.concatenate([group.offset for group in groups]).tolist() == list(range(500))


def test_a_window_without_records_is_read() -> None:
    """Batches that compaction emptied have a header and nothing more."""
    empty = encode_batch([], base_offset=5)
    chance = Random(1)
    content = [chance.choice([empty, batches(9, count=1)[0]]) for _ in range(20)]

    assert by_columns([empty]) == [[]]
    assert by_columns(content) == [one_by_one(batch) for batch in content]


def lying_batch(chance: Random, base: int) -> bytes:
    """Five records that hold what their header says, or not in one of many ways."""
    records = plain_records(base, 5)
    lie = chance.choice(["none", "none", "hole", "back", "before", "delta", "time", "count", "payload"])
    if lie in ("hole", "back", "before"):
        moved = chance.randrange(1, 4)
        offset = {"hole": base + 7, "back": base + moved - 1, "before": base - 1}[lie]
        records[moved] = replace(records[moved], offset=offset)
    batch_of: dict[str, int] = {"base_offset": base, "base_timestamp_ms": T0_MS + base}
    if lie == "delta":
        batch_of["last_offset_delta"] = chance.choice([3, 5, 9])
    if lie == "time":
        batch_of["max_timestamp_ms"] = T0_MS
    if lie == "count":
        batch_of["record_count"] = chance.choice([0, 4, 6])
    if lie == "payload":
        return encode_batch(records, payload=chance.randbytes(40))
    return encode_batch(records, codec=chance.choice(["none", "lz4"]), **batch_of)  # type: ignore[arg-type]


@pytest.mark.parametrize("offsets_exact", [True, False])
def test_whoever_is_no_suspect_has_nothing_wrong_with_it(offsets_exact: bool) -> None:
    """Four thousand batches, most of them lying: those excused are those that reading one by one excuses."""
    chance = Random(405)
    good = suspected = 0
    for _ in range(20):
        content = [lying_batch(chance, base) for base in range(10, 2010, 10)]
        bounds = [0, *accumulate(len(batch) for batch in content)]
        headers = b"".join(batch[:HEADER_BYTES] for batch in content)
        block = read_block(headers, bounds[:-1], [0] * len(content))
        found = set(suspects(memoryview(b"".join(content)), bounds, block, offsets_exact=offsets_exact))
        bad = {
            index
            for index, batch in enumerate(content)
            if check_records(memoryview(batch), 0, offsets_exact=offsets_exact) is not None
        }
        assert found == bad
        good += len(content) - len(bad)
        suspected += len(bad)

    assert good > 500
    assert suspected > 500
