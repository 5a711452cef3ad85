"""One look at one place that says its metrics: host:port, a URL, or a file of `seawall audit metrics`.

Refuses nothing: what cannot be read is a look that came to nothing, and why.
"""

from __future__ import annotations

import time
import urllib.request
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

BYTES_MAX = 64 << 20  # of an answer: some hundred thousand logs
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """`samples` by their names. `trouble`: why there are none; empty if there are."""

    place: str
    at_s: float
    samples: Mapping[str, Sequence[tuple[Labels, float]]] = field(default_factory=dict)
    trouble: str = ""

    def of(self, name: str) -> Sequence[tuple[Labels, float]]:
        return self.samples.get(name, ())

    def one(self, name: str) -> float | None:
        found = self.of(name)
        return found[0][1] if found else None

    def total(self, name: str) -> float:
        return sum(value for _, value in self.of(name))


def scrape(place: str, *, timeout_s: float) -> Look:
    """A place is a file if it has a slash and no scheme."""
    at_s = time.monotonic()
    try:
        text = Path(place).read_text("utf-8") if _is_file(place) else _fetched(place, timeout_s)
        samples: dict[str, list[tuple[Labels, float]]] = defaultdict(list)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples[sample.name].append((sample.labels, sample.value))
    except (OSError, ValueError) as failed:  # URLError is an OSError; what cannot be parsed a ValueError
        why = getattr(failed, "reason", None) or getattr(failed, "strerror", None) or failed
        return Look(place=place, at_s=at_s, trouble=str(why) or type(failed).__name__)
    if not any(name.startswith("seawall_") for name in samples):
        return Look(place=place, at_s=at_s, trouble="what it says is not Seawall's")
    return Look(place=place, at_s=at_s, samples=samples)


def scrape_all(places: Sequence[str], *, timeout_s: float) -> list[Look]:
    """All at once: one that hangs keeps nobody waiting longer than its own time."""
    with ThreadPoolExecutor(max_workers=min(32, len(places))) as pool:
        return list(pool.map(lambda place: scrape(place, timeout_s=timeout_s), places))


def _is_file(place: str) -> bool:
    return "/" in place and "://" not in place


def _fetched(place: str, timeout_s: float) -> str:
    url = place if "://" in place else f"http://{place}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{parts.scheme}:// is no address of metrics")
    if parts.path in ("", "/"):
        url = url.rstrip("/") + "/metrics"
    with urllib.request.urlopen(url, timeout=timeout_s) as answer:
        body: bytes = answer.read(BYTES_MAX + 1)
    if len(body) > BYTES_MAX:
        raise ValueError(f"more than {BYTES_MAX >> 20} MiB of metrics")
    return body.decode("utf-8")
