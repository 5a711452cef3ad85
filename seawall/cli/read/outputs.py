"""Where records go: lines of text, JSON lines, a Parquet file; and batches into a file as they are.

A file appears under its name only when it is whole: it is written beside it, brought to the disk, and
renamed. One that could not be finished leaves nothing.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from seawall.cli.read.bounds import spoken
from tiering.log.batch import Record
from tiering.reader.interface import StoredBatch

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP_RECORDS = 50_000
ROW_GROUP_BYTES = 64 * 1024 * 1024

_ESCAPES = {ord("\\"): "\\\\", **{n: f"\\x{n:02x}" for n in (*range(32), 127)}}
_ESCAPES |= {ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r"}


class Output(Protocol):
    """Takes records of several partitions, each partition's in order."""

    def write(self, partition: int, record: Record) -> None: ...


class TextLines:
    r"""One line a record, tabs between: partition, offset, time, key, value, headers as name=value.

    \N is null; control characters and bytes that are not UTF-8 are escaped, so that a line is a record.
    """

    def write(self, partition: int, record: Record) -> None:
        cells = [
            str(partition),
            str(record.offset),
            spoken(record.timestamp_ms),
            _escaped(record.key),
            _escaped(record.value),
            *(f"{name.translate(_ESCAPES)}={_escaped(value)}" for name, value in record.headers),
        ]
        _print("\t".join(cells))


class JsonLines:
    """One object a record. Bytes that are not UTF-8 stand in base64 under `key_base64`, `value_base64`."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def write(self, partition: int, record: Record) -> None:
        row: dict[str, Any] = {
            "topic": self._topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            **_json_content("key", record.key),
            **_json_content("value", record.value),
            "headers": [
                {"name": _name(name), **_json_content("value", value)} for name, value in record.headers
            ],
        }
        _print(json.dumps(row, ensure_ascii=False))


class ParquetFile:
    """Typed columns, in row groups that are bounded by count and bytes."""

    def __init__(self, file: IO[bytes], topic: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._arrow: Any = pa
        header = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())])
        self._schema: pa.Schema = pa.schema(
            [
                pa.field("topic", pa.string(), nullable=False),
                pa.field("partition", pa.int32(), nullable=False),
                pa.field("offset", pa.int64(), nullable=False),
                pa.field("timestamp", pa.timestamp("ms", tz="UTC")),  # null: the record has none
                pa.field("key", pa.binary()),
                pa.field("value", pa.binary()),
                pa.field("headers", pa.list_(header), nullable=False),
            ]
        )
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._topic = topic
        self._rows: list[dict[str, Any]] = []
        self._size_bytes = 0

    def write(self, partition: int, record: Record) -> None:
        self._rows.append(
            {
                "topic": self._topic,
                "partition": partition,
                "offset": record.offset,
                "timestamp": None if record.timestamp_ms == -1 else record.timestamp_ms,
                "key": record.key,
                "value": record.value,
                "headers": [{"name": _name(name), "value": value} for name, value in record.headers],
            }
        )
        self._size_bytes += len(record.key or b"") + len(record.value or b"")
        if len(self._rows) >= ROW_GROUP_RECORDS or self._size_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
            self._rows, self._size_bytes = [], 0


class RawFile:
    """Batches back to back, byte for byte: what Kafka's own segments are made of."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.count = 0

    def write(self, batch: StoredBatch) -> None:
        self._file.write(batch.content)
        self.count += 1


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that is under its name when the block ends well, and nowhere otherwise."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


def _escaped(content: bytes | None) -> str:
    if content is None:
        return "\\N"
    # Backslashes of the content are doubled first; those of bytes that are no text come after.
    return "".join(
        f"\\x{ord(each) - 0xDC00:02x}" if 0xDC80 <= ord(each) <= 0xDCFF else each
        for each in content.decode("utf-8", "surrogateescape").translate(_ESCAPES)
    )


def _name(name: str) -> str:
    """A header's name as text; its bytes that are no text are escaped."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _json_content(name: str, content: bytes | None) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode("ascii")}
