"""The screen: logs that provably hold no violation, excused from the fold (AUDIT_FACTS 8).

A log that the machine left calm (`rules.machine.calm`) is excused from a run if time alone changes nothing
before the run's moment, and if all that was said of it since is readings and closed segments that change
nothing but numbers. It is stated all the same, from what was stated before with these numbers put in; its
state stays the one that it was last folded into, and is folded on from there once the log is not excused.

    each emitter's numbers of the log go on where they ended      each beside the one before it, as judged
    each replica is the life that is known, and stands as before   least and most
    the leader's watermark never falls below what was published    the highest so far, as judged
    a closed segment is whole, of a sane time, no head that goes   least and most

`excuse` is the meaning; `spark` asks the same of all logs at once, natively.

Owns both, and the words of an excused log's statement. Refuses whatever it was not told of. Invariant: what
is excused, the judge passes, with the statement that stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from rules.events import HighWatermark, LogBaseline, SegmentClosed, Source
from rules.machine import Speaker, Told, in_order
from rules.machine.calm import Calm, HeardTo, Life
from rules.machine.terms import DAY_MS
from rules.machine.verdict import Statement, Verdict, canonical

READINGS = (HighWatermark, LogBaseline)
PLAIN = (*READINGS, SegmentClosed)

# In the words of a statement, where a run puts its numbers; no topic's name can hold them.
AS_OF, FROM, EVENTS, WATERMARK = "@as_of@", "@from@", "@events@", "@watermark@"


def words_of(statement: Statement) -> str | None:
    """What is stated, with the places of the numbers that go on; None of what is no PASS."""
    if statement.verdict is not Verdict.PASS:
        return None
    own = {name: getattr(statement, name) for name in statement.__slots__}
    end = f", {statement.high_watermark})"
    claim = statement.claim.replace(end, f", {WATERMARK})", 1)
    places = {"as_of_ms": AS_OF, "from_ms": FROM, "events": EVENTS, "high_watermark": WATERMARK}
    return canonical({**own, **places, "claim": claim})


def put_in(words: str, calm: Calm, *, from_ms: int, as_of_ms: int) -> str:
    """The statement, canonical."""
    numbers = {AS_OF: as_of_ms, FROM: from_ms, EVENTS: calm.events, WATERMARK: calm.watermark}
    for place, number in numbers.items():
        words = words.replace(f'"{place}"', str(number)).replace(place, str(number))
    return words


def excuse(calm: Calm, said: Iterable[Told], *, as_of_ms: int) -> Calm | None:
    """What was said of a calm log up to the run's moment: its calm from there on, or None, to be judged."""
    rows = [each for each in said if each.observed_at_ms <= as_of_ms]
    if as_of_ms >= calm.until_ms or not all(_is_plain(each, calm) for each in rows):
        return None
    heard = _heard(calm, rows)
    watermark = _watermark(calm, rows)
    until_ms = min([calm.until_ms, *_heads(calm, rows)])
    if heard is None or watermark is None or as_of_ms >= until_ms:
        return None
    return replace(
        calm,
        until_ms=until_ms,
        position_ms=max([calm.position_ms, *(each.observed_at_ms for each in rows)]),
        events=calm.events + len(rows),
        watermark=watermark,
        heard=heard,
    )


def calm_in(row: Mapping[str, Any]) -> Calm:
    """As the column of that name has it."""
    return Calm(
        **{
            **row,
            "brokers": tuple(row["brokers"]),
            "lives": tuple(Life(**each) for each in row["lives"]),
            "heard": tuple(HeardTo(**each) for each in row["heard"]),
        }
    )


def _is_plain(told: Told, calm: Calm) -> bool:
    event = told.event
    if not isinstance(event, PLAIN) or event.source is not Source.LOG_DIR or told.log_seq is None:
        return False
    if told.observed_at_ms <= calm.position_ms or event.leader_epoch not in (-1, calm.leader_epoch):
        return False
    life = next((each for each in calm.lives if each.broker_id == event.broker_id), None)
    known = life is not None and (life.directory_id, life.incarnation) == (
        event.directory_id,
        event.replica_incarnation,
    )
    if life is None or not known:
        return False
    if isinstance(event, SegmentClosed):
        return _is_whole(event)
    is_filled = event.size_bytes is None or event.size_bytes > 0
    is_there = event.log_start == life.start and event.high_watermark is not None and is_filled
    local_start = event.local_start if isinstance(event, LogBaseline) else None
    return is_there and local_start in (None, life.local_start)


def _is_whole(event: SegmentClosed) -> bool:
    is_full = event.data_end in (None, event.end_offset)
    is_counted = event.record_count in (None, event.end_offset - event.base_offset)
    is_sane = event.max_timestamp_ms is None or event.max_timestamp_ms <= event.occurred_at_ms + DAY_MS
    return is_full and is_counted and is_sane


def _heard(calm: Calm, rows: list[Told]) -> tuple[HeardTo, ...] | None:
    """Where each emitter's numbers end now; None where they do not go on one by one."""
    numbers: dict[Speaker, list[tuple[int, int]]] = {}
    for each in sorted(rows, key=lambda told: told.order):
        numbers.setdefault(each.speaker, []).append((each.log_seq or 0, each.seq))
    found = []
    for known in calm.heard:
        own = numbers.pop(Speaker(known.broker_id, known.component, known.incarnation), [])
        if [log_seq for log_seq, _ in own] != list(range(known.next_seq, known.next_seq + len(own))):
            return None
        if any(one >= other for (_, one), (_, other) in pairwise(own)):
            return None
        found.append(replace(known, next_seq=known.next_seq + len(own)))
    return None if numbers else tuple(found)


def _watermark(calm: Calm, rows: list[Told]) -> int | None:
    """The highest after all of them; None where the leader's was below what was published before it."""
    highest = calm.watermark
    for each in in_order(rows):
        event = each.event
        if isinstance(event, READINGS) and event.high_watermark is not None:
            if event.broker_id == calm.leader_id and event.high_watermark < highest:
                return None
            highest = max(highest, event.high_watermark)
    return highest


def _heads(calm: Calm, rows: list[Told]) -> Iterable[int]:
    """Until when each of the closed segments could lie at the head."""
    for each in rows:
        event = each.event
        if isinstance(event, SegmentClosed) and calm.keep_ms is not None:
            newest_ms = event.max_timestamp_ms
            if newest_ms is not None and newest_ms >= 0:
                yield newest_ms + calm.keep_ms
