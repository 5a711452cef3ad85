"""A second judge, from the English of RULES.md, with sets of offsets. It shares no code with the other.

It has the whole history before it, folds nothing, waits for nothing, and looks at every offset one by one. It
is as slow as that sounds. It judges the rules in JUDGED, on complete evidence of small logs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rules.events import (
    ConfigEffective,
    CopyFinished,
    DeleteStarted,
    EpochStarted,
    HighWatermark,
    IsrChanged,
    LeaderChanged,
    LogBaseline,
    LogStartAdvanced,
    OperationAuthorised,
    PolicyDeclared,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
    TopicDeleted,
    Truncated,
)

JUDGED = [
    "START-01",
    "START-02",
    "START-04",
    "START-05",
    "START-06",
    "RET-01",
    "RET-02",
    "RET-03",
    "RET-04",
    "SEG-02",
    "SEG-03",
    "SEG-09",
    "DEL-01",
    "HWM-02",
    "EPO-01",
    "OPS-01",
]
TOLERANCE_MS = 5_000
HOUR_MS = 3_600_000
# "Twice the check interval, the start checkpoint, the delete delay, a task, a look."
RETENTION_GRACE_MS = 2 * (300_000 + 60_000 + 60_000 + 30_000 + 10_000)
SETTLED_MS = 2 * (10_000 + 60_000) + 5_000
FOREVER = 1 << 60


@dataclass
class Moment:
    """Everything as it was at one time."""

    at_ms: int
    leader: int | None = None
    in_sync: tuple[int, ...] = ()
    start: dict[int, int] = field(default_factory=dict)
    disk: dict[int, set[int]] = field(default_factory=dict)
    tier: dict[str, tuple[range, int, int, int]] = field(default_factory=dict)  # offsets, ts, epoch, size
    watermark: int = 0

    def copy(self, at_ms: int) -> Moment:
        return Moment(
            at_ms,
            self.leader,
            self.in_sync,
            dict(self.start),
            {broker: set(held) for broker, held in self.disk.items()},
            dict(self.tier),
            self.watermark,
        )

    @property
    def tiered(self) -> set[int]:
        return {offset for offsets, *_ in self.tier.values() for offset in offsets}


class Judge:
    """`found` is what is true: by rule, what it is true of."""

    def __init__(self, told: Iterable[Any], as_of_ms: int) -> None:
        unique = {(each.speaker, each.seq): each for each in told}
        line = sorted(unique.values(), key=lambda each: (each.observed_at_ms, each.speaker, each.seq))
        self.events = [each.event for each in line]
        self.as_of_ms = as_of_ms
        self.found: dict[str, set[Any]] = {rule_id: set() for rule_id in JUDGED}
        self.unexpired: list[int] = []  # when segments went on request, or for no reason
        self.mode = self._mode()
        self.policies = self._policies()
        self.moments = self._moments()
        self.settings = self._settings()
        self.gone_ms = next((e.occurred_at_ms for e in self.events if isinstance(e, TopicDeleted)), None)

    def judge(self) -> dict[str, set[Any]]:
        self._advances()
        self._starts_of_the_log()
        self._removals()
        self._replicas_beside_the_leader()
        self._coverage()
        self._overlaps()
        self._watermarks()
        self._deviations()
        self._topic()
        return self.found

    # --- what is known

    def _mode(self) -> str:
        for event in self.events:
            if isinstance(event, ConfigEffective) and event.key == "remote.storage.enable":
                return "kip405"
        tiering = any(isinstance(e, PolicyDeclared) and e.key == "tiering" for e in self.events)
        return "ours" if tiering else "none"

    def _policies(self) -> list[tuple[int, int, dict[str, Any]]]:
        """Each policy with from when until when it was in force."""
        changes: dict[int, tuple[int, dict[str, Any]]] = {}
        for event in self.events:
            if isinstance(event, PolicyDeclared):
                at_ms, keys = changes.setdefault(event.policy_offset, (event.occurred_at_ms, {}))
                keys[event.key] = None if event.after is None else json.loads(event.after)
        out: list[tuple[int, int, dict[str, Any]]] = []
        now: dict[str, Any] = {}
        for _, (at_ms, keys) in sorted(changes.items()):
            now = {**now, **keys}
            if out:
                out[-1] = (out[-1][0], at_ms, out[-1][2])
            out.append((at_ms, FOREVER, now))
        return out

    def _settings(self) -> dict[str, list[tuple[int, int]]]:
        found: dict[str, list[tuple[int, int]]] = {}
        for event in self.events:
            if isinstance(event, ConfigEffective) and event.new_value not in (None, "true"):
                found.setdefault(event.key, []).append((event.occurred_at_ms, int(event.new_value)))
        return found

    def _moments(self) -> list[Moment]:
        now = Moment(0)
        out = []
        for event in self.events:
            now = now.copy(event.occurred_at_ms)
            self._happens(now, event)
            out.append(now)
        return out

    def _happens(self, now: Moment, event: Any) -> None:
        if isinstance(event, LeaderChanged):
            now.leader, now.in_sync = event.leader_id, event.isr
        elif isinstance(event, IsrChanged):
            now.in_sync = event.isr
        elif isinstance(event, (ReplicaStarted, LogBaseline)):
            now.start[event.broker_id] = event.log_start or 0
            now.watermark = max(now.watermark, event.high_watermark or 0)
            if isinstance(event, ReplicaStarted):
                now.disk[event.broker_id] = set(range(event.local_start or 0, event.high_watermark or 0))
        elif isinstance(event, SegmentClosed):
            now.disk[event.broker_id] |= set(range(event.base_offset, event.end_offset))
        elif isinstance(event, SegmentDeletedLocal):
            now.disk[event.broker_id] -= set(range(event.base_offset, event.end_offset))
        elif isinstance(event, LogStartAdvanced):
            now.start[event.broker_id] = event.new_start
        elif isinstance(event, HighWatermark):
            now.watermark = max(now.watermark, event.high_watermark)
        elif isinstance(event, CopyFinished):
            offsets = range(event.base_offset, event.end_offset)
            now.tier[event.segment_id] = (
                offsets,
                event.max_timestamp_ms,
                event.leader_epoch,
                event.size_bytes,
            )
        elif isinstance(event, DeleteStarted):
            now.tier.pop(event.segment_id, None)

    def _before(self, index: int) -> Moment:
        return self.moments[index - 1] if index else Moment(0)

    # --- what is allowed

    def _allowed(self, from_ms: int, to_ms: int) -> list[dict[str, Any]]:
        return [
            policy
            for since_ms, until_ms, policy in self.policies
            if since_ms - HOUR_MS <= to_ms and from_ms <= until_ms + HOUR_MS
        ]

    def _keeps(self, policy: dict[str, Any], sort: str) -> tuple[int, int]:
        """Milliseconds and bytes; FOREVER is no limit."""
        total = (number_of(policy.get("total_retention_ms")), number_of(policy.get("total_retention_bytes")))
        if sort == "total":
            return total
        ms, size = policy.get("local_retention_ms"), policy.get("local_retention_bytes")
        return (
            total[0] if ms is None else number_of(ms),
            total[1] if size is None else number_of(size),
        )

    def _may_go(self, newest_ms: int, size: int, held: int, from_ms: int, to_ms: int, sort: str) -> bool:
        """By time or by size, under some policy of the time."""
        for policy in self._allowed(from_ms - TOLERANCE_MS, to_ms + TOLERANCE_MS):
            ms, limit = self._keeps(policy, sort)
            if to_ms + TOLERANCE_MS - newest_ms >= ms or held - size >= limit:
                return True
        return False

    def _asked_for(self, offset: int, from_ms: int, to_ms: int) -> bool:
        for event in self.events:
            if not isinstance(event, OperationAuthorised) or event.operation.value != "delete_records":
                continue
            is_then = event.valid_from_ms - TOLERANCE_MS <= to_ms + TOLERANCE_MS
            is_then &= from_ms - TOLERANCE_MS <= event.expires_at_ms + TOLERANCE_MS
            end = FOREVER if event.end_offset is None else event.end_offset
            if is_then and (event.start_offset or 0) <= offset < end:
                return True
        return False

    # --- starts

    def _segments_of(self, broker: int) -> list[tuple[int, range, int, int]]:
        """Each segment that was ever told of: until when it lay there, its offsets, newest time, size."""
        out = []
        for event in self.events:
            is_local = isinstance(event, (SegmentClosed, SegmentDeletedLocal)) and event.broker_id == broker
            is_copy = self.mode == "kip405" and isinstance(event, CopyFinished)
            if is_local or is_copy:
                newest_ms = event.max_timestamp_ms
                offsets = range(event.base_offset, event.end_offset)
                out.append((event.occurred_at_ms, offsets, newest_ms, event.size_bytes))
        return out

    def _bytes(self, moment: Moment, broker: int) -> int:
        held = moment.disk.get(broker, set())
        return 100 * len(held | moment.tiered if self.mode == "kip405" else held)

    def _advances(self) -> None:
        """Per replica, the offsets that its start passed without a cause; and starts that fell."""
        self.doubt: dict[int, dict[int, list[tuple[int, int]]]] = {}  # broker, offset, from when until when
        for index, event in enumerate(self.events):
            if not isinstance(event, LogStartAdvanced):
                continue
            broker = event.broker_id
            old = self._before(index).start.get(broker, event.old_start)
            if event.new_start < old:
                self.found["START-01"].add((broker, event.new_start, old))
                for offset, spans in self.doubt.get(broker, {}).items():
                    if offset >= event.new_start:
                        spans[:] = [(since, min(until, event.occurred_at_ms)) for since, until in spans]
            self._inside(index, event, broker)
            for offset in range(old, event.new_start):
                if not self._is_caused(index, event, broker, offset, old):
                    spans = self.doubt.setdefault(broker, {}).setdefault(offset, [])
                    spans.append((event.occurred_at_ms, FOREVER))

    def _inside(self, index: int, event: LogStartAdvanced, broker: int) -> None:
        """START-05: it rose into a segment, and neither a request nor another leader's start put it there."""
        new, to_ms = event.new_start, event.occurred_at_ms
        from_ms = event.not_before_ms if event.not_before_ms is not None else to_ms
        known = [
            range(each.base_offset, each.end_offset)
            for each in self.events
            if isinstance(each, CopyFinished)
            or (isinstance(each, (SegmentClosed, SegmentDeletedLocal)) and each.broker_id == broker)
        ]
        is_boundary = any(new in (each.start, each.stop) for each in known)
        is_fine = self._went_with_the_topic(to_ms) or self._asked_for(new - 1, from_ms, to_ms)
        is_fine = is_fine or self._published_by_another(index, broker, new - 1)
        rose = new > self._before(index).start.get(broker, event.old_start)
        if rose and any(new in each for each in known) and not is_boundary and not is_fine:
            self.found["START-05"].add(new)

    def _is_caused(self, index: int, event: LogStartAdvanced, broker: int, offset: int, old: int) -> bool:
        from_ms = event.not_before_ms if event.not_before_ms is not None else event.occurred_at_ms
        to_ms = event.occurred_at_ms
        if self._went_with_the_topic(to_ms) or self._asked_for(offset, from_ms, to_ms):
            return True
        if self._published_by_another(index, broker, offset):
            return True
        if self.mode == "ours" and offset in self._settled(to_ms).tiered | self._before(index).tiered:
            return True
        if self.mode == "ours" and self._was_covered_when_dropped(broker, offset, to_ms):
            return True
        return self._expired_then(index, broker, offset, old, from_ms, to_ms)

    def _went_with_the_topic(self, at_ms: int) -> bool:
        return self.gone_ms is not None and self.gone_ms <= at_ms + SETTLED_MS

    def _settled(self, at_ms: int) -> Moment:
        last = Moment(0)
        for moment in self.moments:
            if moment.at_ms <= at_ms + SETTLED_MS:
                last = moment
        return last

    def _was_covered_when_dropped(self, broker: int, offset: int, at_ms: int) -> bool:
        for index, event in enumerate(self.events):
            if isinstance(event, SegmentDeletedLocal) and event.broker_id == broker:
                is_near = abs(event.occurred_at_ms - at_ms) <= 2 * RETENTION_GRACE_MS
                is_it = event.base_offset <= offset < event.end_offset
                if is_near and is_it and offset in self._before(index).tiered:
                    return True
        return False

    def _published_by_another(self, index: int, broker: int, offset: int) -> bool:
        """Some other replica led with a start beyond it, within what settles, without having begun there."""
        limit_ms = self.events[index].occurred_at_ms + SETTLED_MS
        for moment in self.moments:
            if moment.at_ms > limit_ms:
                break
            leader = moment.leader
            if leader is None or leader == broker:
                continue
            if moment.start.get(leader, 0) > offset:
                return True
        return False

    def _expired_then(self, index: int, broker: int, offset: int, old: int, from_ms: int, to_ms: int) -> bool:
        # Everything that went in the same look was there at its beginning.
        began = index
        while began and self.moments[began - 1].at_ms > to_ms - 60_000:
            began -= 1
        held = self._bytes(self._before(began), broker)
        there = set(self._before(began).disk.get(broker, set()))
        there |= self._before(began).tiered if self.mode == "kip405" else set()
        total = max(held, self._bytes(self.moments[index], broker))
        for at_ms, offsets, newest_ms, size in self._segments_of(broker):
            if offset not in offsets or at_ms > to_ms + SETTLED_MS:
                continue
            below = 100 * len([o for o in there if o < offsets.start])
            if self._may_go(newest_ms, size, total - below, from_ms, to_ms, "total"):
                return True
        return False

    def _starts_of_the_log(self) -> None:
        """START-02: what the log's own start passed, and its leader has in doubt."""
        highest: int | None = None
        final = self.moments[-1].watermark if self.moments else 0
        for moment in self.moments:
            leader = moment.leader
            if leader is None or leader not in moment.start:
                continue
            start = moment.start[leader]
            if highest is not None:
                for offset in range(highest, start):
                    if self._is_in_doubt(leader, offset, moment.at_ms) and offset < final:
                        self.found["START-02"].add(offset)
            highest = start if highest is None else max(highest, start)

    def _is_in_doubt(self, broker: int, offset: int, at_ms: int) -> bool:
        spans = self.doubt.get(broker, {}).get(offset, [])
        return any(since <= at_ms < until for since, until in spans)

    def _replicas_beside_the_leader(self) -> None:
        """START-04: above without a cause, or below, for longer than the grace."""
        times = [moment.at_ms for moment in self.moments] + [self.as_of_ms]
        for broker in (1, 2, 3):
            for side in ("above", "below"):
                since: tuple[int, tuple[Any, ...]] | None = None
                for moment, until_ms in zip(self.moments, times[1:], strict=True):
                    if not self._is_beside(moment, broker, side) or self._is_over(moment):
                        since = None
                        continue
                    state = (moment.start[broker], moment.start.get(moment.leader or 0), moment.leader)
                    if since is None or since[1] != (state, moment.in_sync):
                        since = (moment.at_ms, (state, moment.in_sync))
                    if until_ms - since[0] >= RETENTION_GRACE_MS:
                        self.found["START-04"].add((broker, side))

    def _is_over(self, moment: Moment) -> bool:
        return self.gone_ms is not None and moment.at_ms >= self.gone_ms

    def _is_beside(self, moment: Moment, broker: int, side: str) -> bool:
        leader = moment.leader
        if leader is None or leader == broker or broker not in moment.start or leader not in moment.start:
            return False
        own, led = moment.start[broker], moment.start[leader]
        if side == "below":
            return own < led and broker in moment.in_sync
        passed = set(range(led, own))
        if self.mode != "kip405":
            passed = {offset for offset in passed if self._is_in_doubt(broker, offset, moment.at_ms)}
        return bool(passed)

    # --- removals

    def _removals(self) -> None:
        for index, event in enumerate(self.events):
            before = self._before(index)
            if isinstance(event, DeleteStarted) and event.segment_id in before.tier:
                self._from_the_tier(index, event, before)
            elif isinstance(event, SegmentDeletedLocal) and before.leader == event.broker_id:
                self._from_the_leader(index, event, before)

    def _from_the_tier(self, index: int, event: DeleteStarted, before: Moment) -> None:
        offsets, newest_ms, _, size = before.tier[event.segment_id]
        at_ms = event.occurred_at_ms
        unique = 100 * len(before.disk.get(before.leader or 0, set()) | before.tiered)
        if self._went_with_the_topic(at_ms) or self._is_superseded(event, before):
            return
        if self._may_go(newest_ms, size, unique, at_ms, at_ms, "total"):
            self._review(newest_ms, size, unique, at_ms, offsets.start, "total")
            return
        if all(self._asked_for(o, at_ms, at_ms) for o in offsets):
            self.unexpired.append(at_ms)
            return
        if self.mode == "kip405" and self._below_a_justified_start(at_ms, offsets):
            return
        self.unexpired.append(at_ms)
        self._charge(newest_ms, at_ms, offsets.start, before, local=False)

    def _is_superseded(self, event: DeleteStarted, before: Moment) -> bool:
        """By other copies, when it went or once it settled: one instant of the two is enough."""
        then = (before, self._settled(event.occurred_at_ms))
        others = {
            offset
            for now in then
            for key, each in now.tier.items()
            if key != event.segment_id
            for offset in each[0]
        }
        return set(before.tier[event.segment_id][0]) <= others

    def _from_the_leader(self, index: int, event: SegmentDeletedLocal, before: Moment) -> None:
        broker = event.broker_id
        offsets = range(event.base_offset, event.end_offset)
        lowest = min(before.disk.get(broker, {0}), default=0)
        if event.base_offset > lowest or self._went_with_the_topic(event.occurred_at_ms):
            return  # in the middle: SEG-02's
        from_ms = event.not_before_ms if event.not_before_ms is not None else event.occurred_at_ms
        at_ms = event.occurred_at_ms
        newest_ms = event.max_timestamp_ms or 0
        held = self._bytes(before, broker)
        in_tier = before.tiered | self._settled(at_ms).tiered
        sort = "local" if self.mode == "ours" else "total"
        by_retention = self._may_go(newest_ms, event.size_bytes, held, from_ms, at_ms, sort)
        asked = all(self._asked_for(o, from_ms, at_ms) for o in offsets)
        if by_retention and not set(offsets) <= in_tier:
            self._review(newest_ms, event.size_bytes, held, at_ms, offsets.start, sort)
        below = self.mode != "ours" and self._below_a_justified_start(at_ms, offsets)
        is_fine = by_retention or asked or set(offsets) <= in_tier or below
        if not (by_retention or set(offsets) <= in_tier) and (asked or not below):
            self.unexpired.append(at_ms)
        if not is_fine and self.mode != "kip405":
            self._charge(newest_ms, at_ms, offsets.start, before, local=True)
        if self.mode == "none":
            return
        if self.mode == "kip405" and (self._log_start(at_ms + SETTLED_MS) or 0) >= offsets.stop:
            return
        if self._may_go(newest_ms, event.size_bytes, held, from_ms, at_ms, "total"):
            return
        for offset in offsets:
            if offset not in in_tier and not self._asked_for(offset, from_ms, at_ms):
                self.found["SEG-09"].add(offset)

    def _log_start(self, at_ms: int) -> int | None:
        starts = [
            moment.start[moment.leader]
            for moment in self.moments
            if moment.at_ms <= at_ms and moment.leader is not None and moment.leader in moment.start
        ]
        return max(starts, default=None)

    def _below_a_justified_start(self, at_ms: int, offsets: range) -> bool:
        if (self._log_start(at_ms + SETTLED_MS) or 0) < offsets.stop:
            return False
        return not set(offsets) & self.found["START-02"]

    def _charge(self, newest_ms: int, at_ms: int, base: int, before: Moment, *, local: bool) -> None:
        if local or self.mode == "kip405":
            times = self._in_force("retention.ms", at_ms)
            sizes = self._in_force("retention.bytes", at_ms)
            if any(ms != -1 and at_ms + TOLERANCE_MS - newest_ms >= ms for ms in times):
                self.found["RET-01"].add(base)
                return
            counted = 100 * len(before.disk.get(before.leader or 0, set()))
            if self.mode == "kip405":  # by what it counted when it began to delete
                lately = [e for e in self.moments if at_ms - 60_000 <= e.at_ms <= at_ms] + [before]
                counted = max(100 * _led(each) + sum(one[3] for one in each.tier.values()) for each in lately)
            if any(size != -1 and counted >= size for size in sizes):
                self.found["RET-02"].add(base)
                return
        if not local:
            self.found["DEL-01"].add(base)

    def _in_force(self, key: str, at_ms: int) -> list[int]:
        told = self.settings.get(key, [])
        out = []
        for number, (since_ms, value) in enumerate(told):
            until_ms = told[number + 1][0] if number + 1 < len(told) else FOREVER
            is_first = number == 0
            if (is_first or since_ms - TOLERANCE_MS <= at_ms) and at_ms - 10_000 - TOLERANCE_MS <= until_ms:
                out.append(value)
        return out

    def _review(self, newest_ms: int, size: int, held: int, at_ms: int, base: int, sort: str) -> None:
        """RET-04: gone under a change, and it would not have gone under what was declared before it."""
        at = at_ms + TOLERANCE_MS
        fitting = [
            number
            for number, (since_ms, until_ms, policy) in enumerate(self.policies)
            if since_ms - HOUR_MS <= at
            and at_ms - 2 * TOLERANCE_MS <= until_ms + HOUR_MS
            and (
                at - newest_ms >= self._keeps(policy, sort)[0] or held - size >= self._keeps(policy, sort)[1]
            )
        ]
        if not fitting or fitting[0] == 0:
            return
        ms, limit = self._keeps(self.policies[fitting[0] - 1][2], sort)
        if at - newest_ms < ms and held - size < limit:
            self.found["RET-04"].add(base)

    # --- coverage, overlaps, watermarks

    def _coverage(self) -> None:
        """SEG-02 and START-06, as things stand at the end."""
        last = self.moments[-1]
        if self.gone_ms is not None or last.leader not in last.start:
            return
        start = last.start[last.leader]
        there = set(last.disk.get(last.leader, set()))
        if self.mode != "none":
            there |= last.tiered
        if self.mode == "ours":
            start = min([start, *last.tiered])
        missing = set(range(start, last.watermark)) - there
        head = start
        while head in missing and self.mode != "ours":
            missing.remove(head)
            self.found["START-06"].add(head)
            head += 1
        self.found["SEG-02"] |= missing

    def _overlaps(self) -> None:
        times = [moment.at_ms for moment in self.moments] + [self.as_of_ms]
        for moment, until_ms in zip(self.moments, times[1:], strict=True):
            if until_ms - moment.at_ms < SETTLED_MS or self._is_over(moment):
                continue
            copies = list(moment.tier.values())
            for at, (one, _, epoch, _) in enumerate(copies):
                for other, _, other_epoch, _ in copies[at + 1 :]:
                    if epoch == other_epoch:
                        self.found["SEG-03"] |= set(one) & set(other)

    def _watermarks(self) -> None:
        published: dict[int, int] = {}
        for event in self.events:
            if isinstance(event, (HighWatermark, LogBaseline, ReplicaStarted)):
                published[event.broker_id] = event.high_watermark or 0
            elif isinstance(event, Truncated) and event.new_end < published.get(event.broker_id, 0):
                self.found["HWM-02"] |= set(range(event.new_end, published[event.broker_id]))
                published[event.broker_id] = event.new_end
        for event in self.events:
            if not isinstance(event, EpochStarted):
                continue
            earlier = [
                each.high_watermark or 0
                for each in self.events
                if isinstance(each, (HighWatermark, LogBaseline, ReplicaStarted, LogStartAdvanced))
                and each.leader_epoch < event.epoch
            ]
            if event.start_offset < max(earlier, default=0):
                self.found["EPO-01"].add(event.epoch)

    # --- what people decide

    def _deviations(self) -> None:
        """RET-03: effective keeps less than declared, and no declaration within an hour says so."""
        sort = "local" if self.mode == "ours" else "total"
        changes = sorted(
            {
                event.occurred_at_ms
                for event in self.events
                if isinstance(event, (ConfigEffective, PolicyDeclared))
            }
        )
        for key, unit in (("retention.ms", 0), ("retention.bytes", 1)):
            since: int | None = None
            lowest = FOREVER
            for at_ms in [*changes, FOREVER]:
                if at_ms == FOREVER:
                    self._deviated(key, unit, sort, since, lowest, declared_ms=None)
                    break
                value = next((v for t, v in reversed(self.settings.get(key, [])) if t <= at_ms), None)
                declared = next((p for s, _, p in reversed(self.policies) if s <= at_ms), None)
                if value is None or declared is None:
                    continue
                value = FOREVER if value == -1 else value
                if value < self._keeps(declared, sort)[unit]:
                    since = at_ms if since is None else since
                    lowest = min(lowest, value)
                elif since is not None:
                    is_policy = any(s == at_ms for s, _, _ in self.policies)
                    self._deviated(key, unit, sort, since, lowest, declared_ms=at_ms if is_policy else None)
                    since, lowest = None, FOREVER

    def _deviated(
        self, key: str, unit: int, sort: str, since: int | None, lowest: int, *, declared_ms: int | None
    ) -> None:
        if since is None or since + HOUR_MS > self.as_of_ms:
            return
        if declared_ms is not None and declared_ms <= since + HOUR_MS:
            return
        for from_ms, until_ms, policy in self.policies:
            is_then = from_ms <= since + HOUR_MS and until_ms > since
            if is_then and lowest >= self._keeps(policy, sort)[unit]:
                return
        self.found["RET-03"].add((key, since))

    def _topic(self) -> None:
        if self.gone_ms is None:
            return
        for event in self.events:
            if isinstance(event, OperationAuthorised) and event.operation.value == "delete_topic":
                is_then = event.valid_from_ms <= self.gone_ms + 2 * TOLERANCE_MS
                if is_then and self.gone_ms <= event.expires_at_ms + 2 * TOLERANCE_MS:
                    return
        self.found["OPS-01"].add("topic")


def _led(moment: Moment) -> int:
    """How many offsets lie on the leader's disk."""
    return len(moment.disk.get(moment.leader or 0, set()))


_UNITS = {"h": HOUR_MS, "d": 24 * HOUR_MS, "min": 60_000}


def number_of(said: object) -> int:
    if said is None or said == "unlimited":
        return FOREVER
    if isinstance(said, int):
        return said
    digits, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", str(said)).groups()  # type: ignore[union-attr]
    return int(digits) * _UNITS.get(unit, 1)
