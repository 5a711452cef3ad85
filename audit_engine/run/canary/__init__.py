"""A log of the auditor's own, in which each run finds a fault that was put there (AUDIT_FACTS 19).

A judge that finds nothing may have stopped looking. The canary's cluster is called `seawall-canary`. Its
events are made here for each run, of that run's number and moment:

    before   the log in order, as an earlier run would have left it: calm, so that the screen may excuse it
    since    the fault, among the rows of the run's slice

They take the way of all others from rows to findings, screen and carried state with it; they are in no topic
of Kafka and in no table, and nothing that is found of them is counted. Each run has a log of its own, and the
next of the faults.

Owns these histories and what must be found, to the last range. Invariant: a function of run and moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from audit_engine.run.one_log import Judged, Line, Task, judge
from rules.events import (
    BaselineOccasion,
    ConfigEffective,
    ConfigResource,
    ConfigSource,
    Event,
    LeaderChanged,
    LogBaseline,
    LogStartAdvanced,
    PolicyDeclared,
    ReplicaAppearance,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
    SegmentRemoval,
    Source,
    TimestampBasis,
    TopicDeleted,
    Truncated,
)
from rules.identity import LogId
from rules.machine import Speaker, Told
from rules.machine.saying import Saying
from rules.machine.spans import Spans
from rules.machine.told import has_own_clock

CLUSTER = "seawall-canary"
TOPIC = "seawall-canary"
HOUR_MS = 3_600_000
MIB = 1 << 20
WATERMARK = 10_500
Expected = frozenset[tuple[str, str, Spans]]  # rule, severity, ranges
_BROKER = 1
_FACT: Mapping[str, Any] = {"source": Source.KRAFT, "is_coalesced": False, "not_before_ms": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """What is said of this run's log, and what must be found of it. `before_ms`: as of when it is calm."""

    fault: str
    log: LogId
    before: tuple[Told, ...]
    before_ms: int
    since: tuple[Told, ...]
    expected: Expected


@dataclass(kw_only=True)
class _Saying(Saying):
    kraft_offset: int = 100

    def say(self, kind: type[Event], **own: Any) -> None:
        super().say(kind, **own)
        self.now_ms += 1

    def fact(self) -> dict[str, Any]:
        self.kraft_offset += 1
        return {**_FACT, "metadata_offset": self.kraft_offset}

    def retention(self, key: str, new: int, old: int | None) -> None:
        self.say(
            ConfigEffective,
            resource=ConfigResource.TOPIC,
            topic_id=self.log.topic_id,
            topic=TOPIC,
            broker_id=None,
            key=key,
            old_value=None if old is None else str(old),
            new_value=str(new),
            config_source=ConfigSource.TOPIC,
            is_first_sight=old is None,
            **self.fact(),
        )

    def start(self, old: int, new: int) -> None:
        self.say(
            LogStartAdvanced,
            old_start=old,
            new_start=new,
            local_start=None,
            checkpoint_entry=new,
            high_watermark=WATERMARK,
            reason_hint=None,
        )

    def dropped(self, index: int, how: SegmentRemoval, newest_ms: int) -> None:
        self.say(
            SegmentDeletedLocal,
            base_offset=index * 1_000,
            end_offset=(index + 1) * 1_000,
            size_bytes=MIB,
            max_timestamp_ms=newest_ms,
            timestamp_basis=TimestampBasis.INDEXED,
            segment_removal=how,
            reason_hint=None,
        )


def canary(run: int, as_of_ms: int) -> Canary:
    """Of this run: the next fault, in a log that no run had before."""
    fault = FAULTS[run % len(FAULTS)]
    log = LogId(CLUSTER, f"canary-{run}", 0)
    begin_ms = as_of_ms - 8 * HOUR_MS
    saying = _Saying(
        log=log, topic=TOPIC, now_ms=begin_ms, speaker=Speaker(_BROKER, "canary", 1), leader_epoch=5
    )
    _untouched(saying, begin_ms)
    before = tuple(saying.said)
    saying.now_ms = begin_ms + 3 * HOUR_MS
    expected = fault(saying, begin_ms)
    return Canary(
        fault=fault.__name__.strip("_").replace("_", " "),
        log=log,
        before=before,
        before_ms=begin_ms + 2 * HOUR_MS,
        since=tuple(saying.said[len(before) :]),
        expected=frozenset(expected),
    )


def carried(canary: Canary, task: Task) -> Judged:
    """What a run would have left of the log before anything happened to it, by the terms of this one."""
    then = replace(task, from_ms=0, as_of_ms=canary.before_ms, doubts=())
    facts = [each for each in canary.before if has_own_clock(each)]
    left = judge(canary.log, TOPIC, Line(facts=facts, said=canary.before), None, then)
    assert isinstance(left, Judged), "nothing was ever said of it before"
    return left


def _newest_ms(begin_ms: int, index: int) -> int:
    return begin_ms - (10 - index) * HOUR_MS


def _untouched(saying: _Saying, begin_ms: int) -> None:
    """Ten closed segments of a thousand records on one disk, kept for seven days, as declared."""
    for key, after in (("total_retention_ms", '"7d"'), ("declare_grace_ms", '"1h"')):
        saying.say(
            PolicyDeclared,
            principal="seawall",
            change_id="canary",
            policy_hash="0" * 64,
            policy_offset=1,
            pattern=TOPIC,
            key=key,
            before=None,
            after=after,
        )
    saying.retention("retention.ms", 168 * HOUR_MS, None)
    saying.retention("retention.bytes", -1, None)
    saying.say(
        LeaderChanged,
        leader_id=_BROKER,
        isr=(_BROKER,),
        replicas=(_BROKER,),
        is_unclean=False,
        **saying.fact(),
    )
    at = {"log_start": 0, "local_start": 0, "high_watermark": WATERMARK, "log_end": WATERMARK}
    saying.say(ReplicaStarted, appearance=ReplicaAppearance.FIRST_SEEN, **at)
    saying.say(
        LogBaseline,
        occasion=BaselineOccasion.ONBOARDING,
        epochs=((5, 0),),
        segment_count=None,
        size_bytes=10 * MIB,
        segments_digest=None,
        metadata_offset=None,
        **at,
    )
    for index in range(10):
        saying.say(
            SegmentClosed,
            base_offset=index * 1_000,
            end_offset=(index + 1) * 1_000,
            data_end=None,
            record_count=None,
            size_bytes=MIB,
            max_timestamp_ms=_newest_ms(begin_ms, index),
            timestamp_basis=TimestampBasis.INDEXED,
        )


# --- the faults, each with what must be found of it and nothing else

Fault = Callable[[_Saying, int], Iterable[tuple[str, str, Spans]]]


def _a_prefix_is_trimmed(saying: _Saying, begin_ms: int) -> Iterable[tuple[str, str, Spans]]:
    saying.start(0, 3_000)
    return [("START-02", "C", ((0, 3_000),))]


def _a_middle_segment_vanishes(saying: _Saying, begin_ms: int) -> Iterable[tuple[str, str, Spans]]:
    saying.dropped(4, SegmentRemoval.GONE, _newest_ms(begin_ms, 4))
    return [("SEG-02", "C", ((4_000, 5_000),))]


def _retention_shrinks_and_deletes(saying: _Saying, begin_ms: int) -> Iterable[tuple[str, str, Spans]]:
    saying.retention("retention.ms", HOUR_MS, 168 * HOUR_MS)
    for index in range(2):
        saying.dropped(index, SegmentRemoval.RENAMED, _newest_ms(begin_ms, index))
    saying.start(0, 2_000)
    removed: list[tuple[str, str, Spans]] = [("RET-01", "C", ((base, base + 1_000),)) for base in (0, 1_000)]
    return [("RET-03", "C", ()), ("START-02", "C", ((0, 2_000),)), *removed]


def _what_was_committed_is_cut_off(saying: _Saying, begin_ms: int) -> Iterable[tuple[str, str, Spans]]:
    saying.say(Truncated, old_end=WATERMARK, new_end=10_200)
    return [("HWM-02", "C", ((10_200, WATERMARK),))]


def _the_topic_is_deleted(saying: _Saying, begin_ms: int) -> Iterable[tuple[str, str, Spans]]:
    saying.say(TopicDeleted, topic_id=saying.log.topic_id, topic=TOPIC, **saying.fact())
    return [("OPS-01", "C", ((0, WATERMARK),))]


FAULTS: tuple[Fault, ...] = (
    _a_prefix_is_trimmed,
    _a_middle_segment_vanishes,
    _what_was_committed_is_cut_off,
    _retention_shrinks_and_deletes,
    _the_topic_is_deleted,
)
