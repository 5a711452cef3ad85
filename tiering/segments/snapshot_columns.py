"""A table of one partition as three Arrow streams, one behind the other, and back.

    segments   one row a row of the table: its columns (`rows`), its key (null: a free row), its epochs where
               they are many
    values     the packed chunks, and last of all the unpacked tail
    logs       one row a log: which segments' rows are its own, its claims, its record, its digest

What the snapshot is of stands in the metadata of the first schema, under HEADER, as JSON. Any reader of Arrow
can look into one.

Owns this form. Refuses a state whose digests do not add up: a log's is the sum of its own record's and its
rows'. Invariant: `unpacked(packed(state))` is the same state, to the last digest.
"""

from __future__ import annotations

import io
import json
from array import array
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from tiering.segments.digest import replaced, summed
from tiering.segments.keys import RecordKey
from tiering.segments.logs import SEEN_RECORDS, Claims, LogState
from tiering.segments.records import Claim
from tiering.segments.rows import DIGEST_BYTES, FREE, ROW, RowStore
from tiering.segments.state import MetadataTopic, TableState
from tiering.segments.values import StoredValues

HEADER = b"seawall.segments"
DIGEST = pa.binary(DIGEST_BYTES)
NUMBERS = tuple(name for name in ROW.names or () if name not in ("unused", "digest"))

Header: TypeAlias = Mapping[str, Any]

LOGS = pa.schema(
    [
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("rows", pa.large_list(pa.int64())),
        ("claim_epochs", pa.list_(pa.int32())),
        ("claim_offsets", pa.list_(pa.int64())),
        ("value", pa.large_binary()),
        ("record_offset", pa.int64()),
        ("own_digest", DIGEST),
        ("shadowed", pa.bool_()),
        ("unreadable", pa.bool_()),
        ("seen", pa.list_(pa.int64())),
        ("digest", DIGEST),
        ("offset", pa.int64()),
    ]
)


class DoesNotAddUp(ValueError):
    """A log's digest is not the sum of what it says it is."""


def packed(state: TableState, header: Header) -> bytes:
    """The streams, one behind the other."""
    state.make_digests()
    sink = io.BytesIO()
    about = {**header, "position": state.position, "dropped_bytes": state.values.dropped_bytes}
    segments = _segments(state.store).replace_schema_metadata({HEADER: json.dumps(about).encode("utf-8")})
    for table in (segments, _values(state.values), _logs(state.logs)):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def header_of(streams: pa.Buffer) -> Header:
    """What the first schema says; nothing behind it is looked at."""
    found = (pa.ipc.open_stream(streams).schema.metadata or {}).get(HEADER)
    if found is None:
        raise ValueError("its schema has no header of ours")
    header: Header = json.loads(found)
    return header


def unpacked(streams: pa.Buffer, topic: MetadataTopic, partition: int) -> TableState:
    """The state. Raises ValueError, KeyError or one of Arrow's errors for what `packed` never wrote."""
    source = pa.BufferReader(streams)
    segments, values, logs = (pa.ipc.open_stream(source).read_all() for _ in range(3))
    header = json.loads(segments.schema.metadata[HEADER])
    state = TableState(topic, partition, complete_from=header["position"])
    state.position = header["position"]
    state.store = _restored_rows(segments)
    *chunks, tail = zip(values["bytes"].to_pylist(), values["length"].to_pylist(), strict=True)
    state.values = StoredValues(chunks, tail[0], header["dropped_bytes"])
    state.logs = [_restored_log(row) for row in logs.to_pylist()]
    state.log_numbers = {
        f"{log.name.topic_id}:{log.name.partition}".encode("ascii"): number
        for number, log in enumerate(state.logs)
    }
    _check_digests(state)
    return state


def _segments(store: RowStore) -> pa.Table:
    rows = store.rows
    epochs: list[bytes | None] = [None] * len(rows)
    for row, each in store.epochs.items():
        epochs[row] = each
    columns = {name: pa.array(np.ascontiguousarray(rows[name])) for name in NUMBERS}
    columns["digest"] = pa.FixedSizeBinaryArray.from_buffers(
        DIGEST, len(rows), [None, pa.py_buffer(rows["digest"].tobytes())]
    )
    columns["key"] = pa.array(store.keys, pa.large_binary())
    columns["epochs"] = pa.array(epochs, pa.large_binary())
    return pa.table(columns)


def _restored_rows(table: pa.Table) -> RowStore:
    rows = np.zeros(table.num_rows, ROW)
    for name in NUMBERS:
        rows[name] = table[name].to_numpy()
    if table.num_rows:
        digests = b"".join(table["digest"].to_pylist())
        rows["digest"] = np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_BYTES)
    keys = table["key"].to_pylist()
    assert all((key is None) == (log == FREE) for key, log in zip(keys, rows["log"].tolist(), strict=True))
    epochs = {row: each for row, each in enumerate(table["epochs"].to_pylist()) if each is not None}
    return RowStore.restored(rows, keys, epochs)


def _values(values: StoredValues) -> pa.Table:
    tail = values.tail
    return pa.table(
        {
            "bytes": pa.array([*(chunk for chunk, _ in values.packed), tail], pa.large_binary()),
            "length": pa.array([*(length for _, length in values.packed), len(tail)], pa.int64()),
        }
    )


def _logs(logs: list[LogState]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "topic_id": log.name.topic_id,
                "partition": log.name.partition,
                "rows": np.array(log.rows, np.int64),
                "claim_epochs": [claim.epoch for claim in log.claims.all()],
                "claim_offsets": [claim.offset for claim in log.claims.all()],
                "value": log.value,
                "record_offset": log.record_offset,
                "own_digest": log.own_digest,
                "shadowed": log.shadowed,
                "unreadable": log.unreadable,
                "seen": list(log.seen),
                "digest": log.digest.to_bytes(DIGEST_BYTES, "big"),
                "offset": log.offset,
            }
            for log in logs
        ],
        LOGS,
    )


def _restored_log(row: Mapping[str, Any]) -> LogState:
    log = LogState(RecordKey(row["topic_id"], row["partition"], None))
    log.rows = array("q", row["rows"])
    log.claims = Claims()
    for claim in zip(row["claim_epochs"], row["claim_offsets"], strict=True):
        log.claims.add(Claim(*claim))
    log.value, log.record_offset, log.own_digest = row["value"], row["record_offset"], row["own_digest"]
    log.shadowed, log.unreadable = row["shadowed"], row["unreadable"]
    assert len(row["seen"]) <= SEEN_RECORDS
    log.seen.extend(row["seen"])
    log.digest, log.offset = int.from_bytes(row["digest"], "big"), row["offset"]
    return log


def _check_digests(state: TableState) -> None:
    rows = state.store.rows
    used = int(np.count_nonzero(rows["log"] != FREE))
    if sum(len(log.rows) for log in state.logs) != used:
        raise DoesNotAddUp("its logs do not have each of its rows once")
    for number, log in enumerate(state.logs):
        mine = np.array(log.rows, np.int64)
        [of_rows] = summed(rows["digest"][mine], np.zeros(1, np.int64)) if len(mine) else [0]
        if replaced(of_rows, None, log.own_digest) != log.digest or np.any(rows["log"][mine] != number):
            raise DoesNotAddUp(f"the digest of {log.name.topic_id}:{log.name.partition} does not add up")
