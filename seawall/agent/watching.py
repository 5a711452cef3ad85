"""The early warning as the agent runs it: a look now and then, metrics from the last one.

Owns the metrics' names. Infinite seconds are Prometheus's own way to say never.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily, Metric

from rules.identity import LogId
from tiering.retention.warning import Seen
from tiering.retention.watch import Outlook, RetentionWatch

_LABELS = ("topic", "partition", "topic_id")


@dataclass(slots=True)
class Watching:
    """The last outlook of each log led here."""

    watch: RetentionWatch
    outlooks: Mapping[LogId, Outlook] = field(default_factory=dict)

    def run_once(self) -> None:
        self.outlooks = self.watch.run_once()

    def metrics(self) -> Iterator[Metric]:
        return outlook_metrics(list(self.outlooks.values()))


def outlook_metrics(outlooks: Iterable[Outlook]) -> Iterator[Metric]:
    """How long there is, and how long the upload needs."""
    expires = _gauge("retention_reaches_frontier_seconds", "Until the broker may delete what is not copied.")
    copied = _gauge("copied_in_seconds", "Until all that is closed is copied, at the present rate.")
    lag = _gauge("lag_seconds", "Age of the newest record of the oldest closed segment not copied.")
    overtaking = _gauge("retention_overtaking", "1 while local retention is nearer than the upload.")
    unknown = _gauge("retention_outlook_unknown", "1 while that could not be told at the last look.")
    for outlook in outlooks:
        labels = [outlook.topic, str(outlook.log.partition), outlook.log.topic_id]
        unknown.add_metric(labels, float(bool(outlook.unknown)))
        if outlook.watched is not None:
            lag.add_metric(labels, _lag_s(outlook.watched.last))
        approach = outlook.approach
        if approach is not None:
            expires.add_metric(labels, approach.expires_in_s)
            copied.add_metric(labels, approach.copied_in_s)
            overtaking.add_metric(labels, float(approach.is_overtaking))
    yield from (expires, copied, lag, overtaking, unknown)


def _lag_s(seen: Seen) -> float:
    for piece in seen.pieces:
        if piece.end_offset is not None and piece.end_offset > seen.frontier:
            return max(0, seen.at_ms - piece.newest_ms) / 1000
    return 0.0


def _gauge(name: str, what: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"seawall_log_{name}", what, labels=_LABELS)
