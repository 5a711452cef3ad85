"""The digest of a log: one number that two tables share if they hold the same records, in whatever order.

    digest(log, o) = sum, mod 2^256, of SHA-256(key ‖ value), as stored, over the log's keys (its own and its
                     segments') whose last record at or below offset o of the metadata topic is neither a
                     tombstone nor a DELETE_FINISHED

Every state counts, followed or not, overlap or not: the digest says what was read, not what it means. A
value that cannot be read counts unless its `state` is DELETE_FINISHED. Key and value run together without a
mark, as no key holds the `{` that a value begins with.

Compaction hides older states, so that two tables agree only from the log end that each saw when its replay
began; and a log's digest changes with each of its records, so that only equal offsets compare. `compare`
holds both against each other and says Inconclusive where they do not meet.

Owns this sum. Invariant: the digest after any sequence of records is that of the last record of each key.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from rules.identity import LogId
from tiering.outcome import Failed, Inconclusive, Outcome, Problem, Verified

MODULUS = 1 << 256
_LIMBS = 8  # a digest as 32-bit numbers, so that numpy can sum four thousand million of them


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDigest:
    """What one table says of a log after the record at `offset`, the log's last that it has applied.

    `complete_from` is the end of the metadata partition when the table's replay began.
    """

    log: LogId
    offset: int
    digest: int
    complete_from: int

    @property
    def comparable(self) -> bool:
        return self.offset >= self.complete_from

    def hex(self) -> str:
        return f"{self.digest:064x}"


def record_digest(key: bytes, value: bytes) -> bytes:
    """What one stored record adds."""
    return sha256(key + value).digest()


def replaced(total: int, before: bytes | None, after: bytes | None) -> int:
    """`total` with one key's contribution replaced by another; None: it has none."""
    change = int.from_bytes(after or b"", "big") - int.from_bytes(before or b"", "big")
    return (total + change) % MODULUS


def summed(digests: npt.NDArray[np.uint8], groups: npt.NDArray[np.int64]) -> list[int]:
    """The sums of consecutive runs of (n, 32) digests; `groups` are the runs' first positions, rising."""
    limbs = np.ascontiguousarray(digests).view(">u4").astype(np.uint64)
    sums = np.add.reduceat(limbs, groups, axis=0)
    for limb in range(_LIMBS - 1, 0, -1):
        sums[:, limb - 1] += sums[:, limb] >> np.uint64(32)
    packed = (sums & np.uint64(0xFFFFFFFF)).astype(">u4").tobytes()
    return [int.from_bytes(packed[at : at + 32], "big") for at in range(0, len(packed), 32)]


def compare(ours: LogDigest, theirs: LogDigest) -> Outcome:
    """Whether two tables hold the same of one log."""
    if ours.log != theirs.log:
        return Inconclusive("they are of different logs")
    if ours.offset != theirs.offset:
        return Inconclusive(f"they are at offsets {ours.offset} and {theirs.offset}")
    if not (ours.comparable and theirs.comparable):
        return Inconclusive(f"offset {ours.offset} is before the end that one of them began its replay at")
    if ours.digest == theirs.digest:
        return Verified()
    detail = f"at offset {ours.offset} one table has {ours.hex()}, the other {theirs.hex()}"
    return Failed((Problem(kind="digest_mismatch", detail=detail, offset=ours.offset),))
