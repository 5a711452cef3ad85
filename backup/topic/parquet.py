"""The offset map as a Parquet file: one row a run, for whoever keeps positions outside of Kafka.

    topic, partition, source_offset, target_topic, target_partition, target_offset, offsets

Owns the columns, and what the file says of itself: format version, the range, the target's end.
"""

from __future__ import annotations

from array import array
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from backup.topic.offset_map import OffsetMap, Run

VERSION = "1"


def write_map(path: Path, found: OffsetMap, *, source: tuple[str, int], target: tuple[str, int]) -> None:
    """Whole, or not at all."""
    rows = found.runs
    columns = {
        "topic": _texts(source[0], len(rows)),
        "partition": _numbers([source[1]] * len(rows), "i", pa.int32()),
        "source_offset": _numbers([run.source for run in rows], "q", pa.int64()),
        "target_topic": _texts(target[0], len(rows)),
        "target_partition": _numbers([target[1]] * len(rows), "i", pa.int32()),
        "target_offset": _numbers([run.target for run in rows], "q", pa.int64()),
        "offsets": _numbers([run.offsets for run in rows], "q", pa.int64()),
    }
    said = {
        "seawall.offset_map": VERSION,
        "start": str(found.start),
        "end": str(found.end),
        "target_end": str(found.target_end),
        "topic": source[0],
        "partition": str(source[1]),
        "target_topic": target[0],
        "target_partition": str(target[1]),
    }
    table = pa.table(columns).replace_schema_metadata(said)
    unfinished = path.with_name(f".{path.name}.tmp")
    pq.write_table(table, unfinished)
    unfinished.replace(path)


def _numbers(values: list[int], code: str, kind: pa.DataType) -> pa.Array:
    """From bytes: `pa.array` would import pandas first, which takes longer than many a replay."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(array(code, values))])


def _texts(text: str, count: int) -> pa.Array:
    encoded = text.encode()
    ends = array("i", range(0, len(encoded) * count + 1, len(encoded)))
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(encoded * count)]
    )


def read_map(path: Path) -> tuple[OffsetMap, tuple[str, int], tuple[str, int]]:
    """The map, the source and the target. Raises ValueError for another file."""
    table = pq.read_table(path)
    said = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
    if said.get("seawall.offset_map") != VERSION:
        raise ValueError(f"{path} is no offset map of version {VERSION}")
    columns = (table[name].to_pylist() for name in ("source_offset", "target_offset", "offsets"))
    found = OffsetMap(
        start=int(said["start"]),
        end=int(said["end"]),
        target_end=int(said["target_end"]),
        runs=tuple(Run(*row) for row in zip(*columns, strict=True)),
    )
    source = said["topic"], int(said["partition"])
    return found, source, (said["target_topic"], int(said["target_partition"]))
