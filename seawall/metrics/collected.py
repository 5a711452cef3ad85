"""The one way from metric families to a registry of prometheus_client's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.core import Metric


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # the registry knows collectors by identity
class Collected:
    """A collector of whatever `collected` gives at each scrape."""

    collected: Callable[[], Iterable[Metric]]

    def collect(self) -> Iterable[Metric]:
        yield from self.collected()
