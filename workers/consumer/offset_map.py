"""Finished offsets above a commit point, as a text that fits into the metadata of a commit.

    SWM1  kind  base64( leader_epoch+1 : varint, base : 8 bytes, body, crc32 of kind and these : 4 bytes )

    kind B    body is a bitset: bit i of byte j, lowest first, stands for offset base + 8j + i
    kind R    body is run lengths as varints: unfinished, finished, unfinished, ... from base

The shorter one is taken. What does not fit is left out from the top: the map then tells of less, and a
restart repeats more. Decoding never raises: what is not a whole map for just this offset is no map, and says
why.

The leader epoch is the highest among the finished records. A record that comes with a higher one was written
after the log was cut back, at an offset that is used a second time, and is never taken for finished.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAGIC = "SWM1"
KIND_BITSET, KIND_RUNS = "B", "R"
METADATA_BYTES_MAX = 4095  # the broker's offset.metadata.max.bytes is 4096 unless told otherwise
_FRAME_CHARACTERS = len(MAGIC) + 1
_EPOCH_BYTES_MAX, _BASE_BYTES, _CRC_BYTES = 5, 8, 4
BODY_BYTES_MAX = (
    (METADATA_BYTES_MAX - _FRAME_CHARACTERS) // 4 * 3 - _EPOCH_BYTES_MAX - _BASE_BYTES - _CRC_BYTES
)
_VARINT_BYTES_MAX = 10
OFFSET_MAX = (1 << 63) - 1
EPOCH_MAX = (1 << 31) - 1
FINISHED_MAX = 1 << 20  # what a map may come to when it is decoded: runs can name far more than they are long


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMap:
    """`finished` lie at or above `base`, the offset that was committed with them."""

    base: int
    finished: frozenset[int]
    leader_epoch: int = -1

    def covers(self, offset: int, leader_epoch: int) -> bool:
        """Whether the record at `offset` is one that was finished."""
        return offset in self.finished and 0 <= leader_epoch <= self.leader_epoch


@dataclass(frozen=True, slots=True)
class NoMap:
    """There is none: nothing was written, somebody else's text, or damage."""

    reason: str


def encode(base: int, finished: Sequence[int], leader_epoch: int) -> str:
    """The shortest text for `finished` (rising, at or above `base`); empty if there is nothing to say."""
    if not finished:
        return ""
    bits, runs = _bitset(base, finished), _runs(base, finished)
    kind, body = min((KIND_BITSET, bits), (KIND_RUNS, runs), key=lambda each: len(each[1]))
    if len(body) > BODY_BYTES_MAX or len(finished) > FINISHED_MAX:
        kind, body = _what_fits(base, finished)
    if not body:
        return ""
    head = _varint(leader_epoch + 1) + base.to_bytes(_BASE_BYTES, "big")
    framed = head + body
    packed = base64.b64encode(framed + _crc(kind, framed)).decode("ascii")
    return f"{MAGIC}{kind}{packed}"


def decode(text: str | None, committed: int) -> OffsetMap | NoMap:
    """The map that was committed with offset `committed`; never raises, whatever the text."""
    if not text:
        return NoMap("no metadata")
    if not text.startswith(MAGIC):
        return NoMap("metadata of somebody else")
    if len(text) > METADATA_BYTES_MAX or not text.isascii():
        return NoMap("longer than any map, or not a map's letters")
    try:
        framed = base64.b64decode(text[_FRAME_CHARACTERS:], validate=True)
    except (binascii.Error, ValueError):
        return NoMap("not base64")
    content, crc = framed[:-_CRC_BYTES], framed[-_CRC_BYTES:]
    kind = text[len(MAGIC) : _FRAME_CHARACTERS]
    if len(crc) < _CRC_BYTES or _crc(kind, content) != crc:
        return NoMap("damaged")
    return _content(kind, content, committed)


def _content(kind: str, content: bytes, committed: int) -> OffsetMap | NoMap:
    epoch = _read_varint(content, 0)
    if epoch is None or len(content) < epoch[1] + _BASE_BYTES or epoch[0] > EPOCH_MAX + 1:
        return NoMap("cut short")
    base = int.from_bytes(content[epoch[1] : epoch[1] + _BASE_BYTES], "big")
    if base != committed:
        return NoMap("of another offset")
    body = content[epoch[1] + _BASE_BYTES :]
    readers = {KIND_BITSET: _read_bitset, KIND_RUNS: _read_runs}
    finished = readers[kind](base, body) if kind in readers else None
    if finished is None:
        return NoMap("of an unknown kind, or out of all bounds")
    return OffsetMap(base=base, finished=frozenset(finished), leader_epoch=epoch[0] - 1)


def _crc(kind: str, content: bytes) -> bytes:
    return zlib.crc32(kind.encode() + content).to_bytes(_CRC_BYTES, "big")


def _bitset(base: int, finished: Sequence[int]) -> bytes:
    span_bytes = (finished[-1] - base) // 8 + 1
    if span_bytes > 4 * BODY_BYTES_MAX:  # hopeless, and could be gigabytes
        return bytes(4 * BODY_BYTES_MAX)
    bits = bytearray(span_bytes)
    for offset in finished:
        place = offset - base
        bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def _runs(base: int, finished: Sequence[int]) -> bytes:
    lengths: list[int] = []
    at = base
    for start, end in _ranges(finished):
        lengths += (start - at, end - start)
        at = end
    return b"".join(_varint(length) for length in lengths)


def _what_fits(base: int, finished: Sequence[int]) -> tuple[str, bytes]:
    """The body of whichever kind tells of more records within the limit."""
    in_bits = [offset for offset in finished if offset - base < 8 * BODY_BYTES_MAX]
    body = bytearray()
    in_runs, at = 0, base
    for start, end in _ranges(finished):
        pair = _varint(start - at) + _varint(end - start)
        if len(body) + len(pair) > BODY_BYTES_MAX or in_runs + end - start > FINISHED_MAX:
            break
        body += pair
        in_runs, at = in_runs + end - start, end
    if len(in_bits) > in_runs:
        return KIND_BITSET, _bitset(base, in_bits)
    return KIND_RUNS, bytes(body)


def _ranges(finished: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = end = finished[0]
    for offset in finished:
        if offset > end:
            yield start, end
            start = offset
        end = offset + 1
    yield start, end


def _read_bitset(base: int, body: bytes) -> list[int] | None:
    found = []
    for number, byte in enumerate(body):
        while byte:
            lowest = byte & -byte
            found.append(base + 8 * number + lowest.bit_length() - 1)
            byte ^= lowest
    return found


def _read_runs(base: int, body: bytes) -> list[int] | None:
    found: list[int] = []
    at, place, is_finished = base, 0, False
    while place < len(body):
        read = _read_varint(body, place)
        if read is None:
            return None
        length, place = read
        if at + length > OFFSET_MAX or (is_finished and len(found) + length > FINISHED_MAX):
            return None
        if is_finished:
            found.extend(range(at, at + length))
        at += length
        is_finished = not is_finished
    return found


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(body: bytes, place: int) -> tuple[int, int] | None:
    number = 0
    for shift, byte in enumerate(body[place : place + _VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number, place + shift + 1
    return None
