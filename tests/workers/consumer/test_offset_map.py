"""The map of finished offsets in a commit's metadata: small, exact, and never trusted too far."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.consumer import offset_map
from workers.consumer.offset_map import METADATA_BYTES_MAX, NoMap, OffsetMap, decode, encode

OFFSETS = st.integers(0, 1 << 62)


def decoded(text: str, committed: int) -> OffsetMap:
    found = decode(text, committed)
    assert isinstance(found, OffsetMap)
    return found


@given(base=OFFSETS, ahead=st.sets(st.integers(0, 3_000), min_size=1), epoch=st.integers(-1, (1 << 31) - 1))
def test_what_is_written_is_read(base: int, ahead: set[int], epoch: int) -> None:
    """Base, offsets and leader epoch come back as they were."""
    finished = sorted(base + each for each in ahead)

    found = decoded(encode(base, finished, epoch), base)

    assert (found.base, found.finished, found.leader_epoch) == (base, frozenset(finished), epoch)


@given(text=st.text() | st.binary().map(lambda raw: "SWM1R" + raw.hex()), committed=OFFSETS)
def test_decoding_never_raises(text: str, committed: int) -> None:
    """Any text is a map or it is none."""
    assert isinstance(decode(text, committed), NoMap | OffsetMap)


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7), data=st.data())
def test_a_flipped_bit_is_no_map(place: int, bit: int, data: st.DataObject) -> None:
    """Damage is noticed: a record that was not finished is never taken for finished."""
    finished = data.draw(st.sets(st.integers(100, 200), min_size=1))
    text = encode(100, sorted(finished), 3)
    raw = bytearray(text.encode())
    raw[place % len(raw)] ^= 1 << bit

    found = decode(raw.decode("latin-1"), 100)

    assert isinstance(found, NoMap) or found.finished == finished


@pytest.mark.parametrize("step", [2, 3, 7, 50, 1000])
def test_it_fits_into_what_a_broker_takes(step: int) -> None:
    """4,096 bytes at most; what does not fit is left out from the top, and what is there is right."""
    finished = list(range(10, 10 + 200_000 * step, step))

    text = encode(10, finished, 0)

    kept = decoded(text, 10).finished
    assert len(text) <= METADATA_BYTES_MAX
    assert kept == set(finished[: len(kept)])
    assert len(kept) > 1_000


def test_long_runs_cost_nothing() -> None:
    """A million finished records behind one unfinished one are a few bytes."""
    text = encode(5, range(6, 1_000_000), 0)

    assert len(text) < 60
    assert len(decoded(text, 5).finished) == 999_994


def test_runs_without_end_are_refused() -> None:
    """A few bytes may claim more offsets than there is memory: they come to no map."""
    huge = offset_map._varint(0) + offset_map._varint(1 << 60)

    assert offset_map._read_runs(0, huge) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "no metadata"),
        ("", "no metadata"),
        ("checkpoint 17", "somebody else"),
        ("SWM1", "damaged"),
        ("SWM1B????", "not base64"),
        (encode(7, [8], 0), "another offset"),
        (encode(6, [8], 0)[:-4], "damaged"),
    ],
)
def test_it_says_why_there_is_none(text: str | None, why: str) -> None:
    """Foreign text, damage and a map of another commit are told apart."""
    found = decode(text, 6)

    assert isinstance(found, NoMap)
    assert why in found.reason


def test_a_record_of_a_later_epoch_is_not_the_finished_one() -> None:
    """Confluent #909: an offset that is used again after an unclean election holds another record."""
    found = OffsetMap(base=4, finished=frozenset({6}), leader_epoch=2)

    assert found.covers(6, 2)
    assert not found.covers(6, 3)
    assert not found.covers(6, -1)
    assert not found.covers(5, 2)
