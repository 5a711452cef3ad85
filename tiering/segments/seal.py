"""The seal at the end of every record: what a table keeps of it, packed, and a CRC over all before it.

    {"base_offset":…,…,"version":1,"~seal":"<base64 of the row>.<CRC-32C, 8 hexadecimal digits>"}

    row of a segment (ROW, 57 bytes, little-endian)
    base, end, covered_end, max_timestamp, size    5 x int64
    leader_epoch, first_epoch, generation          3 x int32
    state                                          uint8, its place in SegmentState
    epochs                                         uint8, 1 if it has one leader epoch, 2 if more
    format                                         uint8, 1
    unused                                         2 bytes

A log's record has no row. The CRC begins with the cluster's id, goes on with the record's key, then the value
up to the CRC itself: a record under another's key, or of another cluster, does not fit.

A table that replays a million segments reads the rows alone, as columns, and leaves the JSON for when
somebody asks. It may, since nothing but `codec` makes a seal, and none that does not fit its record.

Owns this form. Refuses to say what is wrong with a seal that does not fit. Invariant: the same in every
version that a reader of version 1 may read.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tiering.log.crc import crc32c
from tiering.segments.records import SegmentRecord, SegmentState

NAME = "~seal"
FORMAT = 1
ROW = np.dtype(
    [
        ("base", "<i8"),
        ("end", "<i8"),
        ("covered_end", "<i8"),
        ("max_timestamp", "<i8"),
        ("size", "<i8"),
        ("leader_epoch", "<i4"),
        ("first_epoch", "<i4"),
        ("generation", "<i4"),
        ("state", "u1"),
        ("epochs", "u1"),
        ("format", "u1"),
        ("unused", "u1", (2,)),
    ]
)
STATES = tuple(SegmentState)

Column = npt.NDArray[Any]

_OPENING = f',"{NAME}":"'.encode("ascii")
_SEAL = re.compile(re.escape(_OPENING) + rb'([0-9A-Za-z+/]*)\.([0-9a-f]{8})"\}')
_ROW_LETTERS = ROW.itemsize * 4 // 3
_CRC_AND_END = 8 + len('"}')
_FORM = np.frombuffer(_OPENING + b"?" * _ROW_LETTERS + b"." + b"?" * 8 + b'"}', np.uint8)
_FIXED = np.flatnonzero(ord("?") != _FORM)
_LENGTH = len(_FORM)
_ROW_BYTES = np.dtype((np.void, ROW.itemsize))
# CRC-32C a byte at a time: what each byte does to a state of zeros.
_CRC_STEPS = np.array([~crc32c(bytes([byte]), 0xFFFFFFFF) & 0xFFFFFFFF for byte in range(256)], np.uint32)


def row_of(record: SegmentRecord) -> bytes:
    """What a table keeps of a segment's record."""
    row = np.zeros((), ROW)
    row["base"], row["end"], row["covered_end"] = record.base_offset, record.end_offset, record.covered_end
    row["max_timestamp"], row["size"] = record.max_timestamp_ms, record.size_bytes
    row["leader_epoch"], row["first_epoch"] = record.leader_epoch, record.leader_epochs[0].epoch
    row["generation"], row["state"] = record.generation, STATES.index(record.state)
    row["epochs"], row["format"] = min(len(record.leader_epochs), 2), FORMAT
    return row.tobytes()


def sealed(body: bytes, key: bytes, cluster_id: str, row: bytes = b"") -> bytes:
    """A record's JSON with its seal put in as the last member."""
    assert body.endswith(b"}")
    before = body[:-1] + _OPENING + base64.b64encode(row) + b"."
    return before + b'%08x"}' % _crc(before, key, cluster_id)


def broken(value: bytes, key: bytes, cluster_id: str, row: bytes = b"") -> bool:
    """Whether a value does not end with the seal that fits it."""
    found = _SEAL.fullmatch(value, value.rfind(_OPENING))
    if found is None or found[1] != base64.b64encode(row):
        return True
    return int(found[2], 16) != _crc(value[: found.start(2)], key, cluster_id)


def _crc(before: bytes, key: bytes, cluster_id: str) -> int:
    return crc32c(_cluster(cluster_id) + key + before)


def _cluster(cluster_id: str) -> bytes:
    return cluster_id.encode("utf-8", "surrogatepass")


def open_many(keys: Sequence[bytes], values: Sequence[bytes], cluster_id: str) -> tuple[Column, Column]:
    """The rows of many segments' records, and which are under a seal that fits; the others' are zero."""
    tails = b"".join([value[-_LENGTH:] for value in values])
    if len(tails) != len(values) * _LENGTH:  # one is too short to have a seal
        tails = b"".join([value[-_LENGTH:].rjust(_LENGTH, b"\0") for value in values])
    letters = np.frombuffer(tails, np.uint8).reshape(-1, _LENGTH)
    fits = (letters[:, _FIXED] == _FORM[_FIXED]).all(axis=1)
    stated = _each_crc(letters[:, -_CRC_AND_END:-2].tobytes())
    # Of the whole value, so that none is copied: it must be what the stated one comes to with its own digits.
    cluster = crc32c(_cluster(cluster_id))
    crcs = [crc32c(value, crc32c(key, cluster)) for key, value in zip(keys, values, strict=True)]
    fits &= (stated >= 0) & (_crcs_on(stated, letters[:, -_CRC_AND_END:]) == np.array(crcs, np.uint32))
    packed = letters[fits, len(_OPENING) : len(_OPENING) + _ROW_LETTERS].tobytes()
    unpacked = binascii.a2b_base64(packed)
    if len(unpacked) != np.count_nonzero(fits) * ROW.itemsize:  # a letter that is none: whose is not said
        return np.zeros(len(values), ROW), np.zeros(len(values), np.bool_)
    rows = np.frombuffer(unpacked, ROW)
    if not fits.all():
        whole = np.zeros(len(values), _ROW_BYTES)  # moved as bytes: field by field takes ten times as long
        whole[fits] = rows.view(_ROW_BYTES)
        rows = whole.view(ROW)
    return rows, fits & (rows["format"] == FORMAT)


def _crcs_on(crcs: Column, letters: Column) -> Column:
    """What each CRC comes to when the bytes in its row of `letters` follow."""
    state = ~crcs.astype(np.uint32)
    for column in letters.T:
        state = _CRC_STEPS[(state ^ column) & 0xFF] ^ (state >> 8)
    return ~state


def _each_crc(digits: bytes) -> Column:
    """Eight hexadecimal digits each, as numbers; -1 if any of them is something else."""
    try:
        return np.frombuffer(bytes.fromhex(digits.decode("ascii")), ">u4").astype(np.int64)
    except ValueError:
        return np.array([_one_crc(digits[at : at + 8]) for at in range(0, len(digits), 8)], np.int64)


def _one_crc(digits: bytes) -> int:
    return int(digits, 16) if re.fullmatch(rb"[0-9a-f]{8}", digits) else -1
