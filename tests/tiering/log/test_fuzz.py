"""No input, however broken, makes a reader raise any error but ours, loop, or take memory without bound."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from awscrt import checksums

from tests.encode.message import compact_string, encode_framed, tagged_fields
from tests.encode.record_batch import uvarint, varint
from tests.tiering.log.fuzz import Mend, Read, check_memory, check_reader, mutation
from tests.tiering.log.kafka_json import vectors
from tiering.log import wire
from tiering.log.checkpoints import read_leader_epoch_checkpoint, read_offset_checkpoint
from tiering.log.errors import LogFormatError
from tiering.log.identity_files import read_meta_properties, read_partition_metadata
from tiering.log.index import (
    offset_index_defects,
    read_offset_index,
    read_time_index,
    time_index_defects,
)
from tiering.log.kraft.cluster import ClientQuotaRecord, QuotaEntity
from tiering.log.kraft.control import CONTROL_RECORDS, read_control_record
from tiering.log.kraft.records import read_metadata_record
from tiering.log.kraft.topics import PartitionChangeRecord
from tiering.log.producer_snapshot import COVERED_AT, read_producer_snapshot
from tiering.log.remote_metadata import read_remote_metadata
from tiering.log.transaction_index import read_transaction_index, transaction_index_defects
from tiering.log.wire import ZERO_UUID

pytestmark = pytest.mark.slow

MUTATIONS = 1000  # for each reader
MEASURED_MUTATIONS = 100  # tracing allocations is slow
# An int32 of 4 bytes becomes an int object and a reference, 36 bytes, held in a list and then in a tuple;
# the smallest item of an array of messages, 3 bytes, becomes an object of 80 and more.
BYTES_PER_BYTE = 72  # 66 on Python 3.10, whose dictionaries are larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A reader, and good bytes to break for it."""

    name: str
    read: Read
    samples: Sequence[bytes] = field(repr=False)
    mend: Mend = bytes


def _file_samples(kind: str) -> list[bytes]:
    files = [file for file in vectors("files", "files") if file["kind"] == kind]
    found = [
        bytes.fromhex(file[key]) for file in files for key in ("closed_hex", "active_hex") if key in file
    ]
    return [sample for sample in found if sample]


def _records(name: str) -> list[bytes]:
    return [bytes.fromhex(vector["hex"]) for vector in vectors(name, "records")]


def _mend_snapshot(blob: bytes) -> bytes:
    if len(blob) < COVERED_AT:
        return blob
    return blob[:2] + struct.pack(">I", checksums.crc32c(blob[COVERED_AT:])) + blob[COVERED_AT:]


def _control_samples() -> list[bytes]:
    """A control record as one blob: its key, four bytes, then its value."""
    values = _records("control_records")
    return [struct.pack(">hh", 0, kind) + value for kind in CONTROL_RECORDS for value in values[::3]]


def _primitives(blob: bytes) -> list[object]:
    """Every primitive reader, one after the other, on the same bytes; raises the last error of all."""
    readers: list[wire.Reader[object]] = [
        getattr(wire, name) for name in dir(wire) if name.startswith("read_") and name != "read_span"
    ]
    readers += [
        wire.compact_array(wire.read_int32, 4),
        wire.nullable_compact_array(wire.read_compact_string, 1),
    ]
    values: list[object] = []
    errors: list[LogFormatError] = []
    for read in readers:
        try:
            value, end = read(blob, 0)
        except LogFormatError as error:
            errors.append(error)
        else:
            assert 0 < end <= len(blob)
            values.append(value)
    if errors:
        raise errors[-1]
    return values


PRIMITIVES = [
    compact_string("a name") + uvarint(300) + varint(-5),
    tagged_fields({0: b"zero", 5: b"five", 300: bytes(40)}),
    struct.pack(">h", 5) + b"hello" + struct.pack(">i", 3) + b"abc",
    uvarint(4) + struct.pack(">3i", 1, 2, 3),
]
CASES = [
    Case(name="primitives", read=_primitives, samples=PRIMITIVES),
    Case(
        name="offset index",
        read=lambda blob: read_offset_index(blob, base_offset=1000),
        samples=_file_samples("offset_index"),
    ),
    Case(
        name="offset index defects",
        read=lambda blob: offset_index_defects(blob, base_offset=9, end_offset=500, log_size_bytes=9000),
        samples=_file_samples("offset_index"),
    ),
    Case(
        name="time index",
        read=lambda blob: read_time_index(blob, base_offset=1000),
        samples=_file_samples("time_index"),
    ),
    Case(
        name="time index defects",
        read=lambda blob: time_index_defects(blob, base_offset=9, end_offset=500),
        samples=_file_samples("time_index"),
    ),
    Case(
        name="transaction index",
        read=lambda blob: read_transaction_index(blob, base_offset=0),
        samples=_file_samples("transaction_index"),
    ),
    Case(
        name="transaction index defects",
        read=lambda blob: transaction_index_defects(blob, base_offset=9, end_offset=500),
        samples=_file_samples("transaction_index"),
    ),
    Case(name="producer snapshot", read=read_producer_snapshot, samples=_file_samples("producer_snapshot")),
    Case(
        name="producer snapshot, CRC mended",
        read=read_producer_snapshot,
        samples=_file_samples("producer_snapshot"),
        mend=_mend_snapshot,
    ),
    Case(name="offset checkpoint", read=read_offset_checkpoint, samples=_file_samples("offset_checkpoint")),
    Case(
        name="leader epoch checkpoint",
        read=read_leader_epoch_checkpoint,
        samples=_file_samples("leader_epoch_checkpoint"),
    ),
    Case(
        name="partition.metadata", read=read_partition_metadata, samples=_file_samples("partition_metadata")
    ),
    Case(name="meta.properties", read=read_meta_properties, samples=_file_samples("meta_properties")),
    Case(name="metadata records", read=read_metadata_record, samples=_records("metadata_records")),
    Case(
        name="control records",
        read=lambda blob: read_control_record(blob[:4], blob[4:]),
        samples=_control_samples(),
    ),
    Case(name="remote metadata", read=read_remote_metadata, samples=_records("remote_metadata")),
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_bytes_are_read_or_refused_by_type(case: Case) -> None:
    """Of a thousand broken inputs some are refused; none raises another error, or loops."""
    outcome = check_reader(case.read, case.samples, count=MUTATIONS, mend=case.mend)

    assert outcome.read + outcome.refused == MUTATIONS
    assert outcome.refused > 0 or case.name.endswith("defects")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_broken_bytes_take_memory_in_proportion(case: Case) -> None:
    """However many items a count claims, a reader holds at most 64 bytes for each byte it was given."""
    check_memory(
        case.read, case.samples, count=MEASURED_MUTATIONS, bytes_per_byte=BYTES_PER_BYTE, mend=case.mend
    )


DENSEST: list[tuple[Read, bytes]] = [
    (
        read_metadata_record,
        encode_framed(PartitionChangeRecord(partition_id=0, topic_id=ZERO_UUID, isr=tuple(range(20_000))), 0),
    ),
    (
        read_metadata_record,
        encode_framed(
            ClientQuotaRecord(
                entity=(QuotaEntity(entity_type="", entity_name=None),) * 20_000,
                key="",
                value=0.0,
                remove=False,
            ),
            0,
        ),
    ),
    (lambda blob: read_control_record(bytes(3) + b"\x02", blob), bytes(6) + uvarint(16_384) + bytes(90_000)),
    (read_offset_checkpoint, b"0\n20000\n" + b"".join(b"t %d 1\n" % number for number in range(20_000))),
    (read_offset_checkpoint, b"0\n99999\n" + b"\n" * 99_999),
    (read_leader_epoch_checkpoint, b"0\n9999\n" + b"".join(b"%d %d\n" % (n, n) for n in range(9999))),
    (read_partition_metadata, b"\n" * 100_000),
    (read_meta_properties, b"".join(b"%x\n" % number for number in range(20_000))),
    (
        lambda blob: read_transaction_index(blob, base_offset=0),
        b"".join(struct.pack(">hqqqq", 0, 2**40, n, n, 2**40) for n in range(5000)),
    ),
]


@pytest.mark.parametrize(("read", "blob"), DENSEST)
def test_the_densest_inputs_take_memory_in_proportion(read: Read, blob: bytes) -> None:
    """The inputs with the most values in the fewest bytes hold to the same bytes a byte."""
    tracemalloc.start()
    with contextlib.suppress(LogFormatError):
        read(blob)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes <= BYTES_PER_BYTE * len(blob)


def test_a_mutation_is_a_function_of_its_seed_and_number() -> None:
    """The seed and number that a failure prints bring its bytes back, and another seed brings others."""
    samples = [bytes(range(100)), b"second sample"]

    first = [mutation(samples, 7, number) for number in range(50)]

    assert first == [mutation(samples, 7, number) for number in range(50)]
    assert first != [mutation(samples, 8, number) for number in range(50)]


def test_the_fuzzer_catches_a_reader_that_breaks_its_word() -> None:
    """A reader that lets an IndexError out fails the check, and the message says how to see it again."""
    with pytest.raises(AssertionError, match=r"IndexError.*mutation\(seed=7, number=\d+\)"):
        check_reader(lambda blob: blob[90], [bytes(100)], count=MUTATIONS, seed=7)


def test_the_fuzzer_catches_a_reader_that_takes_too_much() -> None:
    """A reader that makes what a length claims, before it looks, fails the check."""
    with pytest.raises(AssertionError, match="bytes held for"):
        check_memory(
            lambda blob: bytearray(int.from_bytes(blob[:3], "big")), [bytes(8)], count=200, bytes_per_byte=64
        )
