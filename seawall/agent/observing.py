"""The observers of an agent at work: each in a loop, with a doubt, metrics, and evidence of its blindness.

An observer reads and emits; its look is `run_once`, which raises where it could not look. Then its loop logs
it and the agent is not ready, by the observer's name; and an `evidence_gap` is said when it begins to fail,
and another, over the whole of it, when it looks again. Between them it is not repeated.

Owns the loops. Refuses to know what is observed.

Invariant: an observer that does not look is told by the log, by a doubt, by a metric that stands still, and
by evidence; never by silence alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from rules.events import EvidenceGap
from rules.events.emitters import MADE_GOOD
from seawall.agent.loops import Loop, LoopContext
from seawall.agent.posts import Ground, Post
from tiering.errors import StatedError

JITTER = 0.2  # of a pause


class Observing:
    """Runs the posts from `begin` until the stack ends them, each after the look it is in."""

    def __init__(self, hung: Sequence[Post], ground: Ground) -> None:
        self._manned = [Manned(each, ground) for each in hung]
        self._ground = ground
        for each in self._manned:
            ground.health.doubt(each.loop_name, "it has not looked yet")

    def begin(self, context: LoopContext, stack: ExitStack) -> None:
        for each in self._manned:
            stack.callback(each.post.close)
            stack.enter_context(
                Loop(
                    each.loop_name,
                    each.run_once,
                    context,
                    every_s=each.post.every_s,
                    first_s=0,
                    jitter=JITTER,
                )
            )

    def metadata_offset(self) -> int | None:
        """How far `__cluster_metadata` was read, by whoever reads it."""
        found = [each.post.metadata_offset() for each in self._manned]
        return next((each for each in found if each is not None), None)

    def metrics(self) -> Iterator[Metric]:
        return observer_metrics(self._manned)


def observer_metrics(manned: Iterable[Manned]) -> Iterator[Metric]:
    """When each looked last, how long that took, how much it saw, and how often it could not."""
    last = _gauge("last_look_timestamp_seconds", "When it last looked and could; 0: not yet.")
    took = _gauge("look_seconds", "How long that look took.")
    blind = _gauge("blind", "1 while it cannot look.")
    looks = _counter("looks", "Looks that it could take.")
    failures = _counter("failures", "Looks that it could not.")
    seen = _gauge("seen", "How much of what the last look saw.", "what")
    for each in manned:
        labels = [each.post.name]
        last.add_metric(labels, (each.last_look_ms or 0) / 1000)
        took.add_metric(labels, each.took_s)
        blind.add_metric(labels, float(each.is_blind))
        looks.add_metric(labels, each.looks)
        failures.add_metric(labels, each.failures)
        for what, count in each.post.seen().items():
            seen.add_metric([*labels, what], count)
    yield from (last, took, blind, looks, failures, seen)


class Manned:
    """One post, and how its looks went."""

    def __init__(self, post: Post, ground: Ground) -> None:
        self.post = post
        self.loop_name = f"observe_{post.name}"
        self.last_look_ms: int | None = None
        self.took_s = 0.0
        self.looks = self.failures = 0
        self.is_blind = False
        self._why = ""
        self._told: dict[str, str] = {}  # gaps that stand, by their problem
        self._ground = ground

    def run_once(self) -> None:
        """One look. What it raises is told as evidence, then left to the loop."""
        began_s = time.monotonic()
        try:
            self.post.run_once()
        except Exception as failed:
            self.failures += 1
            self._why = str(failed) if isinstance(failed, StatedError) else repr(failed)
            if not self.is_blind:
                self.is_blind = True
                self._say_gap("observer_failed")
            raise
        if self.is_blind:
            self._say_gap("observer_was_blind")
            self.is_blind = False
            for problem in ("observer_failed", "observer_was_blind"):
                self._say_end(problem)
        self.looks += 1
        self.took_s = time.monotonic() - began_s
        self.last_look_ms = self._ground.clockwork.now_ms()

    def _say_gap(self, problem: str) -> None:
        self._told[problem] = f"{self.post.name}: {self._why}"
        self._say(problem, self._told[problem], since_ms=self.last_look_ms)

    def _say_end(self, problem: str) -> None:
        """What it missed it has told by now, or has said that it never can."""
        if problem in self._told:
            self._say(MADE_GOOD, self._told.pop(problem), since_ms=None)

    def _say(self, problem: str, detail: str, *, since_ms: int | None) -> None:
        clockwork = self._ground.clockwork
        self._ground.sink.emit(
            EvidenceGap(
                event_id=clockwork.new_id(),
                occurred_at_ms=clockwork.now_ms(),
                cluster_id=self._ground.broker.cluster_id,
                topic_id=None,
                topic=None,
                partition=None,
                source=self.post.source,
                problem=problem,
                detail=detail,
                gap_start=None,
                gap_end=None,
                not_before_ms=since_ms,
            )
        )


def _gauge(name: str, what: str, *more: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"seawall_observer_{name}", what, labels=["observer", *more])


def _counter(name: str, what: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"seawall_observer_{name}", what, labels=["observer"])
