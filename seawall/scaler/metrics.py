"""What the scaler knows, as Prometheus metrics, made anew for each scrape from values at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from workers.scaler.desk import Counts, Desk, Unknown
from workers.scaler.options import Options
from workers.scaler.values import Evaluation, Verdict

_LABELS = ("object", "group", "topic")


def collected(desk: Desk) -> Iterable[Metric]:
    return scaler_metrics(desk.words(), desk.counts)


def scaler_metrics(
    words: Mapping[str, tuple[Options, Evaluation | Unknown]], counts: Counts
) -> Iterable[Metric]:
    """One label set an object."""
    known = _gauge("known", "1 where something may be said.")
    lag = _gauge("lag_records", "Records that wait, of the partitions that count, smoothed.")
    age = _gauge("lag_age_seconds", "So long the oldest of them has waited, at least.")
    replicas = _gauge("replicas", "Replicas that are wanted.")
    active = _gauge("active", "1 where at least one is.")
    sampled = _gauge("sampled_timestamp_seconds", "When the last sample was taken.")
    alerts = _gauge("alerts", "What a person has to see to.")
    verdict = GaugeMetricFamily(
        "seawall_scaler_verdict", "1 for the verdict in force.", labels=[*_LABELS, "verdict"]
    )
    for key, (options, word) in words.items():
        labels = [key.rpartition("/")[0], options.consumer_group, options.topic]
        is_known = isinstance(word, Evaluation)
        known.add_metric(labels, float(is_known))
        found = word.verdict if isinstance(word, Evaluation) else Verdict.UNKNOWN
        for each in Verdict:
            verdict.add_metric([*labels, each.name.lower()], float(each is found))
        if isinstance(word, Evaluation):
            lag.add_metric(labels, word.lag_records)
            age.add_metric(labels, word.age_s or 0.0)
            replicas.add_metric(labels, word.replicas)
            active.add_metric(labels, float(word.is_active))
            sampled.add_metric(labels, word.at_s)
            alerts.add_metric(labels, len(word.alerts))
    yield from (known, lag, age, replicas, active, sampled, alerts, verdict)
    for name, value, what in (
        ("samples", counts.samples, "Looks at a group."),
        ("unseen", counts.unseen, "Looks that came to nothing."),
        ("unwritten", counts.unwritten, "Links that did not get into the shared topic."),
        ("overtaken", counts.overtaken, "Links for a place that another replica had taken."),
        ("moves", counts.moves, "Scalings, out and in, of all objects."),
    ):
        yield CounterMetricFamily(f"seawall_scaler_{name}", what, value=value)


def _gauge(name: str, what: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"seawall_scaler_{name}", what, labels=_LABELS)
