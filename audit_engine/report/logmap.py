"""What a picture of a log shows, from its carried state: who holds which offsets, and what went.

    lane        the tier, or a broker's disk: pieces of the log that it holds, copies, lacks
    went        what the incident's critical findings condemn
    retention   up to where records had expired rightly, when it happened
    story       what is still known of how it came about, by time

Owns the choice of what is drawn. Refuses to draw what is not known: a disk that nobody watches is shown as
such. Invariant: values only; how it looks is `drawing`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from audit_engine.report.values import Row
from audit_engine.report.words import about, lowered, number, offsets, short, span_of, title
from rules.machine import LogState, authority, coverage
from rules.machine.spans import Spans, count, cut, meet, normal
from rules.machine.state import Copy, Removal, Replica, Segment

STORY_MAX = 14
SHOWN_KEYS = (
    "retention.ms",
    "retention.bytes",
    "local.retention.ms",
    "local.retention.bytes",
    "cleanup.policy",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`sort`: held, copying, deleting, version (of what was deleted), hole."""

    start: int
    end: int
    sort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    name: str
    note: str
    pieces: tuple[Piece, ...]
    is_dark: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """`offset` None: there is no such line, since what is kept is limited by size."""

    words: str
    label: str
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMap:
    """`times`: offsets and the newest timestamp below each, for the second scale."""

    name: str
    low: int
    high: int
    start: int | None
    watermark: int | None
    went: Spans
    recoverable: Spans
    lanes: tuple[Lane, ...]
    retention: Retention | None
    times: tuple[tuple[int, int], ...]

    @property
    def lost(self) -> Spans:
        """Of what went, what no lane and no version has."""
        return cut(self.went, self.recoverable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    at_ms: int
    words: str
    is_finding: bool = False


def log_map(state: LogState, findings: Iterable[Row]) -> LogMap | None:
    """None where no offset of the log is known. `findings`: the incident's about this log."""
    told = list(findings)
    critical = [each for each in told if each["severity"] == "C" and each["ranges"]]
    went = normal((start, end) for each in critical or told for start, end in each["ranges"])
    known = [*_known(state), *(edge for each in went for edge in each)]
    if not known:
        return None
    tier, _ = coverage.recoverable(state, went)
    on_disks = normal(
        each
        for replica in state.replicas.values()
        if not replica.is_dark and not state.is_gone
        for each in meet(went, coverage.local(state, replica))
    )
    segments = _segments(state)
    low, high = min(known), max(known)
    return LogMap(
        name=f"{state.topic}-{state.log.partition}",
        low=low,
        high=high,
        start=state.start,
        watermark=state.watermark,
        went=went,
        recoverable=normal([*tier, *on_disks]),
        lanes=tuple(_lanes(state)),
        retention=_retention(state, segments, _moment(state, told), low),
        times=tuple(sorted((each.end, each.max_timestamp_ms) for each in segments if each.max_timestamp_ms)),
    )


def story(state: LogState, findings: Sequence[Row]) -> tuple[list[Happening], int]:
    """The newest STORY_MAX, oldest first, and how many came before them."""
    every = sorted(_happenings(state, findings), key=lambda each: (each.at_ms, each.is_finding, each.words))
    return every[-STORY_MAX:], max(0, len(every) - STORY_MAX)


def _moment(state: LogState, findings: Sequence[Row]) -> int:
    """When the first of it had happened: what expired between then and its finding is no excuse."""
    named = {(each["rule_id"], each["anchor"]) for each in findings}
    happened = [each.happened[1] for each in state.findings.values() if (each.rule_id, each.anchor) in named]
    return min(happened, default=state.clock_ms)


def _known(state: LogState) -> Iterator[int]:
    if state.start is not None:
        yield state.start
    if state.watermark is not None:
        yield state.watermark
    for copy in state.tier.values():
        yield from (copy.base, copy.end)
    for replica in state.replicas.values():
        yield from (each for each in (replica.start, replica.local_start) if each is not None)


def _lanes(state: LogState) -> Iterator[Lane]:
    if state.tier or state.buried:
        yield _tier_lane(state)
    brokers = sorted(state.replicas.items(), key=lambda one: (one[0] != state.leader_id, one[0]))
    for broker_id, replica in brokers:
        yield _broker_lane(state, broker_id, replica)


def _tier_lane(state: LogState) -> Lane:
    sorts = {"COPY_STARTED": "copying", "COPY_FINISHED": "held", "DELETE_STARTED": "deleting"}
    pieces = [
        Piece(start=each.base, end=each.end, sort="hole" if _is_bad(each) else sorts[each.state])
        for each in state.tier.values()
        if each.state in sorts and each.end > each.base
    ]
    pieces += [
        Piece(start=each.base, end=each.end, sort="version")
        for each in state.buried.values()
        if each.end > each.base
    ]
    held = count(coverage.tiered(state))
    return Lane(name="Tier", note=f"{number(held)} offsets", pieces=tuple(_ordered(pieces)))


def _is_bad(copy: Copy) -> bool:
    return bool(copy.corrupt or copy.missing)


def _broker_lane(state: LogState, broker_id: int, replica: Replica) -> Lane:
    leads = broker_id == state.leader_id
    name = f"Broker {broker_id}" + (", leads" if leads else "")
    if replica.is_dark:
        return Lane(name=name, note="not seen", pieces=(), is_dark=True)
    if state.is_gone:
        return Lane(name=name, note="deleted", pieces=())
    held = coverage.local(state, replica)
    edges = {edge for each in replica.segments.values() for edge in (each.base, each.end)}
    pieces = [Piece(start=start, end=end, sort="held") for start, end in _cut_at(held, edges)]
    pieces += [Piece(start=start, end=end, sort="hole") for start, end in replica.holes]
    note = f"from {number(replica.start)}" if replica.start is not None else "start not known"
    return Lane(name=name, note=note, pieces=tuple(_ordered(pieces)))


def _cut_at(spans: Spans, edges: Iterable[int]) -> Iterator[tuple[int, int]]:
    cuts = sorted(set(edges))
    for start, end in spans:
        at = start
        for edge in cuts:
            if at < edge < end:
                yield at, edge
                at = edge
        yield at, end


def _ordered(pieces: Iterable[Piece]) -> list[Piece]:
    return sorted(pieces, key=lambda each: (each.start, each.end, each.sort))


def _segments(state: LogState) -> list[Segment]:
    """Every one of which a newest timestamp is known, wherever it lies or lay."""
    found = [each for replica in state.replicas.values() for each in replica.segments.values()]
    found += [piece for rise in state.rises for one in rise.advances for piece in one.pieces]
    gone: Iterable[Copy | Removal] = (*state.tier.values(), *state.removals)
    found += [
        Segment(
            base=each.base, end=each.end, size_bytes=each.size_bytes, max_timestamp_ms=each.max_timestamp_ms
        )
        for each in gone
    ]
    by_range = {(each.base, each.end): each for each in found if each.max_timestamp_ms is not None}
    return [by_range[key] for key in sorted(by_range)]


def _retention(state: LogState, segments: Sequence[Segment], at_ms: int, low: int) -> Retention | None:
    """Of the policy in force that keeps least: what even that one keeps must not have gone."""
    every = [keeps for _, keeps in authority.authorised(state, authority.TOTAL, at_ms, at_ms)]
    kept_ms = authority.least(each.ms for each in every)
    if kept_ms is None:
        return None
    if kept_ms == authority.UNLIMITED:
        return _without_time(authority.least(each.bytes for each in every), low)
    keeps = authority.Keeps(ms=kept_ms, bytes=authority.UNLIMITED)
    reached = low
    for each in segments:
        if each.max_timestamp_ms is None or not keeps.expires(each.max_timestamp_ms, at_ms):
            break
        reached = max(each.end, reached)
    kept = span_of(kept_ms)
    if reached == low:
        words = f"Nothing known of it was older than the {kept} it was to be kept."
        return Retention(words=words, label="retention reached nothing", offset=low)
    words = f"Below {number(reached)} it was older than the {kept} it was to be kept."
    return Retention(words=words, label=f"retention reached {short(reached)}", offset=reached)


def _without_time(kept_bytes: int | None, low: int) -> Retention:
    if kept_bytes in (None, authority.UNLIMITED):
        return Retention(words="All of it was to be kept for ever.", label="kept for ever", offset=low)
    words = f"What was to be kept is limited by size, {number(kept_bytes or 0)} bytes, not by time."
    return Retention(words=words, label="", offset=None)


def _happenings(state: LogState, findings: Sequence[Row]) -> Iterator[Happening]:
    for name, timeline in sorted(state.config.items()):
        key = name.rpartition("|")[2]
        for before, after in pairwise(timeline):
            if key in SHOWN_KEYS and before.value != after.value:
                whose = "" if after.is_own else " (a broker's default)"
                words = (
                    f"{key} went from {_setting(key, before.value)} to {_setting(key, after.value)}{whose}"
                )
                yield Happening(at_ms=after.at_ms, words=words)
    for rise in state.rises:
        words = f"the log's start rose from {number(rise.start)} to {number(rise.end)}"
        yield Happening(at_ms=rise.at_ms, words=f"{words}, led by broker {rise.broker_id}")
    for broker_id, replica in sorted(state.replicas.items()):
        for advance in replica.advances:
            words = f"broker {broker_id}'s start went from {number(advance.start)} to {number(advance.end)}"
            yield Happening(at_ms=advance.at_ms, words=words)
    yield from _removals(state)
    for at_ms, start, end in state.restores:
        yield Happening(at_ms=at_ms, words=f"{offsets(start, end)} was restored")
    if state.deleted_ms is not None:
        yield Happening(at_ms=state.deleted_ms[1], words="the topic was deleted")
    by_rule: dict[tuple[str, str], list[Row]] = {}
    for each in findings:
        by_rule.setdefault((each["rule_id"], each["severity"]), []).append(each)
    for (rule_id, _), told in by_rule.items():
        times = "" if len(told) == 1 else f" ({len(told)} times)"
        opened = min(each["opened_ms"] for each in told)
        yield Happening(at_ms=opened, words=f"{rule_id}: {lowered(title(rule_id))}{times}", is_finding=True)


def _removals(state: LogState) -> Iterator[Happening]:
    """Those of one place that went close to each other are one."""
    groups: dict[tuple[str, int, int], list[tuple[int, int, int]]] = {}
    for each in state.removals:
        place = (each.where, each.broker_id if each.where == "local" else -1, each.at_ms // 3_600_000)
        groups.setdefault(place, []).append((each.at_ms, each.base, each.end))
    for (where, broker_id, _), gone in groups.items():
        whence = "the tier" if where == "tier" else f"broker {broker_id}'s disk"
        spans = normal((base, end) for _, base, end in gone)
        told = ", ".join(offsets(start, end) for start, end in spans[:3])
        told += " and more" if len(spans) > 3 else ""
        many = "a segment" if len(gone) == 1 else f"{len(gone)} segments"
        yield Happening(at_ms=max(at for at, _, _ in gone), words=f"{many} went from {whence}: {told}")


def _setting(key: str, value: str | None) -> str:
    if value is None:
        return "unset"
    if value == str(authority.UNLIMITED):
        return "unlimited"
    if key.endswith(".bytes") and value.isdecimal():
        return f"{number(int(value))} bytes"
    if key.endswith(".ms") and value.isdecimal():
        exact = span_of(int(value))
        return exact if not exact.endswith(" ms") else f"{number(int(value))} ms (about {about(int(value))})"
    return value
