"""What Kafka's DumpLogSegments says of a file, as values. dump_text.py makes them.

Names follow ours; where the tool prints -1 for "none" it is left as it is, since that is what the bytes hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    kind: str  # COMMIT or ABORT
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlMessage:
    """A KRaft control record: LeaderChange, SnapshotHeader, SnapshotFooter, KRaftVersion, KRaftVoters."""

    kind: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedRecord:
    offset: int
    timestamp_type: str
    timestamp_ms: int
    key_size_bytes: int  # -1: null
    value_size_bytes: int
    sequence: int
    header_keys: str  # joined by commas
    key: str | None
    payload: str | None
    control: EndTransaction | ControlMessage | None

    @property
    def message(self) -> dict[str, Any]:
        """The payload of a metadata decoder: {"type": ..., "version": ..., "data": {...}}."""
        decoded = json.loads(self.payload or "null")
        if not isinstance(decoded, dict):
            raise ValueError(f"not a JSON object at offset {self.offset}: {self.payload}")
        return decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedBatch:
    base_offset: int
    last_offset: int
    count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    leader_epoch: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    position: int
    timestamp_type: str
    max_timestamp_ms: int
    size_bytes: int
    magic: int
    codec: str
    crc: int
    is_valid: bool
    records: list[DumpedRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetEntry:
    offset: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeEntry:
    timestamp_ms: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction:
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastBatch:
    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedProducer:
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    current_transaction_first_offset: int | None
    last_timestamp_ms: int
    last_batch: LastBatch | None


@dataclass(slots=True, kw_only=True)
class DumpedFile:
    """Everything printed about one file; only the fields of its kind are filled."""

    path: Path
    starting_offset: int | None = None
    snapshot_epoch: int | None = None
    batches: list[DumpedBatch] = field(default_factory=list)
    trailing_invalid_bytes: int = 0
    offset_entries: list[OffsetEntry] = field(default_factory=list)
    time_entries: list[TimeEntry] = field(default_factory=list)
    aborted_transactions: list[AbortedTransaction] = field(default_factory=list)
    producers: list[DumpedProducer] = field(default_factory=list)
    said_empty: bool = False
    passed_sanity_check: bool = False

    @property
    def records(self) -> Iterator[DumpedRecord]:
        for batch in self.batches:
            yield from batch.records
