"""CRC-32C, the checksum of record batches and producer snapshots: the one place that says whose code it is.

awscrt comes with boto3[crt]. It is 1.5 to 2 times as fast as the crc32c package on batches of 16 KiB, where
it folds with wide carry-less multiplication; see docs/decisions/0002-crc-and-codecs.md.
"""

from __future__ import annotations

from typing import Protocol

from awscrt import checksums

from tiering.log.wire import Buffer


class Crc(Protocol):
    """The checksum of some bytes, or of those that `before` is of with these behind them."""

    def __call__(self, content: Buffer, before: int = 0, /) -> int: ...


crc32c: Crc = checksums.crc32c
