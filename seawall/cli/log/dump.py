"""`seawall log dump`: what a file of Kafka's says, as lines for people or JSON lines for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from datetime import datetime, timezone
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from seawall.cli.log.errors import FileBroken, NoSuchPath, NotKafkas, PathUnreadable
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
from tiering.log.remote_metadata import read_remote_metadata
from tiering.log.segment import BatchAt, iter_batches
from tiering.log.transaction_index import read_transaction_index

REMOTE_METADATA_TOPIC = "__remote_log_metadata"
VALUE_SHOWN_BYTES = 80
Row = dict[str, Any]


class Decode(str, Enum):
    """The choices of --decode."""

    AUTO = "auto"
    NONE = "none"
    KRAFT = "kraft"
    REMOTE = "remote"


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
        rows = _rows(path, records=records or values, values=values, decode=decode, start=start)
        for row in islice(rows, limit):
            typer.echo(json.dumps(row) if as_json else _line(row))
    except LogFormatError as exc:
        raise FileBroken(path=path, why=str(exc)) from exc
    except OSError as exc:
        raise PathUnreadable(path=path, why=exc.strerror or str(exc)) from exc


def _rows(path: Path, *, records: bool, values: bool, decode: Decode, start: int | None) -> Iterator[Row]:
    file = classify(path)
    if file.kind in (FileKind.SEGMENT, FileKind.KRAFT_SNAPSHOT):
        return _batch_rows(path, records=records, values=values, decode=_decoding(file, decode), start=start)
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


def _batch_rows(
    path: Path, *, records: bool, values: bool, decode: Decode, start: int | None
) -> Iterator[Row]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for batch in iter_batches(descriptor):
            if start is not None and batch.header.last_offset < start:
                continue
            row = _batch_row(batch)
            if records and row["crc_ok"]:
                row["records"] = [
                    _record_row(batch.header, record, values=values, decode=decode)
                    for record in batch.records()
                ]
            yield row
    finally:
        os.close(descriptor)


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
        "codec": Codec(number).name.lower() if number in tuple(Codec) else f"unknown ({number})",
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


def _record_row(header: BatchHeader, record: Record, *, values: bool, decode: Decode) -> Row:
    row: Row = {"offset": record.offset, "timestamp_ms": record.timestamp_ms}
    if header.is_control:
        row["control"] = _control(record)
        return row
    row["key_bytes"] = None if record.key is None else len(record.key)
    row["value_bytes"] = None if record.value is None else len(record.value)
    if decode is not Decode.NONE and record.value is not None:
        read = read_metadata_record if decode is Decode.KRAFT else read_remote_metadata
        row["message"] = _typed(read(record.value))
    if values:
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
        flags.append(f"delete horizon {_time(row['delete_horizon_ms'])}")
    line = (
        f"[{row['base_offset']}, {row['next_offset']})  {row['record_count']} records  "
        f"epoch {row['leader_epoch']}  {_time(row['max_timestamp_ms'])}  {row['codec']}  "
        f"{row['size_bytes']} bytes at {row['position']}  crc {row['crc']:08x} "
        f"{'ok' if row['crc_ok'] else 'WRONG'}"
    )
    if row["producer_id"] >= 0:
        line += f"  producer {row['producer_id']}/{row['producer_epoch']} seq {row['base_sequence']}"
    return "\n".join(
        [line + "".join(f"  {flag}" for flag in flags), *map(_record_line, row.get("records", ()))]
    )


def _record_line(row: Row) -> str:
    line = f"    {row['offset']}  {_time(row['timestamp_ms'])}"
    if "control" in row:
        return f"{line}  {_short(json.dumps(row['control']))}"
    for name in ("key", "value"):
        size = row[f"{name}_bytes"]
        shown = row.get(name, row.get(f"{name}_hex"))
        line += f"  {name} " + ("null" if size is None else f"{size} bytes")
        if shown is not None:
            line += f" {_short(repr(shown))}"
    if row.get("headers"):
        line += f"  headers {_short(json.dumps(row['headers']))}"
    if "message" in row:
        line += f"  {json.dumps(row['message'])}"
    return line


def _short(text: str) -> str:
    return text if len(text) <= VALUE_SHOWN_BYTES else text[: VALUE_SHOWN_BYTES - 1] + "…"


def _time(timestamp_ms: int) -> str:
    """A time for people; a number where it is none (-1, or far beyond the calendar)."""
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1000, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if timestamp_ms >= 0 else "no time"
