"""The rules about a state of things, looked at anew after every event: which of them are violated now.

Each condition has a key that stays the same while it lasts, a time since which it holds, and the grace of its
rule. `watch` remembers what holds, opens a finding when the grace is over, and clears it when the condition
is evaluated and false. What the mere passing of time brings about (an expired head, a copy that does not end)
says since when by its own arithmetic: it does not matter when anybody looks.

Owns the predicates. Invariant: whether a finding is opened, and as of when, depends on the events alone, and
never on when a run was cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rules.machine import authority, coverage, scrubs
from rules.machine.authority import TOTAL, UNLIMITED
from rules.machine.findings import opened
from rules.machine.obligations import in_doubt
from rules.machine.spans import NONE, Spans, count, cut, join, meet, span
from rules.machine.state import Copy, Found, LogState, Pending, Replica
from rules.machine.terms import DAY_MS, Terms
from rules.machine.untrue import untrue
from rules.policy.quantities import write_time

NEVER_MS = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Violated now. `since_ms` None: since this event, or `not_before_ms` if that is later."""

    rule_id: str
    subject: str
    anchor: str
    severity: str
    grace_ms: int
    note: str
    ranges: Spans = NONE
    since_ms: int | None = None
    not_before_ms: int = 0
    grows: bool = False  # what was so before stays in the finding's ranges
    is_in_turn: bool = False  # one at a time: what lies before it has to go first. `anchor` is where it lies

    @property
    def key(self) -> str:
        return f"{self.rule_id}|{self.subject}|{self.anchor}"


Holding: TypeAlias = Mapping[str, Condition]


def watch(state: LogState, terms: Terms, now_ms: int, known: Holding | None = None) -> Holding:
    """What holds now, against what held before. `known`: what is found to hold, of a state that is as it was:
    what holds is a function of the state, and time alone only makes it due."""
    holding = {each.key: each for each in holds(state, terms)} if known is None else known
    turns = {key: _turn_ms(state, each, now_ms) for key, each in holding.items() if each.is_in_turn}
    for key in [key for key in state.pending if key not in holding]:
        del state.pending[key]
        if key in state.findings:
            _clear(state.findings[key], now_ms)
    for key, each in holding.items():
        pending = state.pending.get(key)
        if pending is None:
            since_ms = max(now_ms, each.not_before_ms)
            pending = Pending(since_ms=since_ms, severity=each.severity, ranges=each.ranges, note=each.note)
            state.pending[key] = pending
        if each.since_ms is not None:
            pending.since_ms = max(each.since_ms, turns.get(key, each.since_ms))
        pending.severity, pending.ranges, pending.note = each.severity, each.ranges, each.note
        due_ms = pending.since_ms + terms.grace_of(each.rule_id, each.grace_ms)
        if due_ms <= now_ms and not _is_doubtful(state, key):
            _open(state, each, pending, due_ms)
        elif pending.since_ms > now_ms and key in state.findings:
            _clear(state.findings[key], now_ms)  # it was so, and is only to come again
    return holding


def _turn_ms(state: LogState, each: Condition, now_ms: int) -> int:
    """Since when it, or what lay before it, has held without a break."""
    place = f"{each.rule_id}|{each.subject}|"
    waited = (
        pending.since_ms
        for key, pending in state.pending.items()
        if key.startswith(place) and int(key.removeprefix(place)) <= int(each.anchor)
    )
    return min([now_ms, *waited])


def _clear(found: Found, now_ms: int) -> None:
    if found.cleared_ms is None:
        found.cleared_ms = now_ms


def _is_doubtful(state: LogState, key: str) -> bool:
    """While evidence is missing, what is lost may be the very event that ended it: nothing new is said."""
    is_missing = any(each.closed_ms is None for each in state.gaps)
    return is_missing and key not in state.findings


def _open(state: LogState, each: Condition, pending: Pending, due_ms: int) -> None:
    since_ms = pending.since_ms
    found = opened(
        state,
        each.rule_id,
        subject=each.subject,
        anchor=each.anchor,
        severity=each.severity,
        ranges=each.ranges,
        interval=(since_ms, since_ms),
        note=each.note,
        at_ms=due_ms,
    )
    if found is not None:
        found.ranges = join(found.ranges, each.ranges) if each.grows else each.ranges
        if found.closed_by == "withdrawn":  # and now it is so again
            found.closed_ms, found.closed_by = None, ""


def holds(state: LogState, terms: Terms) -> Iterator[Condition]:
    if state.is_gone:
        return
    yield from _starts(state, terms)
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    if leader is not None and leader.start is not None and not leader.is_dark:
        yield from _covered(state, leader, terms)
    yield from _expired(state, leader, terms)
    yield from _copies(state, terms)
    yield from _unread(state)
    yield from _tables(state, terms)
    yield from _brokers_differ(state, terms)


# --- replicas' starts


def _starts(state: LogState, terms: Terms) -> Iterator[Condition]:
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    for broker_id, replica in sorted(state.replicas.items()):
        if replica.start is None or replica.is_dark:
            continue
        yield from _above_watermark(state, replica, terms)
        if leader is None or leader.start is None or broker_id == state.leader_id:
            continue
        yield from _beside_leader(state, replica, leader, terms)


def _above_watermark(state: LogState, replica: Replica, terms: Terms) -> Iterator[Condition]:
    start = replica.start or 0
    read_for_ms = replica.start_read_ms - replica.start_since_ms
    is_confirmed = read_for_ms >= terms.start_checkpoint_ms
    if state.watermark is not None and start > state.watermark and is_confirmed:
        yield Condition(
            rule_id="START-03",
            subject=f"replica {replica.broker_id}",
            anchor=str(start),
            severity="C",
            grace_ms=0,
            ranges=span(state.watermark, start),
            note=f"broker {replica.broker_id} starts at {start}; {state.watermark} is the highest watermark",
        )


def _beside_leader(state: LogState, replica: Replica, leader: Replica, terms: Terms) -> Iterator[Condition]:
    """START-04, above and below. A replica that has not been in sync yet is still on its way."""
    start, leader_start = replica.start or 0, leader.start or 0
    since_ms = max(replica.start_since_ms, leader.start_since_ms, state.leadership_ms)
    is_in_sync = state.in_sync is None or replica.broker_id in state.in_sync
    if not replica.has_been_in_sync:
        return
    if start > leader_start:
        passed = span(leader_start, start)
        uncovered = passed if state.is_kip405 else meet(passed, in_doubt(replica))
        if uncovered:
            yield Condition(
                rule_id="START-04",
                subject=f"replica {replica.broker_id}",
                anchor="above",
                severity="C" if is_in_sync else "E",
                grace_ms=terms.retention_ms,
                ranges=uncovered,
                grows=True,
                since_ms=since_ms,
                note=f"broker {replica.broker_id} starts at {start}, the leader at {leader_start}",
            )
    elif start < leader_start and is_in_sync:
        yield Condition(
            rule_id="START-04",
            subject=f"replica {replica.broker_id}",
            anchor="below",
            severity="E",
            grace_ms=terms.retention_ms,
            ranges=span(start, leader_start),
            since_ms=since_ms,
            note=f"broker {replica.broker_id} starts at {start}, the leader at {leader_start}",
        )


# --- what is there


def _covered(state: LogState, leader: Replica, terms: Terms) -> Iterator[Condition]:
    """SEG-02 and START-06: from the log's start to its watermark, in the leader's view."""
    if state.watermark is None or leader.local_start is None:
        return
    mode = authority.deployment(state)
    start = leader.start or 0
    if mode == "ours":
        start = min([start, *(each.base for each in coverage.finished(state))])
    there = join(coverage.readable(state, leader, has_tier=mode != "none"), state.accepted)
    # A tier is told of little by little when a log is seen for the first time.
    not_before_ms = (state.born_ms or 0) + terms.retention_ms
    for hole in cut(span(start, state.watermark), there):
        is_head = hole[0] == start and mode != "ours"
        yield Condition(
            rule_id="START-06" if is_head else "SEG-02",
            subject="log",
            anchor=str(hole[0]),
            severity="C",
            grace_ms=terms.settle_ms,
            ranges=(hole,),
            not_before_ms=not_before_ms,
            note=_where_else(state, (hole,), leader),
        )


def _where_else(state: LogState, hole: Spans, leader: Replica) -> str:
    tier, brokers = coverage.recoverable(state, hole)
    told = f"broker {leader.broker_id}, which leads, can read it nowhere; in the tier {count(tier)} offsets"
    return told + (f", on brokers {', '.join(map(str, brokers))}" if brokers else ", on no other disk")


# --- what should have gone


def _expired(state: LogState, leader: Replica | None, terms: Terms) -> Iterator[Condition]:
    if _lies_ahead(state, leader):
        for base, end, newest_ms, told_ms in _segments(state, leader):
            yield from _never_expires(state, base, end, newest_ms, told_ms)
    head = _head(state, leader)
    if head is None or state.was_compacted:
        return
    base, end, newest_ms = head
    limits = [keeps.ms for keeps in [authority.authorised_now(state, TOTAL)] if keeps is not None]
    effective = authority.effective_now(state, "retention.ms")
    mode = authority.deployment(state)
    if effective is not None and mode != "ours":
        limits.append(effective)
    if not limits or UNLIMITED in limits or newest_ms is None or newest_ms < 0:
        return
    grace_ms = terms.retention_ms
    if mode == "ours":
        grace_ms += authority.policy_now(state).delete_grace_ms
    is_held = any(each.released_at is None for each in state.holds.values())
    since_ms = max(newest_ms + max(limits), state.keep_until_ms or 0)
    yield Condition(
        rule_id="RET-05",
        subject="log",
        anchor=str(base),
        severity="W",
        grace_ms=grace_ms,
        ranges=span(base, end),
        since_ms=NEVER_MS if is_held else since_ms,
        is_in_turn=True,
        note="it has expired, and is still there",
    )


def _head(state: LogState, leader: Replica | None) -> tuple[int, int, int | None] | None:
    """The first segment of the log, where it is known: what is behind it waits for it."""
    mode = authority.deployment(state)
    copies = sorted(coverage.finished(state), key=lambda each: (each.base, each.end, each.segment_id))
    if mode == "ours":
        may_go = authority.policy_now(state).remote_deletion
        return _span_of(copies[0]) if copies and may_go else None
    if mode == "kip405" and copies:
        return _span_of(copies[0])
    if leader is None or leader.local_start is None or leader.local_start not in leader.segments:
        return None
    first = leader.segments[leader.local_start]
    return first.base, first.end, first.max_timestamp_ms


def _span_of(copy: Copy) -> tuple[int, int, int | None]:
    return copy.base, copy.end, copy.max_timestamp_ms


def _lies_ahead(state: LogState, leader: Replica | None) -> bool:
    """Whether there is anything to look at: it is asked after each event, of all that lies there."""
    held = leader.segments.values() if leader is not None else ()
    return any(
        each.max_timestamp_ms is not None and each.max_timestamp_ms > each.told_ms + DAY_MS for each in held
    ) or any(
        each.max_timestamp_ms is not None and each.max_timestamp_ms > each.started_ms + DAY_MS
        for each in state.tier.values()
    )


def _segments(state: LogState, leader: Replica | None) -> Iterator[tuple[int, int, int | None, int]]:
    known: dict[int, tuple[int, int, int | None, int]] = {}
    for copy in coverage.finished(state):
        lies = (copy.base, copy.end, copy.max_timestamp_ms, copy.started_ms)
        known[copy.base] = max(known.get(copy.base, lies), lies, key=_ahead)
    if leader is not None:
        for each in leader.segments.values():
            known.setdefault(each.base, (each.base, each.end, each.max_timestamp_ms, each.told_ms))
    yield from (known[base] for base in sorted(known))


def _ahead(lies: tuple[int, int, int | None, int]) -> int:
    """Of several copies that begin at one offset, the one whose newest record is furthest ahead counts."""
    _, _, newest_ms, told_ms = lies
    return -told_ms if newest_ms is None else newest_ms - told_ms


def _never_expires(
    state: LogState, base: int, end: int, newest_ms: int | None, told_ms: int
) -> Iterator[Condition]:
    if newest_ms is None or newest_ms <= told_ms + DAY_MS:
        return
    keeps = authority.authorised_now(state, TOTAL)
    if keeps is None or keeps.ms == UNLIMITED or newest_ms - told_ms <= keeps.ms:
        return
    yield Condition(
        rule_id="RET-06",
        subject="log",
        anchor=str(base),
        severity="W",
        grace_ms=0,
        ranges=span(base, end),
        note=f"a timestamp lies {newest_ms - told_ms} ms ahead: with it, this and all behind it stays",
    )


# --- the tier


def _copies(state: LogState, terms: Terms) -> Iterator[Condition]:
    live = sorted(coverage.finished(state), key=lambda each: (each.base, each.end, each.segment_id))
    for copy in state.tier.values():
        yield from _malformed(copy)
        if copy.state == coverage.STARTED and not copy.is_failed:
            yield _of_copy(
                copy,
                "SEG-11",
                "W",
                since_ms=copy.started_ms + terms.copy_deadline_ms,
                note="a copy was started, and has neither ended nor been given up",
            )
    for copy in live:
        if any(read_ms - since_ms >= terms.object_grace_ms for since_ms, read_ms in copy.missing.values()):
            yield _of_copy(copy, "SEG-06", "C", note="two readings found no object of a finished copy")
        if copy.corrupt:
            yield _of_copy(copy, "SEG-08", "C", note="its object is not what was committed")
    yield from _overlaps(live, terms)
    for key, (since_ms, read_ms) in sorted(state.unknown_keys.items()):
        if read_ms - since_ms >= terms.object_grace_ms:
            yield Condition(
                rule_id="SEG-07",
                subject="log",
                anchor=key,
                severity="W",
                grace_ms=0,
                note="an object is there that the metadata does not know",
            )


def _unread(state: LogState) -> Iterator[Condition]:
    """AUD-05, of scrubs: one for the log, for as long as any copy waits longer than the policy says."""
    waits = scrubs.due(state)
    if waits is not None:
        yield Condition(
            rule_id="AUD-05",
            subject="log",
            anchor="scrub",
            severity="W",
            grace_ms=0,
            ranges=span(waits.copy.base, waits.copy.end),
            since_ms=waits.since_ms,
            note=f"no copy is to be unread for {write_time(waits.interval_ms)}, and this one is",
        )


def _of_copy(copy: Copy, rule_id: str, severity: str, *, note: str, since_ms: int | None = None) -> Condition:
    return Condition(
        rule_id=rule_id,
        subject="log",
        anchor=copy.segment_id,
        severity=severity,
        grace_ms=0,
        ranges=span(copy.base, copy.end),
        since_ms=since_ms,
        note=note,
    )


def _overlaps(live: list[Copy], terms: Terms) -> Iterator[Condition]:
    for at, copy in enumerate(live):
        for other in live[at + 1 :]:
            if other.base >= copy.end:
                break
            if other.leader_epoch == copy.leader_epoch and copy.leader_epoch >= 0:
                yield _overlap(copy, other, terms)


def _overlap(copy: Copy, other: Copy, terms: Terms) -> Condition:
    return Condition(
        rule_id="SEG-03",
        subject="log",
        anchor=str(other.base),
        severity="W",
        grace_ms=terms.settle_ms,
        ranges=span(other.base, min(copy.end, other.end)),
        note=f"copies {copy.segment_id} and {other.segment_id} of epoch {copy.leader_epoch} both claim it",
    )


def _malformed(copy: Copy) -> Iterator[Condition]:
    wrong = untrue(copy)
    if wrong is not None and not copy.state.startswith("DELETE"):
        yield _of_copy(copy, "SEG-04", "E", note=f"its record cannot be true: {wrong}")


def _tables(state: LogState, terms: Terms) -> Iterator[Condition]:
    for broker_id, offset in sorted(state.odd_tables.items()):
        leads = broker_id == state.leader_id
        yield Condition(
            rule_id="META-01",
            subject=f"replica {broker_id}",
            anchor="table",
            severity="C" if leads else "E",
            grace_ms=0,
            ranges=_lacked(state, broker_id),
            note=f"broker {broker_id}'s table disagrees at offset {offset}"
            + (", and it leads" if leads else ""),
        )


def _lacked(state: LogState, broker_id: int) -> Spans:
    ids = state.lacking.get(broker_id, ())
    return join(
        NONE, *(span(state.tier[each].base, state.tier[each].end) for each in ids if each in state.tier)
    )


def _brokers_differ(state: LogState, terms: Terms) -> Iterator[Condition]:
    """RET-03 too: two brokers that would delete one log differently."""
    for key in ("retention.ms", "retention.bytes"):
        defaults = authority.defaults_now(state, key)
        if len(set(defaults.values())) > 1:
            told = ", ".join(f"broker {each}: {value}" for each, value in sorted(defaults.items()))
            yield Condition(
                rule_id="RET-03",
                subject="topic",
                anchor=f"{key}@brokers",
                severity="E",
                grace_ms=terms.settle_ms,
                note=f"brokers would delete one log differently: {key} {told}",
            )
