"""`seawall log dump`: what a file of Kafka's says, as lines for people or JSON lines for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, is_dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from seawall.cli.log.errors import FileBroken, NoSuchPath, NotKafkas, PathUnreadable
from seawall.cli.log.lines import Row, WindowLines, record_line, time_text
from tiering.log.batch import BatchHeader, Record, TransactionMarker, read_marker
from tiering.log.checkpoints import (
    OFFSET_CHECKPOINTS,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tiering.log.codec import Codec
from tiering.log.directory import KRAFT_METADATA_TOPIC, FileKind, LogFile, classify, partition_name
from tiering.log.errors import LogFormatError
from tiering.log.identity_files import META_PROPERTIES, read_meta_properties, read_partition_metadata
from tiering.log.index import read_offset_index, read_time_index
from tiering.log.kraft.control import read_control_record
from tiering.log.kraft.records import read_metadata_record
from tiering.log.producer_snapshot import read_producer_snapshot
from tiering.log.record_columns import are_worth_it
from tiering.log.remote_metadata import read_remote_metadata
from tiering.log.segment import BatchAt, batches_of, iter_windows
from tiering.log.transaction_index import read_transaction_index

REMOTE_METADATA_TOPIC = "__remote_log_metadata"
_CODEC_NAMES = {codec.value: codec.name.lower() for codec in Codec}
WINDOW_BYTES = 8 * 1024 * 1024  # the more batches side by side, the less each costs


class Decode(str, Enum):
    """The choices of --decode."""

    AUTO = "auto"
    NONE = "none"
    KRAFT = "kraft"
    REMOTE = "remote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to print of a segment."""

    records: bool
    values: bool
    decode: Decode
    start: int | None
    in_lines: bool  # for people

    @property
    def lines_are_enough(self) -> bool:
        """Whether nothing of a record is asked for but what its line says."""
        return self.records and self.in_lines and not self.values and self.decode is Decode.NONE


def dump(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A segment, index, snapshot or checkpoint.")],
    records: Annotated[bool, typer.Option("--records", help="Print the records of each batch.")] = False,
    values: Annotated[bool, typer.Option("--values", help="Print keys, values and headers too.")] = False,
    decode: Annotated[
        Decode,
        typer.Option(help="How to read values. auto: by the topic that the directory's name gives."),
    ] = Decode.AUTO,
    start: Annotated[
        int | None, typer.Option("--from", metavar="OFFSET", help="Begin at the batch of this offset.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after N batches or entries.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Print what a file says: batches and records, index entries, checkpoints, Kafka's own metadata.

    A batch whose CRC is wrong is marked and its records are not read. Reading ends at the first byte that
    cannot be followed, with the error and exit code 20; what stands before it has been printed.
    """
    try:
        if not path.exists():
            raise NoSuchPath(path=path)
        asked = Asked(
            records=records or values, values=values, decode=decode, start=start, in_lines=not as_json
        )
        rows = _rows(path, asked)
        for row in islice(rows, limit):
            sys.stdout.write((json.dumps(row) if as_json else _line(row)) + "\n")
    except LogFormatError as exc:
        raise FileBroken(path=path, why=str(exc)) from exc
    except OSError as exc:
        raise PathUnreadable(path=path, why=exc.strerror or str(exc)) from exc


def _rows(path: Path, asked: Asked) -> Iterator[Row]:
    file = classify(path)
    if file.kind in (FileKind.SEGMENT, FileKind.KRAFT_SNAPSHOT):
        return _batch_rows(path, replace(asked, decode=_decoding(file, asked.decode)))
    if file.kind is FileKind.UNKNOWN and path.name not in (META_PROPERTIES, *OFFSET_CHECKPOINTS):
        raise NotKafkas(path=path)
    return _entry_rows(file, path.read_bytes())


def _decoding(file: LogFile, asked: Decode) -> Decode:
    if asked is not Decode.AUTO:
        return asked
    if file.kind is FileKind.KRAFT_SNAPSHOT:
        return Decode.KRAFT
    name = partition_name(file.path.resolve().parent.name)
    by_topic = {KRAFT_METADATA_TOPIC: Decode.KRAFT, REMOTE_METADATA_TOPIC: Decode.REMOTE}
    return by_topic.get(name.topic if name else "", Decode.NONE)


def _batch_rows(path: Path, asked: Asked) -> Iterator[Row]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for window in iter_windows(descriptor, window_bytes=WINDOW_BYTES):
            lines = WindowLines(window) if asked.lines_are_enough and are_worth_it(len(window)) else None
            for index, batch in enumerate(batches_of(window)):
                if asked.start is not None and batch.header.last_offset < asked.start:
                    continue
                row = _batch_row(batch)
                if asked.records and row["crc_ok"]:
                    row |= _records(batch, asked, None if lines is None else lines.of(index))
                yield row
    finally:
        os.close(descriptor)


def _records(batch: BatchAt, asked: Asked, lines: list[str] | None) -> Row:
    """The records of a batch: their lines, where those are there, or rows."""
    if lines is not None and not batch.header.is_control:
        return {"lines": lines}
    return {"records": [_record_row(batch.header, record, asked) for record in batch.records()]}


def _batch_row(batch: BatchAt) -> Row:
    header = batch.header
    number = header.codec_number
    return {
        "base_offset": header.base_offset,
        "next_offset": header.next_offset,
        "record_count": header.record_count,
        "position": batch.position,
        "size_bytes": header.size_bytes,
        "leader_epoch": header.leader_epoch,
        "codec": _CODEC_NAMES.get(number) or f"unknown ({number})",
        "base_timestamp_ms": header.base_timestamp_ms,
        "max_timestamp_ms": header.max_timestamp_ms,
        "timestamp_type": "log_append" if header.is_log_append_time else "create",
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "crc": header.crc,
        "crc_ok": batch.crc_matches(),
    }


def _record_row(header: BatchHeader, record: Record, asked: Asked) -> Row:
    row: Row = {"offset": record.offset, "timestamp_ms": record.timestamp_ms}
    if header.is_control:
        row["control"] = _control(record)
        return row
    row["key_bytes"] = None if record.key is None else len(record.key)
    row["value_bytes"] = None if record.value is None else len(record.value)
    if asked.decode is not Decode.NONE and record.value is not None:
        read = read_metadata_record if asked.decode is Decode.KRAFT else read_remote_metadata
        row["message"] = _typed(read(record.value))
    if asked.values:
        row |= {**_content("key", record.key), **_content("value", record.value)}
        row["headers"] = [{"name": name, **_content("value", value)} for name, value in record.headers]
    return row


def _control(record: Record) -> Row:
    marker = read_marker(record)
    if isinstance(marker, TransactionMarker):
        ended = "commit" if marker.is_commit else "abort"
        return {"type": ended, "coordinator_epoch": marker.coordinator_epoch}
    return _typed(read_control_record(record.key or b"", record.value or b""))


def _entry_rows(file: LogFile, content: bytes) -> Iterator[Row]:
    base = file.offset or 0
    if file.kind is FileKind.OFFSET_INDEX:
        yield from (entry._asdict() for entry in read_offset_index(content, base_offset=base))
    elif file.kind is FileKind.TIME_INDEX:
        yield from (entry._asdict() for entry in read_time_index(content, base_offset=base))
    elif file.kind is FileKind.TRANSACTION_INDEX:
        index = read_transaction_index(content, base_offset=base)
        yield from (entry._asdict() for entry in index.transactions)
    elif file.kind is FileKind.PRODUCER_SNAPSHOT:
        yield from (entry._asdict() for entry in read_producer_snapshot(content))
    elif file.kind is FileKind.LEADER_EPOCHS:
        yield from (entry._asdict() for entry in read_leader_epoch_checkpoint(content).epochs)
    elif file.kind is FileKind.PARTITION_METADATA:
        yield {"topic_id": str(read_partition_metadata(content))}
    elif file.path.name == META_PROPERTIES:
        yield _plain(read_meta_properties(content))
    elif file.path.name in OFFSET_CHECKPOINTS:
        checkpoint = read_offset_checkpoint(content, file.path.name)
        for (topic, partition), offset in checkpoint.offsets.items():
            yield {"topic": topic, "partition": partition, "offset": offset}
    else:
        raise NotKafkas(path=file.path)


def _typed(message: object) -> Row:
    return {"type": type(message).__name__, **_plain(message)}


def _plain(value: Any) -> Any:
    """A decoded message as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _content(name: str, content: bytes | None) -> Row:
    """UTF-8 as text under the plain name, anything else in hex under `<name>_hex`."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_hex": content.hex()}


def _line(row: Row) -> str:
    if "crc_ok" not in row:
        return "  ".join(f"{name} {value}" for name, value in row.items())
    flags = [name for name in ("transactional", "control") if row[name]]
    if row["delete_horizon_ms"] is not None:
        flags.append(f"delete horizon {time_text(row['delete_horizon_ms'])}")
    line = (
        f"[{row['base_offset']}, {row['next_offset']})  {row['record_count']} records  "
        f"epoch {row['leader_epoch']}  {time_text(row['max_timestamp_ms'])}  {row['codec']}  "
        f"{row['size_bytes']} bytes at {row['position']}  crc {row['crc']:08x} "
        f"{'ok' if row['crc_ok'] else 'WRONG'}"
    )
    if row["producer_id"] >= 0:
        line += f"  producer {row['producer_id']}/{row['producer_epoch']} seq {row['base_sequence']}"
    lines = row.get("lines") or map(record_line, row.get("records", ()))
    return "\n".join([line + "".join(f"  {flag}" for flag in flags), *lines])
