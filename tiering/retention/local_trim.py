"""Carries out what `local.trim_decision` allows for one log: one DeleteRecords, with evidence on both sides.

    1  look, and decide
    2  ask the store for the .log and .aux of every copy that the certificate names: version, size, checksum
    3  look again: it is still the same decision, to the letter, and the audit would not condemn it
    4  emit the certificate; the sink returns when it is durable
    5  DeleteRecords, once, with a deadline
    6  read the log's start back from its leader, whatever was answered
    7  emit the outcome

Owns this order. Refuses to repeat a request: what came of it is read back, now or in a later turn, and a next
one needs a certificate of its own. Refuses to take an answer for the fact: a leader may time out after it has
moved the start, and followers move theirs at their next fetch.

Invariant (T4): no request without a durable certificate before it. A process that ends after 4 leaves a
certificate without an outcome: whether the start moved is in the log itself, and either is covered by it.

Not guarded: a hold that comes to the topic after step 3, and a topic that is deleted and made anew between 3
and 5, as DeleteRecords goes by name. Both spans are those of one durable write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rules.events import EventSink, TrimCertified, TrimOutcome, TrimResult
from rules.identity import LogId, ObjectRef
from tiering.cluster.interface import Cause, LeaderOffsets, OffsetsSource, TopicPartition, Unknown
from tiering.errors import StatedError
from tiering.retention.audit_gate import before_trim
from tiering.retention.local import Trim, TrimFacts, trim_decision
from tiering.retention.reasons import Keep, Reason
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.store.interface import CHECKSUM_ALGORITHM, Stored


class Answer(Enum):
    """What a leader said to DeleteRecords, if anything."""

    DONE = "done"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"  # by the leader, or on the way: nothing was done
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """`reason` is for people."""

    answer: Answer
    reason: str


class DeleteRecords(Protocol):
    """Asks a partition's leader to move the start of all its replicas."""

    def delete_records(self, partition: TopicPartition, up_to: int) -> Answered:
        """One request, never repeated; returns within its deadline and raises nothing."""


class Heads(Protocol):
    """Says what the store has of a version."""

    def head(self, key: str, version_id: str | None = None) -> Stored: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPorts:
    """The world, as far as a trim touches it."""

    look: Callable[[], TrimFacts]
    segment: Callable[[LogId, SegmentId], SegmentRecord | None]
    objects: Heads
    requests: DeleteRecords
    offsets: OffsetsSource
    sink: EventSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A request whose outcome is not known yet."""

    certificate_id: str
    trim: Trim


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimRun:
    """What one turn came to. `pending`: to be read back before anything else is done to this log."""

    plan: Trim | Keep
    stopped: Keep | None = None  # why the plan was not carried out
    result: TrimResult | None = None  # None: nothing was asked for
    detail: str = ""
    pending: Pending | None = None


def trim(log: LogId, partition: TopicPartition, ports: TrimPorts) -> TrimRun:
    """Trim what may be trimmed now. Errors of a port end the turn; before step 5 nothing was done."""
    plan = trim_decision(ports.look())
    if isinstance(plan, Keep):
        return TrimRun(plan=plan)
    covering = _covering(log, plan, ports)
    if isinstance(covering, Keep):
        return TrimRun(plan=plan, stopped=covering)
    if kept := _changed(plan, ports):
        return TrimRun(plan=plan, stopped=kept)
    certificate = _certificate(log, partition, plan, covering, ports)
    ports.sink.emit(certificate)
    answered = ports.requests.delete_records(partition, plan.up_to)
    return settle(
        log, partition, Pending(certificate_id=certificate.certificate_id, trim=plan), answered, ports
    )


def settle(
    log: LogId, partition: TopicPartition, pending: Pending, answered: Answered | None, ports: TrimPorts
) -> TrimRun:
    """Say what a request came to, by the leader's own log start. `answered` None: in a later turn."""
    result, start, detail = _outcome(log, partition, pending.trim.up_to, answered, ports.offsets)
    ports.sink.emit(
        TrimOutcome(
            event_id=ports.new_id(),
            occurred_at_ms=ports.now_ms(),
            log=log,
            topic=partition.topic,
            leader_epoch=pending.trim.certificate.leader_epoch,
            certificate_id=pending.certificate_id,
            result=result,
            start_read_back=start,
            detail=detail,
        )
    )
    is_open = result in (TrimResult.TIMED_OUT, TrimResult.UNKNOWN) and answered is not None
    return TrimRun(plan=pending.trim, result=result, detail=detail, pending=pending if is_open else None)


def settle_left(
    left: TrimCertified,
    offsets: OffsetsSource,
    sink: EventSink,
    *,
    now_ms: Callable[[], int],
    new_id: Callable[[], str],
) -> bool:
    """Say what came of the request of an agent that ended before it heard; whether that could be told now."""
    partition = TopicPartition(left.topic, left.log.partition)
    result, start, detail = _outcome(left.log, partition, left.new_start, None, offsets)
    if start is None and _is_there(left.log, partition, offsets):
        return False
    sink.emit(
        TrimOutcome(
            event_id=new_id(),
            occurred_at_ms=now_ms(),
            log=left.log,
            topic=left.topic,
            leader_epoch=left.leader_epoch,
            certificate_id=left.certificate_id,
            result=result,
            start_read_back=start,
            detail=detail,
        )
    )
    return True


def _is_there(log: LogId, partition: TopicPartition, offsets: OffsetsSource) -> bool:
    """Whether the log may still answer: its topic was not deleted, as far as anybody said."""
    found = offsets.leader_offsets([partition])[partition]
    if isinstance(found, Unknown):
        return found.cause is not Cause.NO_SUCH_TOPIC
    return found.topic_id == log.topic_id


def _covering(log: LogId, plan: Trim, ports: TrimPorts) -> tuple[SegmentRecord, ...] | Keep:
    """The records of the copies, each of whose objects the store has just shown."""
    found: list[SegmentRecord] = []
    for copy in plan.certificate.copies:
        record = ports.segment(log, copy.segment_id)
        if record is None or record.objects.log is None or record.objects.aux is None:
            detail = f"segment {copy.segment_id} has no record, or one without objects"
            return Keep(reason=Reason.OBJECT_UNCONFIRMED, detail=detail)
        for ref in (record.objects.log, record.objects.aux):
            if wrong := _not_as_recorded(ref, ports.objects):
                return Keep(reason=Reason.OBJECT_UNCONFIRMED, detail=f"{ref.key}: {wrong}")
        found.append(record)
    return tuple(found)


def _not_as_recorded(ref: ObjectRef, objects: Heads) -> str | None:
    try:
        stored = objects.head(ref.key, ref.version_id)
    except StatedError as failed:
        return str(failed)
    if stored.size_bytes != ref.size_bytes:
        return f"the store has {stored.size_bytes} bytes of {ref.size_bytes}"
    if ref.checksum_algorithm != CHECKSUM_ALGORITHM or stored.checksum != ref.checksum:
        return f"the store says checksum {stored.checksum}, the record {ref.checksum}"
    return None


def _changed(plan: Trim, ports: TrimPorts) -> Keep | None:
    """Why the plan does not stand after a second look, if it does not."""
    facts = ports.look()
    again = trim_decision(facts)
    if isinstance(again, Keep):
        return again
    if again == plan:
        return before_trim(facts, plan)
    detail = f"a second look would trim up to {again.up_to}, by other facts"
    return Keep(reason=Reason.CHANGED_MEANWHILE, detail=detail)


def _certificate(
    log: LogId, partition: TopicPartition, plan: Trim, covering: tuple[SegmentRecord, ...], ports: TrimPorts
) -> TrimCertified:
    case = plan.certificate
    return TrimCertified(
        event_id=ports.new_id(),
        occurred_at_ms=ports.now_ms(),
        log=log,
        topic=partition.topic,
        leader_epoch=case.leader_epoch,
        certificate_id=ports.new_id(),
        old_start=plan.old_start,
        new_start=plan.up_to,
        frontier=case.frontier,
        metadata_partition=case.metadata_partition,
        metadata_offset=case.metadata_offset,
        digest=case.digest,
        agreeing_brokers=case.agreeing_brokers,
        segments=tuple(
            (record.segment_id, record.objects.log.checksum if record.objects.log else "")
            for record in covering
        ),
    )


def _outcome(
    log: LogId, partition: TopicPartition, up_to: int, answered: Answered | None, offsets: OffsetsSource
) -> tuple[TrimResult, int | None, str]:
    """Result, the start that was read back, and a word on how they go together."""
    said = answered.reason if answered is not None else "looked at again later"
    answer = answered.answer if answered is not None else Answer.TIMED_OUT
    found = offsets.leader_offsets([partition])[partition]
    start = found.log_start if isinstance(found, LeaderOffsets) and found.topic_id == log.topic_id else None
    if start is not None and start >= up_to:
        return TrimResult.ADVANCED, start, said
    if answer is Answer.REFUSED:
        return TrimResult.REFUSED, start, said
    if start is None:
        why = found.reason if isinstance(found, Unknown) else f"the topic is {found.topic_id} now"
        return TrimResult.UNKNOWN, None, f"{said}; the start could not be read back: {why}"
    if answer is Answer.TIMED_OUT:
        return TrimResult.TIMED_OUT, start, f"{said}; the start is {start} still"
    return TrimResult.UNKNOWN, start, f"{said}; and yet the start is {start}"
