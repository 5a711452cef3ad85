"""Findings and runs as tests of alerts make them, an outbox in memory, and a clock that is set by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from audit_engine.alerts.deliverer import Deliverer, Means
from audit_engine.alerts.endpoints import Endpoint, Format
from audit_engine.alerts.http import HttpTransport
from audit_engine.alerts.news import Changed, Page, RunNews
from audit_engine.alerts.record import Record
from audit_engine.alerts.transport import Transport

T0_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000
SECRET = b"0123456789abcdef0123456789abcdef"


def finding(name: str, **others: Any) -> dict[str, Any]:
    """An open critical finding; its incident is its own."""
    return {
        "finding_id": name,
        "rule_id": "START-02",
        "severity": "C",
        "subject": "c1/T1/0",
        "anchor": "0",
        "ranges": [[0, 3000]],
        "status": "open",
        "opened_ms": T0_MS,
        "ended_ms": None,
        "note": f"what {name} is about",
        "incident": name,
        "parent": None,
        "recoverable_offsets": 3000,
        "lost_offsets": 0,
        "held_by": [],
        "suppressed_by": None,
        **others,
    }


def opened(name: str, **others: Any) -> Changed:
    return Changed(change="opened", finding=finding(name, **others))


def changed(name: str, **others: Any) -> Changed:
    return Changed(change="changed", finding=finding(name, **others))


def over(name: str, how: str = "resolved", **others: Any) -> Changed:
    ended = {"status": how, "ended_ms": T0_MS + DAY_MS, **others}
    return Changed(change=how, finding=finding(name, **ended))


def run(number: int, *changes: Changed, is_complete: bool = True, attempt: str = "") -> RunNews:
    """A run a day, its changes by incident."""
    by_incident: dict[str, list[Changed]] = {}
    for each in changes:
        by_incident.setdefault(each.finding["incident"], []).append(each)
    return RunNews(
        run=number,
        attempt=attempt or f"attempt-{number}",
        as_of_ms=T0_MS + number * DAY_MS,
        is_complete=is_complete,
        pages=tuple(Page(incident=name, changes=tuple(each)) for name, each in sorted(by_incident.items())),
    )


class Runs:
    """An outbox in memory."""

    def __init__(self, *runs: RunNews) -> None:
        self.runs = {each.run: each for each in runs}

    def add(self, *runs: RunNews) -> None:
        self.runs |= {each.run: each for each in runs}

    def since(self, taken: Mapping[int, str]) -> list[RunNews]:
        found = sorted(self.runs.items())
        return [each for number, each in found if taken.get(number) != each.attempt]


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self, now_ms: int = T0_MS) -> None:
        self.ms = now_ms
        self.waited_s: list[float] = []

    def now_ms(self) -> int:
        return self.ms

    def wait_s(self, seconds: float) -> None:
        self.waited_s.append(seconds)
        self.ms += round(seconds * 1000)


def endpoint(url: str, **others: Any) -> Endpoint:
    """A native one on this machine, signed, that is given little time."""
    members: dict[str, Any] = {
        "name": "ops",
        "format": Format.NATIVE,
        "url": url,
        "signing": (SECRET,),
        "is_private_allowed": True,
        "timeout_s": 5.0,
    }
    return Endpoint(**{**members, **others})


def deliverer(
    folder: Path,
    *endpoints: Endpoint,
    clock: Clock,
    transport: Transport | None = None,
    is_new: bool = False,
) -> Deliverer:
    """`is_new`: no process before knew these endpoints."""
    means = Means(now_ms=clock.now_ms, chance=random.Random(1).random, wait_s=clock.wait_s, version="test")
    record = Record(folder)
    for each in () if is_new else endpoints:
        record.plan(each)
    return Deliverer(record, endpoints, transport or HttpTransport(), means)
