"""The second judge, of limits: what expired and stayed, what went too fast, and a watermark made of nothing.

RET-05, OPS-02 and HWM-03, by the English of RULES.md and docs/rules, sharing no code with the machine. The
whole history is before it, and each moment is asked anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from rules.events import (
    BrokerStarted,
    CopyFinished,
    HighWatermark,
    HoldPlaced,
    HoldReleased,
    LogBaseline,
    LogStartAdvanced,
    ReplicaStarted,
    SegmentClosed,
    Truncated,
)
from tests.rules.machine.brute import (
    FOREVER,
    HOUR_MS,
    RETENTION_GRACE_MS,
    SETTLED_MS,
    TOLERANCE_MS,
    Judge,
    number_of,
)

JUDGED = ("RET-05", "OPS-02", "HWM-03")


class LimitsJudge(Judge):
    """Of one log. What went of it counts together with what went of its topic's other logs."""

    def kept_too_long(self) -> set[int]:
        """RET-05: the heads that had expired, by the running maximum of all that lay before them and theirs,
        for as long as the grace is, without a break. By their first offsets."""
        times = [moment.at_ms for moment in self.moments] + [self.as_of_ms]
        lying = [self._lying(index) for index in range(len(self.moments))]
        found: set[int] = set()
        for index, now in enumerate(lying):
            if now and times[index + 1] - self._expired_since(index, now[0][0], lying, times) >= self._grace(
                times[index]
            ):
                found.add(now[0][0])
        return found

    def _expired_since(
        self, index: int, base: int, lying: list[list[tuple[int, int]]], times: list[int]
    ) -> int:
        """Going back from the end of the moment, until it was not there, or something kept it."""
        since_ms = times[index + 1]
        for at in range(index, -1, -1):
            before = [newest_ms for other, newest_ms in lying[at] if other <= base]
            is_there = any(other == base for other, _ in lying[at])
            expires_ms = max(before, default=0) + self._longest(times[at])
            if not is_there or self._is_kept(at) or expires_ms > times[at + 1]:
                break
            since_ms = max(expires_ms, times[at])
            if expires_ms > times[at]:
                break
        return since_ms

    def _lying(self, index: int) -> list[tuple[int, int]]:
        """The log's segments from its head on, and each one's newest time: those in the tier, where there
        are any, else those of the leader's disk."""
        now, past = self.moments[index], self.events[: index + 1]
        if self.mode != "none":
            copies = {
                (e.base_offset, e.max_timestamp_ms)
                for e in past
                if isinstance(e, CopyFinished) and e.segment_id in now.tier
            }
            if copies or self.mode == "ours":
                return sorted(copies)
        held = now.disk.get(now.leader or 0, set())
        return sorted(
            {
                (e.base_offset, e.max_timestamp_ms or 0)
                for e in past
                if isinstance(e, SegmentClosed) and e.broker_id == now.leader and e.base_offset in held
            }
        )

    def _is_kept(self, index: int) -> bool:
        """By a hold; or because nobody is to delete it; or it went with its topic."""
        at_ms = self.moments[index].at_ms
        is_gone = self.gone_ms is not None and at_ms >= self.gone_ms
        is_ours = self.mode == "ours" and not self._policy_at(at_ms).get("remote_deletion")
        placed = {e.hold_id for e in self.events[: index + 1] if isinstance(e, HoldPlaced)}
        released = {e.hold_id for e in self.events[: index + 1] if isinstance(e, HoldReleased)}
        return is_gone or is_ours or bool(placed - released)

    def _policy_at(self, at_ms: int) -> dict[str, Any]:
        return next((policy for since, _, policy in reversed(self.policies) if since <= at_ms), {})

    def _longest(self, at_ms: int) -> int:
        """It has expired when nothing keeps it: neither what was declared nor what the broker goes by."""
        declared = number_of(self._policy_at(at_ms).get("total_retention_ms"))
        if self.mode == "ours":
            return declared
        told = [value for since, value in self.settings.get("retention.ms", []) if since <= at_ms]
        return max(declared, FOREVER if not told or told[-1] == -1 else told[-1])

    def _grace(self, at_ms: int) -> int:
        """What we delete ourselves waits for the policy's own grace, too."""
        own = number_of(self._policy_at(at_ms).get("delete_grace_ms")) if self.mode == "ours" else 0
        return RETENTION_GRACE_MS + own

    def went_by_hour(self) -> Counter[int]:
        """Segments of the tier, or of the leader's disk, that no authorised retention let go: by hour."""
        self.judge()
        return Counter(at_ms // HOUR_MS for at_ms in self.unexpired)

    def limit(self) -> int | None:
        """None for a topic whose records anybody may delete."""
        policy = self._policy_at(self.as_of_ms)
        return None if policy.get("record_deletion") == "free" else policy["blast_limit_segments_per_hour"]

    def made_of_nothing(self) -> Iterator[tuple[int, int]]:
        """HWM-03: the watermark of an empty log rose beside a start of its broker. By broker and offset."""
        for index, event in enumerate(self.events):
            if not isinstance(event, HighWatermark) or event.size_bytes != 0:
                continue
            is_empty = event.log_start >= event.high_watermark
            before, was_measured = self._last_said(event, index)
            rose = before is not None and event.high_watermark > before
            if is_empty and rose and was_measured and self._started_beside(event):
                yield from ((event.broker_id, offset) for offset in range(before or 0, event.high_watermark))

    def _last_said(self, event: HighWatermark, index: int) -> tuple[int | None, bool]:
        """The watermark of this replica as it was told last, and whether anybody told its bytes."""
        last: int | None = None
        was_measured = False
        highest = -1
        for each in self.events[:index]:
            said = getattr(each, "high_watermark", None)
            if getattr(each, "broker_id", None) == event.broker_id:
                if isinstance(each, ReplicaStarted):
                    last, was_measured = None, False
                if isinstance(each, (HighWatermark, LogBaseline)):
                    was_measured |= each.size_bytes is not None
                is_above = isinstance(each, LogStartAdvanced) and each.new_start > highest >= 0
                if said is not None and not is_above:
                    last = said
                if isinstance(each, Truncated) and last is not None:
                    last = min(last, each.new_end)
            if said is not None and not _is_of_nothing(each, highest):
                highest = max(highest, said)
        return last, was_measured

    def _started_beside(self, event: HighWatermark) -> bool:
        """A broker lifts a watermark while it starts. A look tells of what was since the look before it."""
        return any(
            each.broker_id == event.broker_id
            and _since(each) - TOLERANCE_MS <= event.occurred_at_ms
            and _since(event) <= each.occurred_at_ms + SETTLED_MS
            for each in self.events
            if isinstance(each, BrokerStarted)
        )


def too_fast(logs: Iterable[LimitsJudge]) -> set[tuple[int, int]]:
    """OPS-02 of one topic: each hour in which more segments of its logs went than may, and how many."""
    every = list(logs)
    limit = every[0].limit()
    went = sum((each.went_by_hour() for each in every), Counter[int]())
    return set() if limit is None else {(hour, count) for hour, count in went.items() if count > limit}


def _since(event: Any) -> int:
    told: int | None = event.not_before_ms
    return event.occurred_at_ms if told is None else told


def _is_of_nothing(event: Any, highest: int) -> bool:
    """A watermark at or below its log's start, above all that was published, was never published."""
    start = getattr(event, "new_start", getattr(event, "log_start", None))
    is_empty = getattr(event, "size_bytes", None) == 0 and (start or 0) >= event.high_watermark
    return is_empty or (start is not None and start > highest >= 0)
