"""Every metric that a component has, found by asking its own collectors over nothing.

Owns the list of components. A collector that makes a family only where there is something to say would be
missed: they all make their families first, and a test holds a live agent's against this list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from prometheus_client.core import Metric

from audit_engine.spool import SpoolCounters
from audit_engine.topic.kafka import PublisherStatus
from seawall.agent.metrics import AgentMetrics, Tally
from seawall.agent.observing import observer_metrics
from seawall.agent.publishing import publishing_metrics
from seawall.agent.watching import outlook_metrics
from seawall.metrics.audit import AuditTold, audit_metrics
from seawall.scaler.metrics import scaler_metrics
from seawall.serve.metrics import ServeTold, serve_metrics
from tiering.uploader.holder import HoldTotals
from workers.consumer.metrics import ConsumerMetrics
from workers.consumer.snapshot import Counts, Snapshot
from workers.scaler.desk import Counts as DeskCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One metric. `name` as it is scraped, so a counter's ends in _total."""

    component: str
    name: str
    kind: str
    labels: tuple[str, ...]
    words: str


def inventory() -> tuple[Described, ...]:
    return tuple(_inventory())


def component_words() -> dict[str, str]:
    """What each component is, in the order of `inventory`."""
    return {name: words for name, (words, _) in _COMPONENTS.items()}


def _inventory() -> Iterator[Described]:
    for component, (_, families) in _COMPONENTS.items():
        for each in families():
            yield Described(
                component=component,
                name=each.name + ("_total" if each.type == "counter" else ""),
                kind=each.type,
                labels=tuple(getattr(each, "_labelnames", ())),
                words=each.documentation,
            )


def _agent() -> Iterable[Metric]:
    nothing = AgentMetrics(
        statuses=dict,
        held=lambda: HoldTotals(count=0, size_bytes=0, pinned_bytes=0, refused_count=0),
        metadata_lag=lambda: None,
        doubts=dict,
        tally=Tally(),
        now_ms=lambda: 0,
    )
    yield from nothing.collect()
    yield from outlook_metrics(())
    spool = SpoolCounters(
        emitted=0,
        lost=0,
        acknowledged=0,
        pending=0,
        pending_bytes=0,
        kept_bytes=0,
        limit_bytes=0,
        oldest_pending_ms=0,
        trouble=None,
    )
    published = PublisherStatus(published=0, in_flight=0, failures=0, trouble=None)
    yield from publishing_metrics(spool, published)
    yield from observer_metrics(())


def _audit() -> Iterable[Metric]:
    return audit_metrics(AuditTold(run=None, findings=(), worries=(), now_ms=0))


def _scaler() -> Iterable[Metric]:
    return scaler_metrics({}, DeskCounts())


def _serve() -> Iterable[Metric]:
    return serve_metrics(ServeTold())


def _workers() -> Iterable[Metric]:
    nothing = Snapshot(
        partitions=(),
        in_flight_records=0,
        in_flight_bytes=0,
        queue_depth=0,
        running=0,
        retrying=0,
        parked=0,
        burying=0,
        lanes=0,
        is_full=False,
        counts=asdict(Counts()),
    )
    return ConsumerMetrics(snapshot=lambda: nothing, group="").collect()


_Families = Callable[[], Iterable[Metric]]
_COMPONENTS: dict[str, tuple[str, _Families]] = {
    "agent": ("`seawall agent`, beside each broker; `/metrics` at its `listen`", _agent),
    "audit": ("the audit's tables; `seawall audit metrics --out FILE`", _audit),
    "scaler": ("`seawall scaler`; `/metrics` at its `metrics_listen`", _scaler),
    "serve": ("`seawall serve`; `/metrics` at its `metrics_listen`", _serve),
    "workers": ("the parallel consumer, wherever it is put to work", _workers),
}
