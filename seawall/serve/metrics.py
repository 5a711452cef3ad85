"""What the endpoint knows, as Prometheus metrics, made anew for each scrape from values at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from tiering.serve.timing import BOUNDS_S, Timing

# Of each thing that is counted, what it means; those of a limit say which.
COUNTED: Mapping[str, str] = {
    "connections": "Connections that were taken.",
    "connections_refused": "Connections over the limits, or while draining.",
    "requests": "Requests.",
    "requests_malformed": "Requests that are none; the connection was ended.",
    "requests_unknown": "Requests, or versions, that are not served; the connection was ended.",
    "requests_too_large": "Requests over the size limit; the connection was ended.",
    "requests_slow": "Requests that did not come to their end in time; the connection was ended.",
    "requests_paced": "Requests over the rate limit, answered later.",
    "request_waits": "Large requests that were read later, as others took the room that there is for them.",
    "clients_idle": "Connections that were ended for saying nothing.",
    "clients_slow": "Connections that were ended for not taking their answer.",
    "writes_refused": "Requests to write.",
    "reads_denied": "Requests of clients without READ.",
    "sasl_failed": "Clients that did not sign in.",
    "tier_fetches": "Fetched partitions, from the store.",
    "tier_bytes": "Bytes of records, from the store.",
    "tail_fetches": "Fetched partitions, from their leaders.",
    "tail_bytes": "Bytes of records, from leaders.",
    "handovers": "Partitions that a client had from the store, and then from their leader.",
    "seam_retries": "Fetches to come again: the leader had the offset no more, the table not yet.",
    "out_of_range": "Offsets outside of the log that were asked for.",
    "reads_refused": "Reads from the store that were not begun, as too many waited.",
    "reads_late": "Reads from the store that took too long.",
    "reads_failed": "Reads that the store failed.",
    "gaps_met": "Reads that came to offsets on record as lost.",
    "damaged": "Reads of objects that have other bytes than were stored. Nothing of them was served.",
    "missing": "Reads of objects that are not there.",
    "leaders_away": "Requests to leaders that did not answer.",
    "forwarded": "Requests of groups.",
    "budget_waits": "Answers that waited until others were taken.",
    "answers_cut": "Fetches that asked for more than one answer may have.",
    "answers_left": "Answers of leaders that were dropped, as their client did not come for them in time.",
    "turns_put_off": "Fetched partitions that were left to one of the next answers.",
    "waits_cut": "Fetches that wanted to wait longer than they may.",
    "offsets_queued": "Partitions of one request for offsets that waited for others of it.",
    "groups_put_off": "Groups over the limit of one lookup of coordinators, to be asked for again.",
    "cursors_dropped": "Reads that were to go on, and were dropped for others.",
    "ready_put_off": "Next answers that were not made ready, as others were.",
    "upstreams_dropped": "Connections to brokers that were closed for others of the same client.",
    "forgotten": "What was known of topics, groups and permissions, and dropped for other such.",
    "defects": "Connections that ended by a defect of Seawall.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeTold:
    """All that is told of an endpoint at one moment."""

    counts: Mapping[str, int] = field(default_factory=dict)
    timing: Timing = field(default_factory=Timing)
    clients: int = 0
    answers_bytes: int = 0
    requests_bytes: int = 0
    cache_hits: Mapping[str, int] = field(default_factory=dict)  # by where: memory, disk
    cache_misses: int = 0
    cache_corrupt: int = 0
    store_requests: int = 0
    store_bytes: int = 0
    store_joined: int = 0
    metadata_lag_offsets: int = 0


def serve_metrics(told: ServeTold) -> Iterator[Metric]:
    """One endpoint's."""
    seconds = HistogramMetricFamily(
        "seawall_serve_fetch_seconds",
        "How long fetches took, by where they were answered from.",
        labels=["from"],
    )
    for tier, counts in told.timing.counts.items():
        total, buckets = 0, []
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), counts, strict=True):
            total += count
            buckets.append((bound, total))
        seconds.add_metric([tier], buckets, told.timing.sums_s[tier])
    yield seconds
    for name, what in COUNTED.items():
        yield CounterMetricFamily(f"seawall_serve_{name}", what, value=told.counts.get(name, 0))
    hits = CounterMetricFamily(
        "seawall_serve_cache_hits", "Chunks that were at hand, by where.", labels=["where"]
    )
    for where, count in told.cache_hits.items():
        hits.add_metric([where], count)
    yield hits
    for name, what, value in (
        ("cache_misses", "Chunks that were not at hand.", told.cache_misses),
        (
            "cache_corrupt",
            "Chunks on the disk that were not what was put there; fetched anew.",
            told.cache_corrupt,
        ),
        ("store_requests", "Requests to the store.", told.store_requests),
        ("store_bytes", "Bytes from the store.", told.store_bytes),
        ("store_joined", "Requests to the store that others had under way.", told.store_joined),
    ):
        yield CounterMetricFamily(f"seawall_serve_{name}", what, value=value)
    for name, what, value in (
        ("clients", "Connections of clients.", told.clients),
        ("answers_bytes", "Bytes of answers that are on their way.", told.answers_bytes),
        ("requests_bytes", "Bytes of large requests that are sent or answered.", told.requests_bytes),
        ("metadata_lag_offsets", "Behind the end of the metadata topic.", told.metadata_lag_offsets),
    ):
        yield GaugeMetricFamily(f"seawall_serve_{name}", what, value=value)
