"""A deliverer by the settings, and what a run does with one at its end.

Owns the wiring: record, endpoints, network, clock and chance. Nothing of it keeps a run from its verdict:
what is wrong with alerts is said, and the run's exit code says that it was not all.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from audit_engine.alerts.deliverer import Delivered, Deliverer, Means
from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.errors import DeliveryUnderWay
from audit_engine.alerts.http import HttpTransport
from audit_engine.alerts.news import Outbox
from audit_engine.alerts.record import Record
from seawall.alerts.endpoints import endpoints_of
from seawall.connections import NotSet
from seawall.settings import Settings
from seawall.version import version
from tiering.errors import StatedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """What the verbs work with."""

    record: Record
    endpoints: list[Endpoint]
    deliverer: Deliverer


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def state_dir(settings: Settings) -> Path:
    """Raises NotSet."""
    if settings.alerts.state_dir is None:
        raise NotSet(
            setting="alerts.state_dir",
            what="folder for the record of alerts, which says what was told to whom",
            variable="SEAWALL_ALERTS__STATE_DIR",
            flag="--state-dir FOLDER",
        )
    return Path(settings.alerts.state_dir)


@contextmanager
def opened(settings: Settings, *, environ: Mapping[str, str] | None = None) -> Iterator[Alerts]:
    """Raises AlertError, NotSet."""
    folder = state_dir(settings)
    endpoints = endpoints_of(settings, os.environ if environ is None else environ)
    record = Record(folder)
    try:
        means = Means(now_ms=now_ms, chance=random.random, wait_s=time.sleep, version=version() or "source")
        yield Alerts(
            record=record,
            endpoints=endpoints,
            deliverer=Deliverer(record, endpoints, HttpTransport(), means),
        )
    finally:
        record.close()


def take_in(settings: Settings, outbox: Outbox, say: Callable[[str], None]) -> bool:
    """What runs have for people, onto the record, where endpoints are set. Whether it could be."""

    def taken(alerts: Alerts) -> bool:
        alerts.deliverer.take_in(outbox)
        return True

    return not settings.alerts.endpoints or _tried(settings, taken, say)


def deliver(settings: Settings, say: Callable[[str], None]) -> bool:
    """What is on record, where endpoints are set. Whether all of it arrived, or another delivers it."""

    def delivered(alerts: Alerts) -> bool:
        until_ms = now_ms() + max(1, settings.alerts.deliver_s) * 1000
        return said(alerts.deliverer.deliver(until_ms=until_ms, stop_ms=until_ms), say)

    return not settings.alerts.endpoints or _tried(settings, delivered, say)


def _tried(settings: Settings, act: Callable[[Alerts], bool], say: Callable[[str], None]) -> bool:
    try:
        with opened(settings) as alerts:
            return act(alerts)
    except DeliveryUnderWay as other:
        say(str(other))
        return True
    except (StatedError, OSError) as failed:
        say(f"alerts were not delivered: {failed}")
        return False


def said(told: Mapping[str, Delivered], say: Callable[[str], None]) -> bool:
    """What came of it, in words; whether everything arrived."""
    for name, each in told.items():
        parts = [f"{each.sent} delivered"]
        parts += [f"{each.waiting} waiting"] if each.waiting else []
        parts += [f"{each.refused} not taken"] if each.refused else []
        if each.disabled is not None:
            parts.append(f"DISABLED ({each.disabled}): `seawall alerts test {name}` turns it on again")
        elif each.trouble is not None:
            parts.append(f"last: {each.trouble}")
        say(f"alerts to {name}: {', '.join(parts)}")
    return all(each.is_whole for each in told.values())
