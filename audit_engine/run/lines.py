"""Rows as they come from Spark, Arrow batch by batch, as the judge takes them: of a reading only what is
asked of nearly every one of them, of all else the row.

    `read`   what a reading's body says, cut out of it by Spark; null of what is none, or is spelled otherwise

Owns the way from columns. Invariant: what a reading tells of itself is what its row says, and `whole` is it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from audit_engine.ingest.rows.plain import Pieces
from audit_engine.run.told import told_of
from rules.machine import Reading, Speaker, Told

Row: TypeAlias = Mapping[str, Any]

# Of a reading's body, in the order of `_OWN`; and where it was read.
READ: Pieces = {
    "broker_id": ("INT", "int"),
    "directory_id": ("STRING", "text"),
    "replica_incarnation": ("BIGINT", "long"),
    "log_start": ("BIGINT", "long"),
    "high_watermark": ("BIGINT", "long"),
    "log_end": ("BIGINT", "long"),
    "size_bytes": ("BIGINT", "long"),
    "source": ("STRING", "text"),
}
_OWN = tuple(READ)[:-1]
_SPEAKER = ("emitter_broker_id", "emitter_component", "emitter_incarnation")
_PLACE = ("emitter_seq", "log_seq", "observed_at_ms", "occurred_at_ms", "leader_epoch")
_AT_ONCE = 64  # rows that are made when one is asked for: the next ones mostly are, too


def rows_in(batch: pa.RecordBatch, key: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Row | Reading]]:
    """Each with its values of `key`."""
    is_reading = batch.column("read").is_valid()
    readings = _readings(batch.filter(is_reading))
    others = iter(batch.filter(pc.invert(is_reading)).to_pylist())
    keys = zip(*(batch.column(name).to_pylist() for name in key), strict=True)
    for own, is_one in zip(keys, is_reading.to_pylist(), strict=True):
        yield own, next(readings) if is_one else next(others)


def _readings(batch: pa.RecordBatch) -> Iterator[Reading]:
    rows, speakers = _Rows(batch), dict[tuple[Any, ...], Speaker]()
    read = batch.column("read")
    who = zip(*(batch.column(name).to_pylist() for name in _SPEAKER), strict=True)
    place = zip(*(batch.column(name).to_pylist() for name in _PLACE), strict=True)
    own = zip(*(read.field(name).to_pylist() for name in _OWN), strict=True)
    for at, (speaker, placed, said) in enumerate(zip(who, place, own, strict=True)):
        known = speakers.get(speaker)
        if known is None:
            known = speakers[speaker] = Speaker(*speaker)
        yield Reading._make((known, *placed, *said, partial(rows.told, at)))


class _Rows:
    """The rows of a batch, for who asks."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._begin = 0
        self._made: list[Row] = []

    def told(self, at: int) -> Told:
        if not self._begin <= at < self._begin + len(self._made):
            self._begin = at
            self._made = self._batch.slice(at, _AT_ONCE).to_pylist()
        return told_of(self._made[at - self._begin])
