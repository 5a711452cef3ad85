"""Pieces cut into windows: the same batches as a file gives, wherever the pieces are cut."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.encode.record_batch import PlainRecord, encode_batch
from tests.tiering.scrub.kit import flip
from tiering.log.segment import SegmentScan, scan, scan_steps
from tiering.log.windows import ChainBreak
from tiering.scrub.stream import windows_of

SIZES = (1, 40, 3, 700, 0, 90)


def batch(base: int, size: int) -> bytes:
    return encode_batch([PlainRecord(offset=base, timestamp_ms=base, value=b"x" * size)])


CONTENT = b"".join(batch(base, size) for base, size in enumerate(SIZES))
CUTS = st.lists(st.integers(1, len(CONTENT) - 1), max_size=12, unique=True).map(sorted)


def pieces_of(content: bytes, cuts: Sequence[int]) -> Iterator[memoryview]:
    """All in the same memory: what is kept of one without a copy is wrong when the next one comes."""
    room = memoryview(bytearray(len(content)))
    for start, end in pairwise([0, *(each for each in cuts if each < len(content)), len(content)]):
        room[: end - start] = content[start:end]
        yield room[: end - start]


def streamed(content: bytes, cuts: Sequence[int]) -> SegmentScan:
    return scan_steps(
        windows_of(pieces_of(content, cuts), len(content)),
        size_bytes=len(content),
        reread=lambda at, size: content[at : at + size],
        base_offset=0,
    )


def from_file(content: bytes) -> SegmentScan:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return scan(file.fileno(), base_offset=0)


@settings(deadline=None)
@given(CUTS)
def test_every_batch_comes_once_and_whole(cuts: list[int]) -> None:
    """However the stream is cut, the windows are the content, cut at its batches."""
    seen = bytearray()
    sizes = []
    for step in windows_of(pieces_of(CONTENT, cuts), len(CONTENT)):
        assert not isinstance(step, ChainBreak)
        assert step.start == len(seen)
        seen += step.buffer[: step.bounds[-1]]
        sizes += [end - start for start, end in pairwise(step.bounds)]

    assert bytes(seen) == CONTENT
    assert sizes == [len(batch(base, size)) for base, size in enumerate(SIZES)]


@settings(deadline=None)
@given(CUTS, st.integers(0, len(CONTENT) - 1))
def test_a_flipped_bit_is_the_same_defect_as_in_a_file(cuts: list[int], at: int) -> None:
    """Scanned as a stream, damaged bytes come to what the file's scan says of them, to the byte."""
    damaged = flip(CONTENT, at)

    assert streamed(damaged, cuts) == from_file(damaged)


@settings(deadline=None)
@given(CUTS, st.integers(0, len(CONTENT)))
def test_a_stream_that_ends_early_is_told_as_a_file_is(cuts: list[int], size_bytes: int) -> None:
    """Cut short inside a batch or between two."""
    short = CONTENT[:size_bytes]

    assert streamed(short, cuts) == from_file(short)
