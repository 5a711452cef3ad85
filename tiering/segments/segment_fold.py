"""How a table takes a segment's record: followed, or set aside with a finding.

    COPY_*         of an epoch below a claim before it: fenced (T6). Else as `lifecycle` allows.
    DELETE_*       as `lifecycle` allows, of any epoch: it takes coverage away, and the objects may be gone
                   whoever removed them; below a claim before it that is a finding
    tombstone      of a deleted segment: its row goes
    unreadable     the row stays as it was, and does not count as coverage any more

A first record is legal in any state where compaction may have hidden those before it; from `complete_from` on
the table has seen everything, and a life must begin at its beginning. In a table that goes on from a snapshot
compaction may also have taken what came next, up to the end at which it went on: there a life may make
several steps at once, and a tombstone is taken for any state. (What can be lost so is coverage.)

Owns these rules. Invariant: the digest takes in every record, whatever becomes of it here.
"""

from __future__ import annotations

import numpy as np

from tiering.segments import digest, lifecycle
from tiering.segments.codec import SEGMENT_KIND, decode
from tiering.segments.errors import RecordMalformed, RecordTooNew, SegmentMetadataError
from tiering.segments.findings import Finding, Reason
from tiering.segments.json_fields import parse_object
from tiering.segments.keys import RecordKey
from tiering.segments.logs import Column
from tiering.segments.records import SegmentRecord, SegmentState
from tiering.segments.rows import STATE_CODES, STATES, Flag, Standing
from tiering.segments.state import TableState, counts_in_digest

_COPIES = (SegmentState.COPY_STARTED, SegmentState.COPY_FINISHED)
COPY_CODES = tuple(STATE_CODES[copy] for copy in _COPIES)


def follow_segment(
    state: TableState, number: int, name: RecordKey, offset: int, key: bytes, value: bytes | None
) -> list[Finding]:
    """Take one record of a segment, in the order of the topic."""
    row = state.store.index.get(key)
    if value is None:
        return [] if row is None else _tombstone(state, row, offset, key)
    try:
        record = _decoded(state, name, value)
    except SegmentMetadataError as refused:
        return [_unreadable(state, number, row, offset, key, value, refused)]
    counted = digest.record_digest(key, value) if counts_in_digest(record.state) else None
    claims = state.logs[number].claims
    behind = claims.fences(record.leader_epoch, offset)
    if behind and record.state in _COPIES:
        row = _set_aside(state, number, row, offset, key, record, value, Standing.FENCED)
        state.set_digest(row, counted)
        return [_behind_a_claim(Reason.FENCED, record.state, record.leader_epoch, offset, key)]
    verdict = _verdict(state, row, offset, record)
    if isinstance(verdict, lifecycle.Refused):
        row = _set_aside(state, number, row, offset, key, record, value, Standing.REFUSED)
        state.set_digest(row, counted)
        detail = f"{verdict.reason}: {verdict.detail}"
        return [Finding(reason=Reason.TRANSITION, offset=offset, key=key, detail=detail)]
    if row is None:
        row = state.new_row(number, key, offset, Standing.FOLLOWED)
    state.put(row, offset, record, value, Standing.FOLLOWED)
    state.set_digest(row, counted)
    if behind:
        return [_behind(state, row, Reason.STALE_DELETE)]
    return []


def behind_claims(state: TableState, number: int) -> Column:
    """For each row of a log, whether its record is behind a claim of a later epoch."""
    log = state.logs[number]
    rows = state.store.rows[np.array(log.rows, np.int64)]
    return log.claims.fence_mask(rows["leader_epoch"], rows["offset"])


def fence(state: TableState, number: int, before: Column) -> list[Finding]:
    """Set aside what claims fence that were only now learned of: compaction took the records of their place.

    `before` are the rows that were behind a claim already.
    """
    numbers = np.array(state.logs[number].rows, np.int64)[behind_claims(state, number) & ~before]
    return [each for row in numbers.tolist() for each in set_behind(state, row)]


def set_behind(state: TableState, row: int) -> list[Finding]:
    """A row turns out to be behind a claim: a copy is fenced, a deletion stands."""
    columns = state.store.rows[row]
    if columns["standing"] != Standing.FOLLOWED:
        return []
    if columns["state"] in COPY_CODES:
        columns["standing"] = Standing.FENCED
        return [_behind(state, row, Reason.FENCED)]
    return [_behind(state, row, Reason.STALE_DELETE)]


def _behind(state: TableState, row: int, reason: Reason) -> Finding:
    columns, key = state.store.rows[row], state.store.keys[row]
    assert key is not None
    said = STATES[columns["state"]]
    return _behind_a_claim(reason, said, int(columns["leader_epoch"]), int(columns["offset"]), key)


def _behind_a_claim(reason: Reason, said: SegmentState, epoch: int, offset: int, key: bytes) -> Finding:
    detail = f"{said.value} of epoch {epoch}, behind a claim of a later one"
    return Finding(reason=reason, offset=offset, key=key, detail=detail)


def _decoded(state: TableState, name: RecordKey, value: bytes) -> SegmentRecord:
    record = decode(name, value)
    assert isinstance(record, SegmentRecord)
    if record.log.cluster_id != state.topic.cluster_id:
        what = f"the record of segment {record.segment_id}"
        raise RecordMalformed(what=what, why=f"is of cluster {record.log.cluster_id}")
    return record


def _verdict(state: TableState, row: int | None, offset: int, record: SegmentRecord) -> lifecycle.Verdict:
    standing = None if row is None else Standing(state.store.rows["standing"][row])
    if row is None or standing is Standing.UNREADABLE:
        seen_all = row is None and offset >= state.complete_from
        return lifecycle.first_record(record) if seen_all else lifecycle.Legal()
    hidden = state.may_lack_records_before(offset)
    if standing is Standing.REFUSED and record.state in _COPIES:
        return lifecycle.Legal() if hidden else lifecycle.first_record(record)
    before = state.record(row)
    return lifecycle.later_record(before, record) if hidden else lifecycle.next_record(before, record)


def _set_aside(
    state: TableState,
    number: int,
    row: int | None,
    offset: int,
    key: bytes,
    record: SegmentRecord,
    value: bytes,
    standing: Standing,
) -> int:
    """Keep a record that is not followed where there is nothing better; else only note that it is there."""
    if row is None:
        row = state.new_row(number, key, offset, standing)
    elif state.store.rows["standing"][row] == Standing.FOLLOWED:
        state.flag(row, Flag.SHADOWED)
        return row
    state.put(row, offset, record, value, standing)
    if standing is Standing.REFUSED:
        # A table that begins after compaction has nothing to refuse it by: somebody must end its life.
        state.flag(row, Flag.SHADOWED)
    return row


def _tombstone(state: TableState, row: int, offset: int, key: bytes) -> list[Finding]:
    columns = state.store.rows[row]
    if columns["standing"] == Standing.UNREADABLE:
        state.forget(row)
        return []
    verdict = lifecycle.tombstone(state.record(row))
    legal = isinstance(verdict, lifecycle.Legal) and not columns["flags"] & Flag.UNREADABLE
    if legal or state.may_lack_records_before(offset):
        state.forget(row)
        return []
    state.set_digest(row, None)
    state.flag(row, Flag.SHADOWED)
    detail = "a tombstone for what may not be deleted: its last record cannot be read"
    if isinstance(verdict, lifecycle.Refused):
        detail = verdict.detail
    return [Finding(reason=Reason.TOMBSTONE, offset=offset, key=key, detail=detail)]


def _unreadable(
    state: TableState,
    number: int,
    row: int | None,
    offset: int,
    key: bytes,
    value: bytes,
    refused: SegmentMetadataError,
) -> Finding:
    if row is None:
        row = state.new_row(number, key, offset, Standing.UNREADABLE)
    state.flag(row, Flag.UNREADABLE | Flag.SHADOWED)
    counted = counts_in_digest(_state_of_unreadable(value))
    state.set_digest(row, digest.record_digest(key, value) if counted else None)
    reason = Reason.TOO_NEW if isinstance(refused, RecordTooNew) else Reason.UNREADABLE
    return Finding(reason=reason, offset=offset, key=key, detail=str(refused))


def _state_of_unreadable(value: bytes) -> str | None:
    """`kind` and `state` keep their meaning in every version, also where nothing else can be read."""
    try:
        members = parse_object(value, "a record")
    except RecordMalformed:
        return None
    state = members.get("state") if members.get("kind") == SEGMENT_KIND else None
    return state if isinstance(state, str) else None
