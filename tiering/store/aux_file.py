"""The `.aux` object of a segment: all that a reader or a restore needs beside the segment's own bytes.

    file                                        section of the table
    at  0  magic          4 bytes, "SWAX"       at  0  kind        uint16, see SectionKind
    at  4  version        uint16, 1             at  2  reserved    uint16, 0
    at  6  section_count  uint16                at  4  crc         uint32, of the section's bytes
    at  8  base_offset    int64                 at  8  position    int64, in the file
    at 16  end_offset     int64                 at 16  size_bytes  int64
    at 24  sections       24 bytes each         24 bytes
           header_crc     uint32
           the sections' bytes, in the order of the table, without gaps, to the end of the file

All integers are big endian, all CRCs CRC-32C; the header's covers every byte before it. The sections:

    kind  what                                              absent when
    1     the segment's `.index`, as it is on disk          the broker had none
    2     its `.timeindex`                                  the broker had none
    3     its `.txnindex`                                   no transaction was aborted by a marker in it
    4     the producer snapshot at `end_offset`             the broker had none
    5     the epoch history up to `end_offset`:             never
          epoch int32, start_offset int64, rising
    6     every aborted transaction with a record in the    never
          segment, in `.txnindex` entries, by last_offset

Section 6 is what makes a reader need no other segment: an abort stands in the index of the segment that holds
its marker, perhaps a later one (KAFKA_FACTS, 21). The table comes first, so that one ranged read of
HEADER_BYTES_MAX finds any section, and a second one reads it alone.

Sections of unknown kind are passed over: a newer writer's addition. A change that an older reader would
misunderstand gets another version, which it refuses.

Refuses: to judge Kafka's own files (their readers in `tiering.log` do), bytes that no section owns.

Invariant: what `encode_aux` made, `read_aux` reads back equal; no flipped bit is read without an error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from tiering.log.checkpoints import EpochStart
from tiering.log.crc import crc32c
from tiering.log.errors import ChecksumMismatch, EndOfBuffer, Malformed, TooLarge, UnsupportedVersion
from tiering.log.transaction_index import AbortedTransaction, read_transaction_index
from tiering.log.wire import Buffer

AUX = "aux file"
MAGIC = b"SWAX"
VERSION = 1
SECTIONS_MAX = 64
SIZE_BYTES_MAX = 256 * 1024 * 1024

_FIXED = struct.Struct(">4sHHqq")
_SECTION = struct.Struct(">HHIqq")
_CRC = struct.Struct(">I")
_EPOCH = struct.Struct(">iq")
_ABORTED = struct.Struct(">hqqqq")
_ABORTED_VERSION = 0
HEADER_BYTES_MAX = _FIXED.size + SECTIONS_MAX * _SECTION.size + _CRC.size


class SectionKind(IntEnum):
    """What a section holds."""

    OFFSET_INDEX = 1
    TIME_INDEX = 2
    TRANSACTION_INDEX = 3
    PRODUCER_SNAPSHOT = 4
    LEADER_EPOCHS = 5
    ABORTED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxContents:
    """Everything in an `.aux`. None is "the broker had no such file"; an empty file is not that."""

    base_offset: int
    end_offset: int
    offset_index: bytes | None
    time_index: bytes | None
    transaction_index: bytes | None
    producer_snapshot: bytes | None
    leader_epochs: tuple[EpochStart, ...]
    aborted: tuple[AbortedTransaction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Where a section stands. `kind` may be one that this version does not know."""

    kind: int
    crc: int
    position: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.position + self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxHeader:
    """The table of an `.aux`."""

    base_offset: int
    end_offset: int
    size_bytes: int  # of the header itself
    sections: tuple[Section, ...]

    @property
    def file_size_bytes(self) -> int:
        return self.sections[-1].end if self.sections else self.size_bytes

    def section(self, kind: SectionKind) -> Section | None:
        return next((section for section in self.sections if section.kind == kind), None)


def encode_aux(contents: AuxContents) -> bytes:
    """The bytes of an `.aux`. Raises Malformed for contents that could not be read back."""
    sections = list(_sections(contents))
    header_bytes = _FIXED.size + len(sections) * _SECTION.size + _CRC.size
    header = bytearray(_FIXED.pack(MAGIC, VERSION, len(sections), contents.base_offset, contents.end_offset))
    position = header_bytes
    for kind, content in sections:
        header += _SECTION.pack(kind, 0, crc32c(content), position, len(content))
        position += len(content)
    header += _CRC.pack(crc32c(bytes(header)))
    encoded = b"".join([header, *(content for _, content in sections)])
    if read_aux(encoded) != contents:
        raise Malformed(position=0, what=AUX, why="would not read back as what was written")
    return encoded


def read_aux(buffer: Buffer) -> AuxContents:
    """A whole `.aux`, every byte of it checked."""
    if len(buffer) > SIZE_BYTES_MAX:
        raise TooLarge(position=0, what=AUX, claimed_bytes=len(buffer), limit_bytes=SIZE_BYTES_MAX)
    header = read_aux_header(buffer)
    if header.file_size_bytes > len(buffer):
        raise _end_of_buffer(
            "the last section", header.size_bytes, header.file_size_bytes - header.size_bytes, buffer
        )
    if header.file_size_bytes < len(buffer):
        why = f"{len(buffer) - header.file_size_bytes} bytes follow the last section"
        raise Malformed(position=header.file_size_bytes, what=AUX, why=why)
    found = {
        section.kind: read_section(section, buffer[section.position : section.end])
        for section in header.sections
    }
    return AuxContents(
        base_offset=header.base_offset,
        end_offset=header.end_offset,
        offset_index=found.get(SectionKind.OFFSET_INDEX),
        time_index=found.get(SectionKind.TIME_INDEX),
        transaction_index=found.get(SectionKind.TRANSACTION_INDEX),
        producer_snapshot=found.get(SectionKind.PRODUCER_SNAPSHOT),
        leader_epochs=read_leader_epochs(_required(found, SectionKind.LEADER_EPOCHS)),
        aborted=read_aborted(_required(found, SectionKind.ABORTED), header),
    )


def read_aux_header(buffer: Buffer) -> AuxHeader:
    """The table, from the first bytes of an `.aux`: HEADER_BYTES_MAX of them, or all there are."""
    if len(buffer) < _FIXED.size:
        raise _end_of_buffer("header", 0, _FIXED.size, buffer)
    magic, version, count, base_offset, end_offset = _FIXED.unpack_from(buffer, 0)
    if magic != MAGIC:
        raise Malformed(position=0, what=AUX, why=f"begins with {magic!r}, not {MAGIC!r}")
    if version != VERSION:
        raise UnsupportedVersion(position=4, what=AUX, version=version, supported=str(VERSION))
    if count > SECTIONS_MAX:
        raise Malformed(position=6, what=AUX, why=f"counts {count} sections; the limit is {SECTIONS_MAX}")
    crc_at = _FIXED.size + count * _SECTION.size
    if len(buffer) < crc_at + _CRC.size:
        raise _end_of_buffer("header", 0, crc_at + _CRC.size, buffer)
    (stored,) = _CRC.unpack_from(buffer, crc_at)
    computed = crc32c(bytes(buffer[:crc_at]))
    if stored != computed:
        raise ChecksumMismatch(position=crc_at, what=f"{AUX}, header", stored=stored, computed=computed)
    if not 0 <= base_offset <= end_offset:
        raise Malformed(position=8, what=AUX, why=f"is of offsets [{base_offset}, {end_offset})")
    return AuxHeader(
        base_offset=base_offset,
        end_offset=end_offset,
        size_bytes=crc_at + _CRC.size,
        sections=tuple(_table(buffer, count)),
    )


def read_section(section: Section, content: Buffer) -> bytes:
    """The bytes of a section, from a read of just its range, checked."""
    what = f"{AUX}, section {section.kind}"
    if len(content) != section.size_bytes:
        raise EndOfBuffer(
            position=section.position,
            what=what,
            wanted_bytes=section.size_bytes,
            left_bytes=len(content),
        )
    kept = bytes(content)
    computed = crc32c(kept)
    if computed != section.crc:
        raise ChecksumMismatch(position=section.position, what=what, stored=section.crc, computed=computed)
    return kept


def fetch_section(
    read_range: Callable[[int, int], bytes], size_bytes: int, kind: SectionKind
) -> bytes | None:
    """One section of an `.aux` of `size_bytes`, by two ranged reads; None if it has no such section.

    `read_range(start, end)` gives the bytes `[start, end)` of the object.
    """
    header = read_aux_header(read_range(0, min(HEADER_BYTES_MAX, size_bytes)))
    section = header.section(kind)
    if section is None:
        return None
    if section.end > size_bytes:
        raise Malformed(position=section.position, what=AUX, why=f"ends before its section {section.kind}")
    if section.size_bytes == 0:
        return read_section(section, b"")
    return read_section(section, read_range(section.position, section.end))


def read_leader_epochs(content: bytes) -> tuple[EpochStart, ...]:
    """Section 5. Epochs rise, and so do the offsets at which they start."""
    if len(content) % _EPOCH.size:
        raise Malformed(position=0, what=f"{AUX}, epochs", why=f"are {len(content)} bytes")
    epochs = tuple(EpochStart(*entry) for entry in _EPOCH.iter_unpack(content))
    for earlier, later in pairwise(epochs):
        if not (earlier.epoch < later.epoch and earlier.start_offset < later.start_offset):
            raise Malformed(position=0, what=f"{AUX}, epochs", why=f"have {later} after {earlier}")
    if epochs and (epochs[0].epoch < 0 or epochs[0].start_offset < 0):
        raise Malformed(position=0, what=f"{AUX}, epochs", why=f"begin with {epochs[0]}")
    return epochs


def read_aborted(content: bytes, header: AuxHeader) -> tuple[AbortedTransaction, ...]:
    """Section 6. Each transaction overlaps the segment."""
    index = read_transaction_index(content, base_offset=header.base_offset)
    for aborted in index.transactions:
        if aborted.first_offset >= header.end_offset:
            raise Malformed(position=0, what=f"{AUX}, aborted transactions", why=f"hold {aborted}")
    return index.transactions


def _table(buffer: Buffer, count: int) -> Iterator[Section]:
    position = _FIXED.size + count * _SECTION.size + _CRC.size
    seen: set[int] = set()
    for entry in range(count):
        at = _FIXED.size + entry * _SECTION.size
        kind, reserved, crc, start, size_bytes = _SECTION.unpack_from(buffer, at)
        if start != position or size_bytes < 0 or reserved != 0:
            why = f"is at byte {start} with {size_bytes} bytes, not at byte {position}"
            raise Malformed(position=at, what=f"{AUX}, section {kind}", why=why)
        if kind in seen:
            raise Malformed(position=at, what=f"{AUX}, section {kind}", why="is there twice")
        if position + size_bytes > SIZE_BYTES_MAX:
            raise TooLarge(
                position=at,
                what=f"{AUX}, section {kind}",
                claimed_bytes=size_bytes,
                limit_bytes=SIZE_BYTES_MAX,
            )
        seen.add(kind)
        position += size_bytes
        yield Section(kind=kind, crc=crc, position=start, size_bytes=size_bytes)


def _sections(contents: AuxContents) -> Iterator[tuple[SectionKind, bytes]]:
    files = {
        SectionKind.OFFSET_INDEX: contents.offset_index,
        SectionKind.TIME_INDEX: contents.time_index,
        SectionKind.TRANSACTION_INDEX: contents.transaction_index,
        SectionKind.PRODUCER_SNAPSHOT: contents.producer_snapshot,
    }
    yield from ((kind, content) for kind, content in files.items() if content is not None)
    yield SectionKind.LEADER_EPOCHS, b"".join(_EPOCH.pack(*epoch) for epoch in contents.leader_epochs)
    aborted = (_ABORTED.pack(_ABORTED_VERSION, *transaction) for transaction in contents.aborted)
    yield SectionKind.ABORTED, b"".join(aborted)


def _required(found: dict[int, bytes], kind: SectionKind) -> bytes:
    if kind not in found:
        raise Malformed(position=0, what=AUX, why=f"has no section {kind.value}")
    return found[kind]


def _end_of_buffer(what: str, position: int, wanted_bytes: int, buffer: Buffer) -> EndOfBuffer:
    left_bytes = max(0, len(buffer) - position)
    return EndOfBuffer(
        position=position, what=f"{AUX}, {what}", wanted_bytes=wanted_bytes, left_bytes=left_bytes
    )
