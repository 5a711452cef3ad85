"""What the tier's metadata says, taken into the state.

The lifecycle is the metadata topic's: each state of a copy is kept with its offset there, so that what is
heard in another order comes to the same. Of a copy that was deleted nothing stays once it is judged.

Owns how these facts are kept. Invariant: a fact at an offset of the metadata topic counts once, whoever
told it.
"""

from __future__ import annotations

from rules.events import (
    CopyFailed,
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    HoldPlaced,
    HoldReleased,
    LeadershipClaimed,
    SegmentEvent,
    Source,
    TierSet,
    TierState,
    TrimCertified,
)
from rules.machine import coverage
from rules.machine.findings import happened
from rules.machine.replicas import removed
from rules.machine.spans import meet, span
from rules.machine.state import DIGESTS_KEPT, LEGAL, Buried, Copy, CopyAbove, Hold, LogState, Permit, Removal
from rules.machine.terms import Terms
from rules.machine.told import Speaker


def copy_told(state: LogState, event: CopyStarted | CopyFinished, terms: Terms) -> None:
    _mode(state, event)
    step = "COPY_STARTED" if isinstance(event, CopyStarted) else "COPY_FINISHED"
    if _is_buried(state, event, step):
        return
    copy = state.tier.get(event.segment_id)
    if copy is None:
        copy = _copy(event, event.generation)
        state.tier[event.segment_id] = copy
    copy.data_end, copy.record_count = event.data_end, event.record_count
    copy.size_bytes, copy.max_timestamp_ms = event.size_bytes, event.max_timestamp_ms
    copy.base, copy.end = event.base_offset, event.end_offset
    if event.leader_epoch >= 0:
        copy.leader_epoch = event.leader_epoch
    if event.epochs is not None:
        copy.epochs = event.epochs
    if isinstance(event, CopyFinished) and event.objects:
        copy.is_versioned = all(each.version_id is not None for each in event.objects)
    _step(state, copy, event.metadata_offset, step, event.generation, event.occurred_at_ms)
    copy.is_fenced = any(
        epoch > event.leader_epoch >= 0 and offset < event.metadata_offset for epoch, offset in state.claims
    )
    is_above = state.watermark is not None and event.end_offset > state.watermark
    if (
        step == "COPY_STARTED"
        and is_above
        and all(each.segment_id != copy.segment_id for each in state.above)
    ):
        state.above.append(
            CopyAbove(
                segment_id=event.segment_id,
                base=event.base_offset,
                end=event.end_offset,
                at_ms=event.occurred_at_ms,
            )
        )


def _is_buried(state: LogState, event: CopyStarted | CopyFinished, step: str) -> bool:
    """Whether it was deleted long since; what is told of it now is an old word, or no legal one."""
    known = state.buried.get(event.segment_id)
    if known is None:
        return False
    if event.generation > known.generation:  # restored
        del state.buried[event.segment_id]
        return False
    if event.metadata_offset > known.metadata_offset:
        _illegal(state, event.segment_id, (event.base_offset, event.end_offset), event.occurred_at_ms, step)
    return True


def _illegal(state: LogState, segment_id: str, spanned: tuple[int, int], at_ms: int, step: str) -> None:
    happened(
        state,
        "SEG-01",
        subject="log",
        anchor=segment_id,
        severity="E",
        ranges=span(*spanned),
        interval=(at_ms, at_ms),
        note=f"{step} may not follow what was before it",
    )


def bury(state: LogState, before_ms: int, horizon_ms: int) -> None:
    """Of copies that were deleted a while ago the name is enough, and where their versions can be had."""
    for segment_id, copy in list(state.tier.items()):
        if copy.state == "DELETE_FINISHED" and copy.changed_ms < before_ms:
            del state.tier[segment_id]
            end = copy.covered_end if copy.is_versioned else copy.base
            state.buried[segment_id] = Buried(
                at_ms=copy.changed_ms,
                metadata_offset=max(copy.steps)[0],
                generation=copy.generation,
                base=copy.base,
                end=end,
            )
    state.buried = {key: each for key, each in state.buried.items() if each.at_ms >= horizon_ms}


def copy_failed(state: LogState, event: CopyFailed, terms: Terms) -> None:
    copy = state.tier.get(event.segment_id)
    if copy is not None:
        copy.is_failed = True


def delete_told(state: LogState, event: DeleteStarted | DeleteFinished, terms: Terms) -> None:
    _mode(state, event)
    copy = state.tier.get(event.segment_id)
    is_start = isinstance(event, DeleteStarted)
    if copy is None:
        known = state.buried.get(event.segment_id)
        if is_start and known is None:
            _unknown(state, event)
        elif is_start and known is not None and event.metadata_offset > known.metadata_offset:
            _illegal(
                state,
                event.segment_id,
                (event.base_offset, event.end_offset),
                event.occurred_at_ms,
                "DELETE_STARTED",
            )
        return
    was = copy.state
    unique, counted = _bytes(state, event.broker_id)
    step = "DELETE_STARTED" if is_start else "DELETE_FINISHED"
    is_news = _step(state, copy, event.metadata_offset, step, event.generation, event.occurred_at_ms)
    if is_start and is_news and was != coverage.STARTED:  # a half-made copy never counted: it is cleaned up
        _against_holds(state, event.metadata_offset, span(copy.base, copy.end), event)
    if was == coverage.FINISHED and is_news and not copy.is_fenced:
        removed(
            state,
            Removal(
                where="tier",
                broker_id=-1,
                segment_id=copy.segment_id,
                base=copy.base,
                end=copy.end,
                size_bytes=copy.size_bytes,
                max_timestamp_ms=copy.max_timestamp_ms,
                not_before_ms=event.occurred_at_ms,
                at_ms=event.occurred_at_ms,
                due_ms=event.occurred_at_ms + terms.settle_ms,
                bytes_at_most=unique,
                bytes_counted=counted,
                covered=meet(coverage.tiered(state), span(copy.base, copy.end)),
                was_led=True,
            ),
        )


def _bytes(state: LogState, remover: int | None) -> tuple[int | None, int | None]:
    """As the one has it who removes: a leader removes before anybody has told that it leads."""
    broker_id = state.leader_id if remover is None else remover
    leader = state.replicas.get(broker_id) if broker_id is not None else None
    return coverage.bytes_of(state, leader, with_tier=True)


def leadership_claimed(state: LogState, event: LeadershipClaimed, terms: Terms) -> None:
    state.is_tiered = True
    claim = (event.leader_epoch, event.metadata_offset)
    if claim not in state.claims:
        state.claims = sorted([*state.claims, claim])[-16:]
    for copy in state.tier.values():
        finished_at = min((at for at, step in copy.steps if step == coverage.FINISHED), default=-1)
        if event.leader_epoch > copy.leader_epoch >= 0 and finished_at > event.metadata_offset:
            copy.is_fenced = True


def tier_state(state: LogState, event: TierState, terms: Terms, speaker: Speaker) -> None:
    state.is_tiered = True
    said = state.digests.setdefault(event.metadata_offset, {})
    said[speaker.broker_id] = event.digest
    while len(state.digests) > DIGESTS_KEPT:
        del state.digests[min(state.digests)]
    if len(said) < 2:
        return
    odd = _odd(state, said)
    for broker_id in said:
        is_newer = event.metadata_offset >= state.odd_tables.get(broker_id, -1)
        if broker_id in odd:
            state.odd_tables[broker_id] = max(event.metadata_offset, state.odd_tables.get(broker_id, -1))
        elif is_newer and state.odd_tables.pop(broker_id, None) is not None:
            state.lacking.pop(broker_id, None)
            state.sets.pop(broker_id, None)


def _odd(state: LogState, said: dict[int, str]) -> set[int]:
    """Who disagrees with most; where none is most, with the leader; without one, all."""
    digests = sorted(said.values())
    most = max(set(digests), key=digests.count)
    if digests.count(most) * 2 > len(digests):
        right: str | None = most
    else:
        right = said.get(state.leader_id) if state.leader_id is not None else None
    return {broker_id for broker_id, digest in said.items() if digest != right}


def tier_set(state: LogState, event: TierSet, terms: Terms, speaker: Speaker) -> None:
    members = dict(event.members)
    for broker_id, (offset, other) in sorted(state.sets.items()):
        if broker_id == speaker.broker_id or offset != event.metadata_offset:
            continue
        for key in sorted(members.keys() & other.keys()):
            if members[key] != other[key]:
                _two_contents(state, event, key, (broker_id, speaker.broker_id))
    state.sets[speaker.broker_id] = (event.metadata_offset, members)
    held = {key.rpartition(":")[2] for key in members}
    state.lacking[speaker.broker_id] = sorted(
        each.segment_id
        for each in coverage.finished(state)
        if each.segment_id not in held and min(each.steps)[0] <= event.metadata_offset
    )


def _two_contents(state: LogState, event: TierSet, key: str, brokers: tuple[int, int]) -> None:
    segment_id = key.rpartition(":")[2]
    copy = state.tier.get(segment_id)
    happened(
        state,
        "META-02",
        subject="log",
        anchor=segment_id,
        severity="C",
        ranges=() if copy is None else span(copy.base, copy.end),
        interval=(event.occurred_at_ms, event.occurred_at_ms),
        note=f"brokers {brokers[0]} and {brokers[1]} hold different records under {key}",
    )


def trim_certified(state: LogState, event: TrimCertified, terms: Terms) -> None:
    state.is_tiered = True
    _against_holds(state, event.metadata_offset, span(event.old_start, event.new_start), event)
    state.permits.append(
        Permit(
            sort="trim",
            principal="",
            change_id=event.certificate_id,
            start=event.old_start,
            end=event.new_start,
            from_ms=event.occurred_at_ms,
            to_ms=event.occurred_at_ms + terms.retention_ms,
        )
    )


def hold_placed(state: LogState, event: HoldPlaced, terms: Terms) -> None:
    known = state.holds.get(event.hold_id)
    if known is None:
        state.holds[event.hold_id] = Hold(
            start=event.start_offset, end=event.end_offset, metadata_offset=event.metadata_offset
        )


def hold_released(state: LogState, event: HoldReleased, terms: Terms) -> None:
    hold = state.holds.get(event.hold_id)
    if hold is not None:
        hold.released_at = event.metadata_offset


def _mode(state: LogState, event: SegmentEvent) -> None:
    if getattr(event, "source", None) is Source.REMOTE_LOG_METADATA:
        state.is_kip405 = True
    else:
        state.is_tiered = True


def _copy(event: CopyStarted | CopyFinished, generation: int) -> Copy:
    return Copy(
        segment_id=event.segment_id,
        base=event.base_offset,
        end=event.end_offset,
        data_end=event.data_end,
        record_count=event.record_count,
        size_bytes=event.size_bytes,
        max_timestamp_ms=event.max_timestamp_ms,
        leader_epoch=event.leader_epoch,
        generation=generation,
        steps=[],
        started_ms=event.occurred_at_ms,
        changed_ms=event.occurred_at_ms,
    )


def _step(state: LogState, copy: Copy, offset: int, step: str, generation: int, at_ms: int) -> bool:
    """Whether it is news. A restore opens a new generation, whose steps begin anew."""
    if generation > copy.generation:
        copy.generation, copy.steps, copy.is_restored = generation, [], True
        copy.missing, copy.started_ms, copy.is_failed, copy.read_ms = {}, at_ms, False, None
    elif generation < copy.generation:
        return False
    if (offset, step) in copy.steps:
        return False
    is_repeated = any(each == step for _, each in copy.steps)
    copy.steps = sorted([*copy.steps, (offset, step)])
    copy.changed_ms = max(copy.changed_ms, at_ms)
    for (_, before), (_, after) in zip(copy.steps, copy.steps[1:], strict=False):
        if after not in LEGAL[before]:
            _illegal(state, copy.segment_id, (copy.base, copy.end), at_ms, after)
    # A retry's repetition is legal and adds nothing.
    copy.steps = [each for at, each in enumerate(copy.steps) if at == 0 or copy.steps[at - 1][1] != each[1]]
    return not is_repeated


def _unknown(state: LogState, event: DeleteStarted | DeleteFinished) -> None:
    """Judged only where the log's copies were followed from before this one can have begun."""
    if not state.tier or event.metadata_offset <= min(min(each.steps)[0] for each in state.tier.values()):
        return
    happened(
        state,
        "SEG-05",
        subject="log",
        anchor=event.segment_id,
        severity="E",
        ranges=span(event.base_offset, event.end_offset),
        interval=(event.occurred_at_ms, event.occurred_at_ms),
        note="a segment was deleted that nothing was known of",
    )


def _against_holds(
    state: LogState,
    offset: int,
    ranges: coverage.Spans,
    event: DeleteStarted | DeleteFinished | TrimCertified,
) -> None:
    if getattr(event, "source", None) is Source.REMOTE_LOG_METADATA:
        return  # a hold does not bind the broker, and its topic's offsets are another's
    for hold_id, hold in sorted(state.holds.items()):
        stands = hold.metadata_offset <= offset and (hold.released_at is None or offset < hold.released_at)
        held = meet(ranges, span(hold.start, coverage.END if hold.end is None else hold.end))
        if stands and held:
            happened(
                state,
                "HLD-01",
                subject="log",
                anchor=f"{hold_id}@{held[0][0]}",
                severity="C",
                ranges=held,
                interval=(event.occurred_at_ms, event.occurred_at_ms),
                note=f"deleted under hold {hold_id}",
            )
