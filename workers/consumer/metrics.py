"""A consumer's snapshot as Prometheus metrics: one for each field, with its name, made at each scrape.

`workers_` and the field's name; counts end in `_total`, what is of a partition has its labels. Nothing is
renamed, so whoever has read a snapshot knows the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from workers.consumer.snapshot import Snapshot

PREFIX = "workers_"
WHOLE = (
    "in_flight_records",
    "in_flight_bytes",
    "queue_depth",
    "running",
    "retrying",
    "parked",
    "burying",
    "lanes",
    "is_full",
)
OF_PARTITION = (
    "epoch",
    "position",
    "commit_point",
    "committed",
    "in_flight_records",
    "ahead_records",
    "gaps",  # how many, at most as many as a snapshot shows
    "blocking_offset",
    "blocking_age_s",
    "paused",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # the registry knows collectors by identity
class ConsumerMetrics:
    """A collector: `snapshot` is a consumer's or a supervisor's; None between two runs gives no metric."""

    snapshot: Callable[[], Snapshot | None]
    group: str

    def collect(self) -> Iterable[Metric]:
        found = self.snapshot()
        if found is None:
            return
        for name in WHOLE:
            gauge = GaugeMetricFamily(PREFIX + name, _help(name), labels=["group"])
            gauge.add_metric([self.group], float(getattr(found, name)))
            yield gauge
        for name, count in found.counts.items():
            counter = CounterMetricFamily(PREFIX + name, _help(name), labels=["group"])
            counter.add_metric([self.group], count)
            yield counter
        for name in OF_PARTITION:
            yield self._of_partitions(name, found)

    def _of_partitions(self, name: str, found: Snapshot) -> Metric:
        gauge = GaugeMetricFamily(
            f"{PREFIX}partition_{name}", _help(name), labels=["group", "topic", "partition"]
        )
        for each in found.partitions:
            value = getattr(each, name)
            if value is not None:
                number = len(value) if isinstance(value, tuple) else float(value)
                gauge.add_metric([self.group, each.partition.topic, str(each.partition.number)], number)
        return gauge


def _help(name: str) -> str:
    return f"`{name}` of a consumer's snapshot; docs/WORKERS.md says what it is."
