"""Breaks good bytes in the ways that disks, networks and attackers do, the same way for the same seed.

`mutation(samples, seed, number)` is a pure function: a failure names its seed and number, and those two bring
the broken bytes back. `check_reader` runs a reader over many mutations: whatever they are, it may return or
raise one of our typed errors, nothing else. `check_memory` measures what it allocates on the way.

SEAWALL_FUZZ_SEED chooses another seed than the suite's.
"""

from __future__ import annotations

import contextlib
import os
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tiering.log.errors import LogFormatError

SEED = int(os.environ.get("SEAWALL_FUZZ_SEED", "405"))
ITEMS_MAX = 1_000_000  # what a reader's iterator may yield from a sample of a few KiB
_SPAN_BYTES_MAX = 64

Read = Callable[[bytes], object]
Mend = Callable[[bytes], bytes]
_Change = Callable[[bytearray, Random, Sequence[bytes]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """Broken bytes, and how they were made."""

    blob: bytes
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How many mutations were read to the end, and how many were refused."""

    read: int
    refused: int


def _span(blob: bytearray, random: Random) -> tuple[int, int]:
    start = random.randrange(len(blob) + 1)
    return start, min(len(blob), start + random.randint(1, _SPAN_BYTES_MAX))


def _flip_bit(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    if not blob:
        return "nothing to flip"
    at, bit = random.randrange(len(blob)), random.randrange(8)
    blob[at] ^= 1 << bit
    return f"flip bit {bit} of byte {at}"


def _set_byte(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    if not blob:
        return "nothing to set"
    at, value = random.randrange(len(blob)), random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    blob[at] = value
    return f"set byte {at} to {value}"


def _truncate(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    at = random.randrange(len(blob) + 1)
    del blob[at:]
    return f"truncate to {at}"


def _extend(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    count = random.randint(1, _SPAN_BYTES_MAX)
    blob += bytes(count) if random.random() < 0.5 else random.randbytes(count)
    return f"extend by {count}"


def _duplicate(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    start, end = _span(blob, random)
    blob[start:start] = blob[start:end]
    return f"duplicate [{start}, {end})"


def _delete(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    start, end = _span(blob, random)
    del blob[start:end]
    return f"delete [{start}, {end})"


def _zero(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    start, end = _span(blob, random)
    blob[start:end] = bytes(end - start)
    return f"zero [{start}, {end})"


def _extreme_field(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    width = random.choice((1, 2, 4, 8))
    if len(blob) < width:
        return "no room for a field"
    bits = 8 * width
    value = random.choice(
        (0, 1, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2 ** random.randrange(bits), len(blob))
    ) % (2**bits)
    at = random.randrange(len(blob) - width + 1)
    blob[at : at + width] = value.to_bytes(width, "big")
    return f"set {width} bytes at {at} to {value}"


def _extreme_varint(blob: bytearray, random: Random, _samples: Sequence[bytes]) -> str:
    if not blob:
        return "no room for a varint"
    at = random.randrange(len(blob))
    count = random.choice((1, 2, 4, 5, 9, 10, 11))
    varint = b"\xff" * (count - 1) + random.choice((b"\x00", b"\x01", b"\x07", b"\x0f", b"\x7f", b"\xff"))
    blob[at : at + random.choice((1, count))] = varint
    return f"write the varint {varint.hex()} at {at}"


def _splice(blob: bytearray, random: Random, samples: Sequence[bytes]) -> str:
    other = random.choice(samples)
    at, start = random.randrange(len(blob) + 1), random.randrange(len(other) + 1)
    blob[at:] = other[start:]
    return f"from {at} on go on with another sample from {start}"


_CHANGES: tuple[_Change, ...] = (
    _flip_bit,
    _set_byte,
    _truncate,
    _extend,
    _duplicate,
    _delete,
    _zero,
    _extreme_field,
    _extreme_varint,
    _splice,
)


def mutation(samples: Sequence[bytes], seed: int, number: int) -> Mutation:
    """Mutation `number` of the endless series that `seed` names."""
    random = Random(f"{seed}:{number}")
    picked = random.randrange(len(samples))
    blob = bytearray(samples[picked])
    steps = [random.choice(_CHANGES)(blob, random, samples) for _ in range(random.choice((1, 1, 2, 3)))]
    return Mutation(blob=bytes(blob), how=f"sample {picked}: " + ", then ".join(steps))


def check_reader(
    read: Read,
    samples: Sequence[bytes],
    *,
    count: int,
    seed: int = SEED,
    typed: type[Exception] = LogFormatError,
    mend: Mend = bytes,
) -> Outcome:
    """Run `read` over `count` mutations; anything raised but `typed` fails, naming what brings it back.

    What `read` returns is iterated to its end if it is an iterator, so that lazy readers are read too. `mend`
    puts a checksum right after the damage, so that the damage is not all caught by the checksum.
    """
    refused = 0
    for number in range(count):
        broken = mutation(samples, seed, number)
        blob = mend(broken.blob)
        try:
            _exhaust(read(blob))
        except typed:
            refused += 1
        except Exception as error:
            raise AssertionError(
                f"{error!r} on mutation({seed=}, {number=}), {broken.how}: {blob[:512].hex()}"
            ) from error
    return Outcome(read=count - refused, refused=refused)


def check_memory(
    read: Read,
    samples: Sequence[bytes],
    *,
    count: int,
    bytes_per_byte: int,
    spare_bytes: int = 64 * 1024,
    seed: int = SEED,
    typed: type[Exception] = LogFormatError,
    mend: Mend = bytes,
) -> None:
    """Fail where `read` ever holds more than `bytes_per_byte` per byte it was given, plus `spare_bytes`."""
    tracemalloc.start()
    try:
        for number in range(count):
            broken = mutation(samples, seed, number)
            blob = mend(broken.blob)
            tracemalloc.reset_peak()
            before_bytes, _ = tracemalloc.get_traced_memory()
            with contextlib.suppress(typed):
                _exhaust(read(blob))
            peak_bytes = tracemalloc.get_traced_memory()[1] - before_bytes
            allowed_bytes = bytes_per_byte * len(blob) + spare_bytes
            assert peak_bytes <= allowed_bytes, (
                f"{peak_bytes} bytes held for {len(blob)} on mutation({seed=}, {number=}), {broken.how}"
            )
    finally:
        tracemalloc.stop()


def _exhaust(result: object) -> None:
    if not isinstance(result, Iterator):
        return
    for items, _ in enumerate(result):
        assert items < ITEMS_MAX, f"a reader yielded {ITEMS_MAX} items and goes on"
