"""The producer snapshot: Kafka's own files, and nothing returned that the CRC does not vouch for."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from awscrt import checksums
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.log.kafka_json import vectors
from tiering.log.errors import ChecksumMismatch, EndOfBuffer, LogFormatError, Malformed, UnsupportedVersion
from tiering.log.producer_snapshot import ProducerState, read_producer_snapshot

INT32S = st.integers(-(2**31), 2**31 - 1)
INT64S = st.integers(-(2**63), 2**63 - 1)
STATES = st.builds(
    ProducerState, INT64S, st.integers(-(2**15), 2**15 - 1), INT32S, INT64S, INT32S, INT64S, INT32S, INT64S
)
STATE = ProducerState(4000, 1, 99, 5000, 4, 1_700_000_000_000, 3, -1)


def snapshot(
    states: list[ProducerState], *, version: int = 1, count: int | None = None, behind: bytes = b""
) -> bytes:
    covered = struct.pack(">i", len(states) if count is None else count)
    covered += b"".join(struct.pack(">qhiqiqiq", *state) for state in states) + behind
    return struct.pack(">hI", version, checksums.crc32c(covered)) + covered


@pytest.mark.parametrize(
    "file",
    [file for file in vectors("files", "files") if file["kind"] == "producer_snapshot"],
    ids=lambda file: len(file["entries"]),
)
def test_kafkas_producer_snapshot_is_read(file: dict[str, Any]) -> None:
    """The same producers as Kafka reads back, those without a batch or a transaction included."""
    states = read_producer_snapshot(bytes.fromhex(file["closed_hex"]))

    assert [list(state) for state in states] == file["entries"]


@given(st.lists(STATES, max_size=5))
def test_each_value_survives_writing_and_reading(states: list[ProducerState]) -> None:
    """Producers written as Kafka writes them are read as the same values, in the same order."""
    assert read_producer_snapshot(snapshot(states)) == tuple(states)


@given(st.lists(STATES, min_size=1, max_size=3), st.data())
def test_every_flipped_bit_is_detected(states: list[ProducerState], data: st.DataObject) -> None:
    """No single bit of the file can change without an error: version, CRC, count and entries alike."""
    raw = bytearray(snapshot(states))
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8

    with pytest.raises((UnsupportedVersion, ChecksumMismatch)):
        read_producer_snapshot(raw)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", EndOfBuffer),
        (snapshot([STATE])[:9], EndOfBuffer),
        (snapshot([STATE])[:-1], ChecksumMismatch),
        (snapshot([STATE], version=2), UnsupportedVersion),
        (snapshot([STATE], count=2), EndOfBuffer),
        (snapshot([STATE], count=2**31 - 1), EndOfBuffer),
        (snapshot([STATE], count=-1), Malformed),
        (snapshot([STATE], count=0), Malformed),
        (snapshot([STATE], behind=b"\x00"), Malformed),
    ],
)
def test_a_broken_snapshot_is_refused_by_type(raw: bytes, error: type[LogFormatError]) -> None:
    """Cut, miscounted or too new, it is an error: a producer lost here would repeat its records."""
    with pytest.raises(error):
        read_producer_snapshot(raw)
