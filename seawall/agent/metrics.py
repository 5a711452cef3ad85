"""What the agent knows, as Prometheus metrics, made anew for each scrape from values at hand.

Owns the names and labels. One label set a log: topic and partition, and the topic's id, since a recreated
topic is another log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from rules.identity import LogId
from tiering.store.retry import Retried
from tiering.uploader.holder import HoldTotals
from tiering.uploader.status import STATES, LogStatus

_LOG_LABELS = ("topic", "partition", "topic_id")


@dataclass(slots=True)
class Tally:
    """Counts that have no other home. May be used from several threads."""

    retries: Counter[str] = field(default_factory=Counter)  # by class of error
    events: Counter[str] = field(default_factory=Counter)  # by kind
    errors: Counter[str] = field(default_factory=Counter)  # by class, at a worker's edge
    kept: Counter[str] = field(default_factory=Counter)  # by the reason for which nothing is removed
    _lock: Lock = field(default_factory=Lock)

    def retried(self, retried: Retried) -> None:
        with self._lock:
            self.retries[type(retried.error).__name__] += 1

    def event(self, kind: str) -> None:
        with self._lock:
            self.events[kind] += 1

    def error(self, kind: str) -> None:
        with self._lock:
            self.errors[kind] += 1

    def kept_for(self, reason: str) -> None:
        with self._lock:
            self.kept[reason] += 1

    def copy(self) -> tuple[Counter[str], Counter[str], Counter[str], Counter[str]]:
        with self._lock:
            return Counter(self.retries), Counter(self.events), Counter(self.errors), Counter(self.kept)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # the registry knows collectors by identity
class AgentMetrics:
    """A collector of prometheus_client's: what it asks is asked at each scrape."""

    statuses: Callable[[], Mapping[LogId, LogStatus]]
    held: Callable[[], HoldTotals]
    metadata_lag: Callable[[], Mapping[int, int] | None]
    doubts: Callable[[], Mapping[str, str]]
    tally: Tally
    now_ms: Callable[[], int]
    more: Callable[[], Iterable[Metric]] = lambda: ()

    def collect(self) -> Iterable[Metric]:
        yield from self._of_logs()
        yield from self._of_agent()
        yield from of_process(self.doubts(), self.tally)
        yield from self.more()

    def _of_logs(self) -> Iterable[Metric]:
        statuses = list(self.statuses().values())
        frontier = _gauge("frontier_offset", "End of what is copied without a gap.")
        bound = _gauge("may_leave_below_offset", "End of what is committed and decided.")
        lag_offsets = _gauge("lag_offsets", "Committed offsets that are not copied.")
        waiting = _gauge("waiting_segments", "Closed segments that are not copied.")
        waiting_bytes = _gauge("waiting_bytes", "Bytes of closed segments that are not copied.")
        stood = _gauge("frontier_standing_seconds", "Time since the frontier moved, or all was copied.")
        state = GaugeMetricFamily(
            "seawall_log_state", "1 for the state a log is in.", labels=[*_LOG_LABELS, "state"]
        )
        segments = _counter("copied_segments", "Segments copied since the agent started.")
        size = _counter("copied_bytes", "Bytes copied since the agent started.")
        failures = _gauge("failures_in_a_row", "Attempts that failed since the last that did not.")
        for each in statuses:
            labels = [each.topic, str(each.log.partition), each.log.topic_id]
            for gauge, value in ((frontier, each.frontier), (bound, each.may_leave_below)):
                if value is not None:
                    gauge.add_metric(labels, value)
            if each.frontier is not None and each.may_leave_below is not None:
                lag_offsets.add_metric(labels, max(0, each.may_leave_below - each.frontier))
            waiting.add_metric(labels, each.waiting_segments)
            waiting_bytes.add_metric(labels, each.waiting_bytes)
            stood.add_metric(labels, max(0, self.now_ms() - each.moved_at_ms) / 1000)
            for name in STATES:
                state.add_metric([*labels, name], float(each.state == name))
            segments.add_metric(labels, each.copied_segments)
            size.add_metric(labels, each.copied_bytes)
            failures.add_metric(labels, each.failures)
        yield from (frontier, bound, lag_offsets, waiting, waiting_bytes, stood, state, segments, size)
        yield failures

    def _of_agent(self) -> Iterable[Metric]:
        held = self.held()
        for name, value, what in (
            ("held_segments", held.count, "Closed segments that are held open."),
            ("held_bytes", held.size_bytes, "Their bytes."),
            ("held_pinned_bytes", held.pinned_bytes, "Bytes that are on disk only because they are held."),
            ("held_refused_segments", held.refused_count, "Segments that are not held, over the limits."),
        ):
            yield GaugeMetricFamily(f"seawall_{name}", what, value=value)
        lag = GaugeMetricFamily(
            "seawall_metadata_lag_offsets", "Behind the end of the metadata topic.", labels=["partition"]
        )
        for partition, behind in (self.metadata_lag() or {}).items():
            lag.add_metric([str(partition)], behind)
        yield lag


def of_process(doubts: Iterable[str], tally: Tally) -> Iterable[Metric]:
    """What every agent says, whatever it does."""
    doubt = GaugeMetricFamily("seawall_doubt", "1 for what keeps the agent from ready.", labels=["doubt"])
    for name in doubts:
        doubt.add_metric([name], 1)
    yield doubt
    retries, events, errors, kept = tally.copy()
    for name, label, what, counts in (
        ("store_retries", "error", "Requests to the object store that were tried again.", retries),
        ("events", "kind", "Events that were recorded.", events),
        ("errors", "error", "What ended a log's turn.", errors),
        ("removals_kept", "reason", "Times that a log came to keep all, by why.", kept),
    ):
        family = CounterMetricFamily(f"seawall_{name}", what, labels=[label])
        for labelled, count in counts.items():
            family.add_metric([labelled], count)
        yield family


def _gauge(name: str, what: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"seawall_log_{name}", what, labels=_LOG_LABELS)


def _counter(name: str, what: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"seawall_log_{name}", what, labels=_LOG_LABELS)
