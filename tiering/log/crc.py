"""CRC-32C, the checksum of record batches and producer snapshots: the one place that says whose code it is.

awscrt comes with boto3[crt]. It is 1.5 to 2 times as fast as the crc32c package on batches of 16 KiB, where
it folds with wide carry-less multiplication; see docs/decisions/0002-crc-and-codecs.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from awscrt import checksums

from tiering.log.wire import Buffer

Crc: TypeAlias = Callable[[Buffer], int]

crc32c: Crc = checksums.crc32c
