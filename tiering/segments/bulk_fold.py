"""How a table takes many records of the past at once.

Most segments of a compacted topic have one record, new to the table, and nothing that comes before or after
it in the batch has a say in what becomes of it: only the log's claims do, by their offsets. Those are put
into the table as columns. Everything else (a log's own record, a key that the table or the batch has already,
a tombstone, a value whose seal does not fit) is taken one by one, in order, before them. Their digests, half
of the work, are left for when somebody asks for one: whoever only reads the tier never does.

Owns that distinction. Refuses records at or past `complete_from`: there the history is whole, and each record
is judged by the one before it.

Invariant: the table, and the findings by rising offset, are those of taking the records one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from operator import attrgetter
from typing import TypeAlias

import numpy as np

from tiering.segments.codec import decode_segment
from tiering.segments.findings import Finding
from tiering.segments.keys import parse_key
from tiering.segments.logs import Column
from tiering.segments.records import SegmentState
from tiering.segments.rows import STATE_CODES, Flag
from tiering.segments.seal import ROW, open_many
from tiering.segments.segment_fold import set_behind
from tiering.segments.state import TableState

BATCH_RECORDS = 16384
WORTH_IT_RECORDS = 256
NO_LOG = -1
ID_AND_COLON_LENGTH = 37
SEGMENT_KEY_LENGTH = 22 + 2 + ID_AND_COLON_LENGTH  # at the least

COLUMNS_IN_SEAL = tuple(name for name in ROW.names or () if name not in ("epochs", "format", "unused"))
DELETED = STATE_CODES[SegmentState.DELETE_FINISHED]

History: TypeAlias = Sequence[tuple[int, bytes, bytes | None]]
ApplyOne: TypeAlias = Callable[[int, bytes, bytes | None], list[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Records, and those of them that are segments': each a place in `records`. The `others` are few."""

    records: History
    places: Sequence[int]
    offsets: Column
    keys: Sequence[bytes]
    values: Sequence[bytes]
    others: History


def follow_many(state: TableState, records: History, apply_one: ApplyOne) -> list[Finding]:
    """Take records below `complete_from`, in order; the findings of each batch by rising offset."""
    found: list[Finding] = []
    for begin in range(0, len(records), BATCH_RECORDS):
        of_batch = _follow_batch(state, records[begin : begin + BATCH_RECORDS], apply_one)
        found += sorted(of_batch, key=attrgetter("offset"))
    return found


def _follow_batch(state: TableState, records: History, apply_one: ApplyOne) -> list[Finding]:
    batch = _batch(records)
    if len(batch.places) < WORTH_IT_RECORDS or any(map(_is_log_tombstone, batch.others)):
        return [each for record in records for each in apply_one(*record)]
    rows, fits = open_many(batch.keys, batch.values, state.topic.cluster_id)
    logs = _log_numbers(state, batch.keys)
    taken = np.flatnonzero(fits & (logs != NO_LOG) & _alone(state, batch))
    found = _one_by_one(batch, taken, apply_one)
    if len(taken):
        values = _those(batch.values, taken)
        rows = rows if len(taken) == len(rows) else rows[taken]
        first = _insert(state, _those(batch.keys, taken), values, rows)
        new = state.store.rows[first:]
        new["offset"], new["log"] = batch.offsets[taken], logs[taken]
        _keep_epochs(state, first, values, rows["epochs"])
        found += _settle(state, first, len(taken))
    state.position = max(state.position, records[-1][0] + 1)
    return found


def _batch(records: History) -> _Batch:
    keys = [each[1] for each in records]
    values = [each[2] for each in records if each[2] is not None]
    offsets = np.array([each[0] for each in records], np.int64)
    if len(values) == len(records) and min(map(len, keys)) >= SEGMENT_KEY_LENGTH:
        every_place = range(len(records))
        return _Batch(
            records=records, places=every_place, offsets=offsets, keys=keys, values=values, others=()
        )
    is_of_segment = [value is not None and len(key) >= SEGMENT_KEY_LENGTH for _, key, value in records]
    places = list(compress(range(len(records)), is_of_segment))
    chosen = list(compress(records, is_of_segment))
    return _Batch(
        records=records,
        places=places,
        offsets=offsets[np.array(places, np.int64)],
        keys=[key for _, key, _ in chosen],
        values=[value for _, _, value in chosen if value is not None],
        others=[each for each, is_one in zip(records, is_of_segment, strict=True) if not is_one],
    )


def _is_log_tombstone(record: tuple[int, bytes, bytes | None]) -> bool:
    """It asks whether segments of the log are left, so that all before it must be in the table."""
    return record[2] is None and len(record[1]) < SEGMENT_KEY_LENGTH


def _alone(state: TableState, batch: _Batch) -> Column:
    """Which records are the only one of their key, here and in the table so far."""
    tombstones = {key for _, key, value in batch.others if value is None}
    index, keys = state.store.index, batch.keys
    once = len(set(keys)) == len(keys) and tombstones.isdisjoint(keys)
    if once and index.keys().isdisjoint(keys):
        return np.ones(len(keys), np.bool_)
    times = Counter(keys)
    times.update(tombstones)
    return np.array([times[key] == 1 and key not in index for key in keys], np.bool_)


def _one_by_one(batch: _Batch, taken: Column, apply_one: ApplyOne) -> list[Finding]:
    """Everything that is not taken at once."""
    if len(taken) == len(batch.records):
        return []
    at_once = {batch.places[place] for place in taken.tolist()}
    rest = (record for place, record in enumerate(batch.records) if place not in at_once)
    return [each for record in rest for each in apply_one(*record)]


def _log_numbers(state: TableState, keys: Sequence[bytes]) -> Column:
    """Each key's log; NO_LOG if it is none of ours, or not one of this partition."""
    prefixes = [key[:-ID_AND_COLON_LENGTH] for key in keys]
    known = list(map(state.log_numbers.get, prefixes))
    if None in known:
        numbers = {prefix: _log_number(state, prefix) for prefix in dict.fromkeys(prefixes)}
        known = list(map(numbers.__getitem__, prefixes))
    return np.array(known, np.int64)


def _log_number(state: TableState, prefix: bytes) -> int:
    number = state.log_numbers.get(prefix)
    if number is None:
        name = parse_key(prefix)
        number = None if name is None or name.segment_id is not None else state.log_number(name)
    return NO_LOG if number is None else number


def _those(items: Sequence[bytes], places: Column) -> Sequence[bytes]:
    return items if len(places) == len(items) else [items[place] for place in places.tolist()]


def _insert(state: TableState, keys: Sequence[bytes], values: Sequence[bytes], opened: Column) -> int:
    """Rows for new keys; the first one's number."""
    first = state.store.extend(keys)
    state.store.index.update(zip(keys, range(first, first + len(keys)), strict=True))
    rows = state.store.rows[first:]
    for name in COLUMNS_IN_SEAL:
        rows[name] = opened[name]
    rows["chunk"], rows["start"], rows["length"] = state.values.add_all(values)
    rows["flags"] = np.where(rows["state"] == DELETED, 0, Flag.UNDIGESTED)
    state.has_undigested = True
    return first


def _keep_epochs(state: TableState, first: int, values: Sequence[bytes], epochs: Column) -> None:
    many = np.flatnonzero(epochs > 1)
    state.store.rows["flags"][first + many] |= np.uint8(Flag.MANY_EPOCHS)
    for place in many.tolist():
        state.keep_epochs(first + place, decode_segment(values[place]).leader_epochs)


def _settle(state: TableState, first: int, count: int) -> list[Finding]:
    """Give new rows to their logs, and fence those that claims fence."""
    rows = state.store.rows[first : first + count]
    order = np.argsort(rows["log"], kind="stable")
    logs = rows["log"][order]
    begins = np.flatnonzero(np.diff(logs, prepend=NO_LOG))
    offsets = np.maximum.reduceat(rows["offset"][order], begins).tolist()
    lowest_epochs = np.minimum.reduceat(rows["leader_epoch"][order], begins).tolist()
    numbers = (first + order).astype(np.int64)
    found: list[Finding] = []
    edges = pairwise([*begins.tolist(), count])
    for (begin, end), offset, epoch in zip(edges, offsets, lowest_epochs, strict=True):
        number = int(logs[begin])
        log = state.logs[number]
        log.rows.frombytes(numbers[begin:end].tobytes())
        log.offset = max(log.offset, offset)
        log.revision += 1
        if epoch < log.claims.highest_epoch:
            places = order[begin:end]
            behind = log.claims.fence_mask(rows["leader_epoch"][places], rows["offset"][places])
            for place in places[behind].tolist():
                found += set_behind(state, first + place)
    return found
