"""Why a finding was made: the events behind it, the arithmetic of its intervals, and what would repair it.

The log's evidence is folded once more, up to the moment at which the finding opened; what the machine knew
then is what is told. Nothing is judged here: a finding that this fold does not come to is said to be so.

    cited     events of the kinds that the rule asks for, about its range, segment or replica, in its interval
    required  what had to be there, or how long it had to be kept
    there     what was, and where
    missing   the difference

Owns the words. Refuses to guess a cause. Invariant: a function of the events, the terms and the moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from rules.catalogue import rule
from rules.events import Event, LogEvent
from rules.machine import authority, coverage
from rules.machine.authority import LOCAL, TOTAL, UNLIMITED
from rules.machine.findings import own_id
from rules.machine.fold import fold, step
from rules.machine.justified import as_piece
from rules.machine.spans import Spans, count, cut, join, meet, normal, span
from rules.machine.state import Found, LogState, Segment, newborn
from rules.machine.terms import Terms
from rules.machine.told import Told, concerns, in_order
from rules.moments import write_moment

CITED_MAX = 50
# What a copy of the bytes makes good; the rest is for a person, as `remedy` says.
RESTORABLE = frozenset(
    {
        "START-02",
        "START-06",
        "RET-01",
        "RET-02",
        "SEG-02",
        "SEG-06",
        "SEG-08",
        "SEG-09",
        "DEL-01",
        "OPS-01",
        "OPS-03",
        "HWM-01",
        "HWM-02",
    }
)
# Facts in force, not acts: of these the last before the interval counts, too.
_IN_FORCE = ("config_effective", "policy_declared", "operation_authorised")
_ENDS = (("base_offset", "end_offset"), ("old_start", "new_start"), ("start_offset", "end_offset"))
_LEFT_OUT = frozenset({"event_id", "occurred_at_ms", "log", "topic", "cluster_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """`opened`: with it the finding was opened."""

    event_id: str
    kind: str
    emitter: str
    seq: int
    occurred_at_ms: int
    observed_at_ms: int
    not_before_ms: int | None
    says: str
    opened: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`is_derived`: the fold came to the finding, so that what follows is what it was made of."""

    rule_id: str
    is_derived: bool
    happened: tuple[int, int] | None
    required: tuple[str, ...]
    there: tuple[str, ...]
    missing: tuple[str, ...]
    cited: tuple[Cited, ...]
    cited_left_out: int


def explain(
    rule_id: str, finding_id: str, said: Iterable[Told], start: LogState, terms: Terms, as_of_ms: int
) -> Explanation:
    """`start` is the log's newborn state, `said` all that concerns it."""
    line = [each for each in in_order(said) if each.observed_at_ms <= as_of_ms]
    last = fold(start, line, terms, as_of_ms=as_of_ms)
    key = _key(last, finding_id)
    if key is None:
        return underived(rule_id)
    found = last.findings[key]
    since_ms = found.happened[0] - terms.settle_ms
    known = [each for each in line if each.observed_at_ms < since_ms]
    then = fold(start, known, terms) if known else newborn(start.log, start.topic)
    opener: Told | None = None
    for told in line[len(known) :]:
        after, _ = step(then, told, terms)
        if key in after.findings:
            opener, then = told, after
            break
        then = after
    if opener is None:  # time alone opened it
        then = last
    cited = list(_cited(rule_id, found, line, opener, then))
    return Explanation(
        rule_id=rule_id,
        is_derived=True,
        happened=found.happened,
        required=tuple(_required(then, found)),
        there=tuple(_there(then, found)),
        missing=tuple(_missing(then, found)),
        cited=tuple(cited[-CITED_MAX:]),
        cited_left_out=max(0, len(cited) - CITED_MAX),
    )


def restore_command(rule_id: str, finding_id: str, recoverable: int, status: str) -> str | None:
    """What would repair it, as text; None where no copy of bytes does."""
    if rule_id not in RESTORABLE or status != "open" or not recoverable:
        return None
    return f"seawall backup plan --finding {finding_id}"


def underived(rule_id: str) -> Explanation:
    return Explanation(
        rule_id=rule_id,
        is_derived=False,
        happened=None,
        required=(),
        there=(),
        missing=(),
        cited=(),
        cited_left_out=0,
    )


def _key(state: LogState, finding_id: str) -> str | None:
    return next((key for key, each in state.findings.items() if own_id(state, each) == finding_id), None)


# --- what was said


def _cited(
    rule_id: str, found: Found, line: Sequence[Told], opener: Told | None, then: LogState
) -> Iterator[Cited]:
    kinds = set(rule(rule_id).evidence)
    from_ms, to_ms = found.happened
    for told in line:
        event = told.event
        if event is None or event.kind not in kinds or not concerns(event, then.log, then.topic):
            continue
        since_ms = getattr(event, "not_before_ms", None)
        is_within = (event.occurred_at_ms if since_ms is None else since_ms) <= to_ms and (
            event.occurred_at_ms >= from_ms
        )
        is_in_force = event.kind in _IN_FORCE and event.occurred_at_ms <= to_ms
        if told is opener or ((is_within or is_in_force) and _touches(event, found, then)):
            yield _cite(told, event, is_opener=told is opener)


def _touches(event: Event, found: Found, then: LogState) -> bool:
    """About the finding's segment, replica and range, as far as it names them."""
    if not isinstance(event, LogEvent):
        return True
    if getattr(event, "segment_id", found.anchor) != found.anchor and found.anchor in then.tier:
        return False
    subject, _, broker_id = found.subject.partition(" ")
    if subject == "replica" and str(getattr(event, "broker_id", broker_id)) != broker_id:
        return False
    for low, high in _ENDS:
        start, end = getattr(event, low, None), getattr(event, high, None)
        if start is not None and end is not None and found.ranges:
            return bool(meet(found.ranges, span(min(start, end), max(start, end))))
    return True


def _cite(told: Told, event: Event, *, is_opener: bool) -> Cited:
    says = (
        f"{each.name}={_plain(getattr(event, each.name))}"
        for each in fields(event)
        if each.name not in _LEFT_OUT and getattr(event, each.name) not in (None, ())
    )
    return Cited(
        event_id=event.event_id,
        kind=event.kind,
        emitter=str(told.speaker),
        seq=told.seq,
        occurred_at_ms=event.occurred_at_ms,
        observed_at_ms=told.observed_at_ms,
        not_before_ms=getattr(event, "not_before_ms", None),
        says=", ".join(says),
        opened=is_opener,
    )


def _plain(value: Any) -> str:
    return str(value.value) if isinstance(value, Enum) else str(value)


# --- the arithmetic


def _required(state: LogState, found: Found) -> Iterator[str]:
    from_ms, to_ms = found.happened
    mode = authority.deployment(state)
    for sort in (TOTAL, LOCAL) if mode == "ours" else (TOTAL,):
        for offset, keeps in authority.authorised(state, sort, from_ms, to_ms):
            by = "as at first sight" if offset < 0 else f"policy, offset {offset}"
            yield f"authorised {sort} retention: {_time(keeps.ms)}, {_bytes(keeps.bytes)} ({by})"
    for key in ("retention.ms", "retention.bytes"):
        values = authority.effective(state, key, from_ms, to_ms)
        if values:
            told = ", ".join(_time(each) if key.endswith("ms") else _bytes(each) for each in values)
            yield f"effective {key}: {told}"
    if found.ranges:
        yield f"{_spans(found.ranges)} had to be readable: {count(found.ranges)} offsets"
    if state.start is not None and state.watermark is not None:
        yield f"the log as its leaders had it: [{state.start}, {state.watermark})"


def _there(state: LogState, found: Found) -> Iterator[str]:
    for piece in _pieces(state, found):
        yield _of_piece(piece, found.happened[1])
    if not found.ranges:
        return
    yield f"in the tier: {_spans(meet(coverage.tiered(state), found.ranges))}"
    for broker_id, replica in sorted(state.replicas.items()):
        leads = ", which leads" if broker_id == state.leader_id else ""
        held = meet(coverage.local(state, replica), found.ranges)
        yield f"on the disk of broker {broker_id}{leads}: {_spans(held)}, start {replica.start}"


def _missing(state: LogState, found: Found) -> Iterator[str]:
    if not found.ranges:
        yield found.note
        return
    leader = state.replicas.get(state.leader_id) if state.leader_id is not None else None
    local = coverage.local(state, leader) if leader is not None else ()
    there = join(coverage.tiered(state), local)
    gone = cut(found.ranges, there)
    yield (
        f"{_spans(found.ranges)} less {_spans(meet(there, found.ranges))} in the tier or on the leader's"
        f" disk leaves {_spans(gone)}: {count(gone)} offsets"
    )
    kept, brokers = coverage.recoverable(state, found.ranges)
    names = ", ".join(map(str, brokers)) or "none"
    yield f"to be had back: {_spans(kept)} from the tier or kept versions; whole on disks of: {names}"


def _pieces(state: LogState, found: Found) -> list[Segment]:
    """The segments that lay there, each once."""
    lying: dict[tuple[int, int], Segment] = {}
    for rise in state.rises:
        for advance in rise.advances:
            lying |= {(each.base, each.end): each for each in advance.pieces}
    for replica in state.replicas.values():
        for advance in replica.advances:
            lying |= {(each.base, each.end): each for each in advance.pieces}
    lying |= {(each.base, each.end): as_piece(each) for each in state.removals}
    return [each for _, each in sorted(lying.items()) if meet(found.ranges, span(each.base, each.end))]


def _of_piece(piece: Segment, at_ms: int) -> str:
    told = f"segment [{piece.base}, {piece.end}), {piece.size_bytes} bytes"
    if piece.max_timestamp_ms is None or piece.max_timestamp_ms < 0:
        return f"{told}: its newest time is not known"
    age_ms = at_ms - piece.max_timestamp_ms
    told += f": newest record of {write_moment(piece.max_timestamp_ms)}, {_time(age_ms)} old when it went"
    if piece.bytes_at_most is not None:
        told += f"; {piece.bytes_at_most - piece.size_bytes} bytes were left without it"
    return told


def _spans(ranges: Spans) -> str:
    return " ".join(f"[{start}, {end})" for start, end in normal(ranges)) or "nothing"


def _time(ms: int) -> str:
    if ms == UNLIMITED:
        return "for ever"
    seconds = max(0, ms) // 1000
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, seconds = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def _bytes(size: int) -> str:
    return "any size" if size == UNLIMITED else f"{size} bytes"
