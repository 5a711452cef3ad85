"""How a table takes a log's own record: followed, or set aside with a finding.

    claim_epoch below the standing claim     fenced_log
    based on another record than the last    lost_race: its writer had not seen the last one, and tries again
    tombstone                                followed once the topic is deleted and no segment of it is left,
                                             or where compaction may have taken the record that said so
    unreadable                               what was followed stays, and nothing may be trimmed or deleted

A record that is followed teaches its claims: its own, and the earlier ones that it repeats.

Owns these rules. Invariant: from one followed record to the next nothing is undone that its writer had not
seen, whoever they are: leader, restorer, holder.
"""

from __future__ import annotations

from tiering.segments import digest
from tiering.segments.codec import decode
from tiering.segments.errors import RecordMalformed, RecordTooNew, SegmentMetadataError
from tiering.segments.findings import Finding, Reason
from tiering.segments.keys import RecordKey
from tiering.segments.logs import NOTHING, LogState
from tiering.segments.records import Claim, LogRecord
from tiering.segments.segment_fold import behind_claims, fence
from tiering.segments.state import TableState


def follow_log(
    state: TableState, number: int, name: RecordKey, offset: int, key: bytes, value: bytes | None
) -> list[Finding]:
    """Take one record of a log, in the order of the topic."""
    log = state.logs[number]
    if value is None:
        return _tombstone(state, log, offset, key)
    state.set_own_digest(log, digest.record_digest(key, value))
    try:
        record = _decoded(state, name, value)
    except SegmentMetadataError as refused:
        log.unreadable = log.shadowed = True
        reason = Reason.TOO_NEW if isinstance(refused, RecordTooNew) else Reason.UNREADABLE
        return [Finding(reason=reason, offset=offset, key=key, detail=str(refused))]
    reason_and_detail = _refusal(log, record)
    log.seen.append(offset)
    if reason_and_detail is not None:
        log.shadowed = True
        reason, detail = reason_and_detail
        return [Finding(reason=reason, offset=offset, key=key, detail=detail)]
    log.value, log.record_offset = value, offset
    log.shadowed = log.unreadable = False
    return _learn(state, number, _claims(record, offset), offset)


def _decoded(state: TableState, name: RecordKey, value: bytes) -> LogRecord:
    record = decode(name, value)
    assert isinstance(record, LogRecord)
    if record.log.cluster_id != state.topic.cluster_id:
        what = f"the record of log {record.log.topic_id}:{record.log.partition}"
        raise RecordMalformed(what=what, why=f"is of cluster {record.log.cluster_id}")
    return record


def _claims(record: LogRecord, offset: int) -> tuple[Claim, ...]:
    own = offset if record.claim_offset is None else record.claim_offset
    return (*record.earlier_claims, Claim(record.claim_epoch, own))


def _learn(state: TableState, number: int, claims: tuple[Claim, ...], offset: int) -> list[Finding]:
    """Take in a log's claims; those of a place already passed fence what came behind them."""
    log = state.logs[number]
    late = [claim for claim in claims if claim.offset < offset and log.claims.is_news(claim)]
    before = behind_claims(state, number) if late else None
    for claim in claims:
        log.claims.add(claim)
    return [] if before is None else fence(state, number, before)


def _refusal(log: LogState, record: LogRecord) -> tuple[Reason, str] | None:
    highest = log.claims.highest_epoch
    if record.claim_epoch < highest:
        return Reason.FENCED_LOG, f"a record of claim {record.claim_epoch}, and {highest} stands"
    if not log.is_based_on_last(record.based_on):
        detail = f"based on the record at {record.based_on}, and the last is at {log.record_offset}"
        return Reason.LOST_RACE, detail
    return None


def _tombstone(state: TableState, log: LogState, offset: int, key: bytes) -> list[Finding]:
    state.set_own_digest(log, None)
    record = state.log_record(log)
    if record is None:
        return []
    ended = record.topic_deleted_at_ms is not None and not log.rows
    if ended or state.may_lack_records_before(offset):
        log.value, log.record_offset = NOTHING, None
        return []
    log.shadowed = True
    detail = "a tombstone for a log whose topic is not deleted, or that has segments left"
    return [Finding(reason=Reason.TOMBSTONE, offset=offset, key=key, detail=detail)]
