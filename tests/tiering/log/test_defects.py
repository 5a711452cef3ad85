"""A defect is explained by reading its surroundings again; what is read then may not be what it was."""

from __future__ import annotations

import pytest

from tests.encode.record_batch import PlainRecord, encode_batch
from tiering.log.batch import HEADER_BYTES
from tiering.log.defects import DefectKind, explain_break, explain_crc

BATCH = encode_batch([PlainRecord(offset=0, timestamp_ms=0, value=b"v" * 20)])
POSITION, SIZE_BYTES = 1000, 1000 + 3 * len(BATCH)


@pytest.mark.parametrize("explain", [explain_crc, explain_break])
@pytest.mark.parametrize("left_bytes", [0, 1, 16, 17, HEADER_BYTES - 1])
def test_a_file_that_was_cut_meanwhile_is_torn(explain: object, left_bytes: int) -> None:
    """A broker truncates a segment between the look that found a CRC wrong and the one that explains it."""
    assert callable(explain)
    found = explain(lambda _, size: BATCH[: min(size, left_bytes)], POSITION, SIZE_BYTES)

    assert (found.kind, found.position) == (DefectKind.TORN_TAIL, POSITION)


def test_a_file_that_was_written_over_meanwhile_is_explained_as_it_is_now() -> None:
    """Zeros where the header was: cut, and lengthened again."""
    found = explain_crc(lambda _, size: bytes(size), POSITION, SIZE_BYTES)

    assert found.kind is DefectKind.TORN_TAIL
