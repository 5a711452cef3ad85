"""The second judge, of what tiering says: by the English of RULES.md and docs/rules, sharing no code.

It has the whole history before it and asks of every rule anew, from the beginning, whether it is broken at a
moment: by going through all that was said up to there. `ever` is what was so at any moment, `at_the_end` what
is so at the last. Copies are told apart by their ids, replicas by their brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rules.events import (
    CopyFailed,
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    HighWatermark,
    HoldPlaced,
    HoldReleased,
    Inventory,
    LeaderChanged,
    LogBaseline,
    LogStartAdvanced,
    ReplicaStarted,
    Restored,
    Scrubbed,
    TierSet,
    TierState,
)

HAPPENED = ("SEG-01", "SEG-05", "SEG-10", "OPS-03", "META-02", "HLD-01", "HWM-01", "RST-01")
STATES = ("SEG-04", "SEG-06", "SEG-07", "SEG-08", "SEG-11", "META-01", "START-03", "RET-06", "AUD-05")
JUDGED = (*HAPPENED, *STATES)

MINUTE_MS = 60_000
APART_MS = 10 * MINUTE_MS  # two readings of the store
DEADLINE_MS = 60 * MINUTE_MS  # of a copy
CHECKPOINT_MS = MINUTE_MS  # between two readings of a start
WATERMARK_MS = 2 * (5_000 + 10_000) + 5_000  # "twice a checkpoint and a look, and the clocks' tolerance"
DAY_MS = 86_400_000
READ_EVERY_MS = 70 * MINUTE_MS  # as the histories' policy says
KEPT_MS = 7 * DAY_MS
STEPS = {
    CopyStarted: "started",
    CopyFinished: "finished",
    DeleteStarted: "deleting",
    DeleteFinished: "deleted",
}
# "Started, finished, being deleted, deleted; a started copy may be cleaned up; every step may be told again."
AFTER = {
    "started": ("started", "finished", "deleting"),
    "finished": ("finished", "deleting"),
    "deleting": ("deleting", "deleted"),
    "deleted": ("deleted",),
}
NAME = re.compile(r"/\d+-(.+)\.\w+$")


class TierJudge:
    """Of one log in our tier, whose events came in the order in which they happened."""

    def __init__(self, told: Iterable[Any], as_of_ms: int) -> None:
        unique = {(each.speaker, each.seq): each for each in told}
        line = sorted(unique.values(), key=lambda each: (each.observed_at_ms, each.speaker, each.seq))
        self.events = [each.event for each in line]
        self.brokers = [each.speaker.broker_id for each in line]  # beside which each was said
        self.as_of_ms = as_of_ms

    def judge(self) -> tuple[dict[str, set[Any]], dict[str, set[Any]]]:
        """What was ever so, and what is so at the end."""
        ever: dict[str, set[Any]] = {rule_id: set() for rule_id in JUDGED}
        for rule_id in HAPPENED:
            ever[rule_id] = set(getattr(self, _name(rule_id))())
        last: dict[str, set[Any]] = {rule_id: set() for rule_id in STATES}
        for count in range(1, len(self.events) + 1):
            past = self.events[:count]
            until_ms = self.events[count].occurred_at_ms if count < len(self.events) else self.as_of_ms
            for rule_id in STATES:
                last[rule_id] = set(getattr(self, _name(rule_id))(past, until_ms))
                ever[rule_id] |= last[rule_id]
        return ever, last

    # --- what a copy is, after some events

    def _of(self, segment_id: str, past: list[Any]) -> list[Any]:
        """Its steps in its newest generation."""
        steps = [e for e in past if type(e) in STEPS and e.segment_id == segment_id]
        known = next((at for at, e in enumerate(steps) if isinstance(e, (CopyStarted, CopyFinished))), None)
        if known is None:
            return []
        newest = max(e.generation for e in steps)
        return [e for e in steps[known:] if e.generation == newest]

    def _known(self, past: list[Any]) -> list[str]:
        return sorted({e.segment_id for e in past if isinstance(e, (CopyStarted, CopyFinished))})

    def _state(self, segment_id: str, past: list[Any]) -> str | None:
        """What is refused changes nothing."""
        now = None
        for event in self._of(segment_id, past):
            step = STEPS[type(event)]
            now = step if now is None or step in AFTER[now] else now
        return now

    def _finished(self, past: list[Any]) -> list[str]:
        return [each for each in self._known(past) if self._state(each, past) == "finished"]

    # --- what happened

    def seg_01(self) -> Iterator[str]:
        for at, event in enumerate(self.events):
            if type(event) not in STEPS:
                continue
            before = self._state(event.segment_id, self.events[:at])
            newest = max((e.generation for e in self._of(event.segment_id, self.events[:at])), default=-1)
            if before is None or event.generation != newest:
                continue
            if STEPS[type(event)] not in AFTER[before]:
                yield event.segment_id

    def seg_05(self) -> Iterator[str]:
        for at, event in enumerate(self.events):
            if isinstance(event, DeleteStarted) and event.segment_id not in self._known(self.events[:at]):
                yield event.segment_id

    def seg_10(self) -> Iterator[str]:
        """Once the leader must have written down another watermark, it is still below the copy's end, and
        nobody said one in between that reaches it."""
        for at, copy in enumerate(self.events):
            if not isinstance(copy, CopyStarted) or self._of(copy.segment_id, self.events[:at]):
                continue
            for then, event in enumerate(self.events):
                if max(_published(self.events[:then]), default=-1) >= copy.end_offset:
                    break
                is_leaders = isinstance(event, HighWatermark) and event.broker_id == self._leader(then)
                is_later = event.occurred_at_ms - copy.occurred_at_ms >= WATERMARK_MS
                if then > at and is_leaders and is_later and event.high_watermark < copy.end_offset:
                    yield copy.segment_id
                    break

    def _leader(self, at: int) -> int | None:
        return next((e.leader_id for e in reversed(self.events[:at]) if isinstance(e, LeaderChanged)), None)

    def ops_03(self) -> Iterator[str]:
        """By a listing: under a marker for certain; without any version, if it was gone before, too."""
        for at, event in enumerate(self.events):
            if not isinstance(event, Inventory):
                continue
            past = self.events[:at]
            for key in (*event.missing_keys, *event.deleted_keys):
                segment_id = _segment(key)
                if segment_id not in self._finished(past):
                    continue
                since_ms = self._missing_since(key, segment_id, past)
                if key in event.deleted_keys or since_ms is not None:
                    yield segment_id

    def meta_02(self) -> Iterator[str]:
        told = [e for e in self.events if isinstance(e, TierSet)]
        for one in told:
            for other in told:
                if one.metadata_offset == other.metadata_offset:
                    theirs = dict(other.members)
                    for key, content in one.members:
                        if theirs.get(key, content) != content:
                            yield key.rpartition(":")[2]

    def hld_01(self) -> Iterator[str]:
        """A finished copy's delete is begun between a hold's record and its release, and meets its range. Of
        a copy that never finished it is the clean-up."""
        placed = [e for e in self.events if isinstance(e, HoldPlaced)]
        released = {e.hold_id: e.metadata_offset for e in self.events if isinstance(e, HoldReleased)}
        for at, event in enumerate(self.events):
            if not isinstance(event, DeleteStarted):
                continue
            if self._state(event.segment_id, self.events[:at]) != "finished":
                continue
            for hold in placed:
                end = 1 << 60 if hold.end_offset is None else hold.end_offset
                meets = event.base_offset < end and hold.start_offset < event.end_offset
                stands = hold.metadata_offset < event.metadata_offset < released.get(hold.hold_id, 1 << 60)
                if meets and stands:
                    yield f"{hold.hold_id}@{max(event.base_offset, hold.start_offset)}"

    def hwm_01(self) -> Iterator[str]:
        """The leader reads below what was published, and at the end of the grace still does."""
        leader, low_since_ms, highest = None, None, -1
        for event in self.events:
            if isinstance(event, LeaderChanged) and event.leader_id != leader:
                leader, low_since_ms = event.leader_id, None
            if isinstance(event, HighWatermark) and event.broker_id == leader:
                if event.high_watermark >= highest:
                    low_since_ms = None
                elif low_since_ms is None:
                    low_since_ms = event.occurred_at_ms
                elif event.occurred_at_ms - low_since_ms >= WATERMARK_MS:
                    yield "log"
            if isinstance(event, (HighWatermark, LogBaseline, ReplicaStarted)):
                highest = max(highest, event.high_watermark or -1)

    def rst_01(self) -> Iterator[str]:
        """Nothing was put back; or another range than planned; or what came again is not what it was."""
        for at, event in enumerate(self.events):
            if isinstance(event, Restored):
                done, planned = (
                    (event.start_offset, event.end_offset),
                    (event.planned_start, event.planned_end),
                )
                if done[0] >= done[1]:
                    yield str(done[0])
                elif None not in planned and planned != done:
                    yield f"plan of {event.restore_id}"
            if isinstance(event, Scrubbed) and event.scrub_outcome.value == "failed":
                is_gone = event.problem in ("missing", "deleted")
                steps = self._of(event.segment_id, self.events[:at])
                is_there = self._state(event.segment_id, self.events[:at]) == "finished"
                if is_there and steps[-1].generation > 0 and not is_gone:
                    yield str(event.base_offset)

    # --- what is so after some events, up to a moment

    def seg_04(self, past: list[Any], until_ms: int) -> Iterator[str]:
        for segment_id in self._known(past):
            said = [
                e for e in past if isinstance(e, (CopyStarted, CopyFinished)) and e.segment_id == segment_id
            ]
            if self._state(segment_id, past) in ("started", "finished") and not _can_be(said):
                yield segment_id

    def seg_06(self, past: list[Any], until_ms: int) -> Iterator[str]:
        for segment_id in self._finished(past):
            keys = {key for e in past for key in _found_missing(e)}
            for key in keys:
                if _segment(key) == segment_id:
                    since_ms = self._missing_since(key, segment_id, past)
                    read_ms = max(e.occurred_at_ms for e in past if key in _found_missing(e))
                    if since_ms is not None and read_ms - since_ms >= APART_MS:
                        yield segment_id

    def _missing_since(self, key: str, segment_id: str, past: list[Any]) -> int | None:
        """Since which reading it was never found; None if the last look at it found it, or nobody looked."""
        since_ms: int | None = None
        generation = -1
        for at, event in enumerate(past):
            if type(event) in STEPS and event.segment_id == segment_id and event.generation > generation:
                generation, since_ms = event.generation, None  # other objects from here on
            if isinstance(event, (Scrubbed, Inventory)) and segment_id in self._finished(past[:at]):
                if key in _found_missing(event):
                    since_ms = event.occurred_at_ms if since_ms is None else since_ms
                elif _found_there(event, key):
                    since_ms = None
        return since_ms

    def seg_07(self, past: list[Any], until_ms: int) -> Iterator[str]:
        listings = [e for e in past if isinstance(e, Inventory)]
        for key in sorted({key for e in listings for key in e.unknown_keys}):
            since_ms = None
            for event in listings:
                if key not in event.unknown_keys:
                    since_ms = None
                elif since_ms is None:
                    since_ms = event.occurred_at_ms
            if since_ms is not None and listings[-1].occurred_at_ms - since_ms >= APART_MS:
                yield key

    def seg_08(self, past: list[Any], until_ms: int) -> Iterator[str]:
        """One of its objects was wrong when it was looked at last, or not looked at as closely since."""
        for segment_id in self._finished(past):
            wrong: dict[str, str] = {}
            for at, event in enumerate(past):
                if not isinstance(event, Scrubbed) or event.segment_id != segment_id:
                    continue
                if segment_id not in self._finished(past[:at]):
                    continue
                depth, key = event.scrub_depth.value, event.object_key
                if event.scrub_outcome.value == "failed" and event.problem not in ("missing", "deleted"):
                    wrong[key] = "deep" if "deep" in (depth, wrong.get(key)) else depth
                elif event.scrub_outcome.value == "verified" and (
                    depth == "deep" or wrong.get(key) == "listed"
                ):
                    wrong.pop(key, None)
            if wrong:
                yield segment_id

    def seg_11(self, past: list[Any], until_ms: int) -> Iterator[str]:
        for segment_id in self._known(past):
            failed = self._failed(segment_id, past)
            if self._state(segment_id, past) == "started" and not failed:
                began_ms = min(e.occurred_at_ms for e in self._of(segment_id, past))
                if until_ms >= began_ms + DEADLINE_MS:
                    yield segment_id

    def aud_05(self, past: list[Any], until_ms: int) -> Iterator[str]:
        """Any copy that counts was read longer ago than the policy says: to its last byte, whatever came of
        it. One that nobody has read yet counts as read when it was made."""
        for segment_id in self._finished(past):
            made = self._of(segment_id, past)[0]
            looks = [made.occurred_at_ms]
            for event in past[next(at for at, each in enumerate(past) if each is made) :]:
                is_it = isinstance(event, Scrubbed) and event.segment_id == segment_id
                if is_it and event.object_key.endswith(".log") and event.scrub_depth.value == "deep":
                    looks += [event.occurred_at_ms] * (event.scrub_outcome.value in ("verified", "failed"))
            since_ms = max(*looks, self._born_ms(past))
            if until_ms - since_ms >= READ_EVERY_MS:
                yield "scrub"

    def _born_ms(self, past: list[Any]) -> int:
        return next((e.occurred_at_ms for e in past if isinstance(e, (ReplicaStarted, LogBaseline))), 0)

    def _failed(self, segment_id: str, past: list[Any]) -> bool:
        """Given up since it was begun."""
        begun = self._of(segment_id, past)[0]
        since = next(at for at, event in enumerate(past) if event is begun)
        return any(isinstance(e, CopyFailed) and e.segment_id == segment_id for e in past[since:])

    def meta_01(self, past: list[Any], until_ms: int) -> Iterator[int]:
        """Whose last word that can be compared differs: from both others', or from its leader's."""
        leader = next((e.leader_id for e in reversed(past) if isinstance(e, LeaderChanged)), None)
        by_offset: dict[int, dict[int, str]] = {}
        verdicts: dict[int, bool] = {}
        for at, event in enumerate(past):
            if not isinstance(event, TierState):
                continue
            said = by_offset.setdefault(event.metadata_offset, {})
            said[self.brokers[at]] = event.digest
            if len(said) < 2:
                continue
            then = next((e.leader_id for e in reversed(past[:at]) if isinstance(e, LeaderChanged)), leader)
            for broker, digest in said.items():
                alike = sum(other == digest for other in said.values())
                is_most = alike * 2 > len(said)
                is_split = all(sum(o == d for o in said.values()) * 2 <= len(said) for d in said.values())
                verdicts[broker] = digest != said.get(then or 0) if is_split else not is_most
        yield from (broker for broker, is_odd in verdicts.items() if is_odd)

    def start_03(self, past: list[Any], until_ms: int) -> Iterator[tuple[int, int]]:
        highest = max(_published(past), default=None)
        for broker in (1, 2, 3):
            readings: list[tuple[int, int]] = []
            for event in past:
                if getattr(event, "broker_id", None) != broker:
                    continue
                start = getattr(event, "new_start", getattr(event, "log_start", None))
                if start is not None and isinstance(event, (LogStartAdvanced, HighWatermark, LogBaseline)):
                    readings = [] if readings and readings[-1][1] != start else readings
                    readings.append((event.occurred_at_ms, start))
            if highest is None or not readings or readings[-1][1] <= highest:
                continue
            if readings[-1][0] - readings[0][0] >= CHECKPOINT_MS:
                yield broker, readings[-1][1]

    def ret_06(self, past: list[Any], until_ms: int) -> Iterator[int]:
        """By the copy's first offset."""
        for segment_id in self._finished(past):
            said = [
                e for e in past if isinstance(e, (CopyStarted, CopyFinished)) and e.segment_id == segment_id
            ]
            ahead_ms = said[-1].max_timestamp_ms - said[0].occurred_at_ms
            if ahead_ms > max(DAY_MS, KEPT_MS):
                yield said[-1].base_offset


def _published(past: list[Any]) -> list[int]:
    """The watermarks that anybody said."""
    kinds = (HighWatermark, LogBaseline, ReplicaStarted, LogStartAdvanced)
    said = [e.high_watermark for e in past if isinstance(e, kinds)]
    return [each for each in said if each is not None]


def _name(rule_id: str) -> str:
    return rule_id.lower().replace("-", "_")


def _segment(key: str) -> str:
    found = NAME.search(key)
    return found[1] if found else key


def _found_missing(event: Any) -> tuple[str, ...]:
    """Which objects this look did not find."""
    if isinstance(event, Inventory):
        return (*event.missing_keys, *event.deleted_keys)
    is_gone = isinstance(event, Scrubbed) and event.scrub_outcome.value == "failed"
    return (event.object_key,) if is_gone and event.problem in ("missing", "deleted") else ()


def _found_there(event: Any, key: str) -> bool:
    if isinstance(event, Inventory):
        return key not in _found_missing(event) and not event.differences_left_out
    return bool(event.object_key == key and event.scrub_outcome.value == "verified")


def _can_be(said: list[Any]) -> bool:
    """The record as it was told last: base below end, data, count and epochs inside, a sane time."""
    last = said[-1]
    epochs = next((e.epochs for e in reversed(said) if e.epochs is not None), ())
    offsets = set(range(last.base_offset, last.end_offset))
    if not offsets or last.max_timestamp_ms < -1:
        return False
    if last.record_count is not None and not 0 <= last.record_count <= len(offsets):
        return False
    if last.data_end is not None and last.data_end - 1 not in offsets | {last.base_offset - 1}:
        return False
    starts = [start for _, start in epochs]
    numbers = [epoch for epoch, _ in epochs]
    rise = numbers == sorted(set(numbers)) and starts == sorted(set(starts))
    inside = all(start in offsets and start > last.base_offset for start in starts[1:])
    first_inside = not starts or starts[0] < last.end_offset
    return rise and inside and first_inside and all(0 <= each <= last.leader_epoch for each in numbers)
