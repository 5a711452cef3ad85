"""Codecs: what Kafka's clients write is read; what claims too much is refused before it is allocated."""

from __future__ import annotations

import struct
from itertools import pairwise
from random import Random

import cramjam
import pytest

from tests.encode.record_batch import compress
from tiering.log import decompressors
from tiering.log.codec import Codec, decompress
from tiering.log.errors import EndOfBuffer, LogFormatError, Malformed, TooLarge

PLAIN = b"seawall keeps the tide " * 4000
COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("plain", [b"", b"x", PLAIN])
def test_each_codec_gives_the_plain_bytes(codec: Codec, plain: bytes) -> None:
    """What was compressed comes back whole, the empty payload included."""
    compressed = compress(codec.name.lower(), plain)

    assert bytes(decompress(codec, memoryview(compressed))) == plain


def test_a_bare_snappy_block_is_read_too() -> None:
    """librdkafka writes snappy without snappy-java's framing, and brokers keep it so."""
    compressed = bytes(cramjam.snappy.compress_raw(PLAIN))

    assert bytes(decompress(Codec.SNAPPY, memoryview(compressed))) == PLAIN


@pytest.mark.parametrize("codec", COMPRESSING)
def test_output_over_the_limit_is_refused(codec: Codec) -> None:
    """A payload that decompresses past the limit is TooLarge, whatever its header claims."""
    compressed = compress(codec.name.lower(), b"\0" * 200_000)

    with pytest.raises(TooLarge):
        decompress(codec, memoryview(compressed), limit_bytes=100_000)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_output_just_at_the_limit_is_given(codec: Codec) -> None:
    """The limit is inclusive."""
    compressed = compress(codec.name.lower(), PLAIN)

    assert bytes(decompress(codec, memoryview(compressed), limit_bytes=len(PLAIN))) == PLAIN


@pytest.mark.parametrize("codec", COMPRESSING)
def test_every_truncation_is_a_typed_error(codec: Codec) -> None:
    """A compressed payload cut anywhere raises one of our errors or, for snappy, gives fewer bytes."""
    compressed = compress(codec.name.lower(), b"some plain text, not too long" * 4)

    for size_bytes in range(1, len(compressed)):
        try:
            plain = decompress(codec, memoryview(compressed)[:size_bytes])
        except LogFormatError:
            continue
        assert codec is Codec.SNAPPY
        assert len(plain) == 0  # cut exactly behind snappy-java's header: a stream of no blocks


def test_a_snappy_block_that_claims_too_much_is_refused_unallocated() -> None:
    """A claim of 64 MiB in 5 bytes is a lie that is told before any memory is taken."""
    block = b"\x80\x80\x80\x20\x00"

    with pytest.raises(Malformed):
        decompress(Codec.SNAPPY, memoryview(block))


@pytest.mark.parametrize("size_bytes", [-1, 100])
def test_a_snappy_frame_that_leaves_its_payload_is_end_of_buffer(size_bytes: int) -> None:
    """Block sizes of snappy-java's framing are held against what is there."""
    framed = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, size_bytes) + b"abc"

    with pytest.raises(EndOfBuffer):
        decompress(Codec.SNAPPY, memoryview(framed))


def test_the_position_of_the_payload_is_in_the_error() -> None:
    """An error names the byte of the batch, so that a person can look."""
    with pytest.raises(Malformed) as caught:
        decompress(Codec.ZSTD, memoryview(b"not zstd at all"), position=61)
    assert caught.value.position == 61


def test_zstd_at_once_says_what_the_stream_says() -> None:
    """Two thousand payloads, most of them broken: what is read in one go is what piece by piece gives."""
    chance = Random(405)
    whole = [compress("zstd", bytes(chance.choices(b"abcdef", k=chance.randint(0, 5000)))) for _ in range(20)]
    payloads = [*whole, *(a + b for a, b in pairwise(whole))]
    read = 0
    for number in range(2000):
        payload = bytearray(chance.choice(payloads))
        change = chance.choice(["none", "flip", "cut", "grow"])
        if change == "flip":
            payload[chance.randrange(len(payload))] ^= 1 << chance.randrange(8)
        elif change == "cut":
            del payload[chance.randrange(len(payload)) :]
        elif change == "grow":
            payload += chance.randbytes(chance.randint(1, 20))
        at_once = decompressors.zstd_at_once(memoryview(payload), 1 << 20)
        if at_once is not None:
            read += 1
            assert at_once == decompressors.stream("zstd", memoryview(payload), 0, 1 << 20), (
                f"{number}: {change}"
            )

    assert read > 500
