"""The codecs of a record batch, and the bound on what they may expand to.

A batch says in the low three bits of its attributes how its records are compressed. What undoes it stands
in `decompressors`, which is imported when the first compressed batch is met: pyarrow takes longer to load
than a verification of uncompressed segments takes to run.
"""

from __future__ import annotations

from enum import IntEnum


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# A batch is bounded by message.max.bytes compressed (1 MiB by default); nothing bounds it decompressed.
# 256 MiB is a ratio of 256 on a default broker, and far above any batch that a consumer could use.
DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024


def decompress(
    codec: Codec, compressed: memoryview, *, position: int = 0, limit_bytes: int = DECOMPRESSED_BYTES_MAX
) -> bytes | memoryview:
    """The plain bytes. `position` is where `compressed` stands, for errors to name."""
    if codec is Codec.NONE:
        return compressed
    from tiering.log import decompressors

    return decompressors.decompress(codec, compressed, position, limit_bytes)
