"""A real Alertmanager: what we push fires until a run clears it, and it sends what we would have sent.

It is Debian's package `prometheus-alertmanager`; where there is none, these tests are skipped. A day is a
second here: an Alertmanager has no clock that could be set.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from audit_engine.alerts.endpoints import Endpoint, Format
from audit_engine.alerts.formats import alertmanager, body
from audit_engine.alerts.formats.words import moment
from audit_engine.alerts.threads import Standing, take
from seawall.local.ports import ReservedPort
from seawall.local.process import Child
from seawall.local.waiting import wait_until
from tests.audit_engine.alerts.news import Clock, Runs, deliverer, endpoint, opened, over, run
from tests.audit_engine.alerts.receiver import Receiver, receiver

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
DEADLINE_S = 20.0
DAY_S = 1.0
KEEPS_FIRING_S = 6 * DAY_S  # past the next run, by more than a busy machine may be late
DAYS = 7  # so that the end of the first push passes
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="there is no Alertmanager here: apt-get install prometheus-alertmanager"
)

CONFIG = """\
global:
  resolve_timeout: 1s
route:
  receiver: hook
  group_by: [incident]
  group_wait: 100ms
  group_interval: 100ms
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {url}
"""


@dataclass(frozen=True, slots=True)
class Alertmanager:
    url: str

    def alerts(self) -> dict[str, dict[str, Any]]:
        """What it knows, by the finding's id, or the alert's name where it is not ours."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=5) as answer:
            told = json.loads(answer.read())
        return {each["labels"].get("finding_id", each["labels"]["alertname"]): each for each in told}

    def push_without_end(self, name: str) -> None:
        """As a job would that knows nothing of its ways."""
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts",
            json.dumps([{"labels": {"alertname": name, "incident": name}}]).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=5).close()

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running(folder: Path, hook: str) -> Iterator[Alertmanager]:
    config = folder / "alertmanager.yml"
    config.write_text(CONFIG.format(url=hook))
    with ReservedPort() as port:
        child = Child(
            name="alertmanager",
            argv=[
                str(PROGRAM),
                f"--config.file={config}",
                f"--storage.path={folder / 'storage'}",
                f"--web.listen-address={port.address}",
                "--cluster.listen-address=",
            ],
            log=folder / "alertmanager.log",
            env=dict(os.environ),
        )
        child.start()
        try:
            found = Alertmanager(f"http://{port.address}")
            child.wait_until_ready(found.is_ready, wanted="ready", deadline_s=DEADLINE_S)
            yield found
        finally:
            child.stop()


def groups(receiving: Receiver, incident: str, *, alerts: int | None = None) -> list[dict[str, Any]]:
    """What it sent of an incident, in order; with `alerts` only what has so many."""
    told = (each.json for each in receiving.came)
    its = [each for each in told if each["groupLabels"].get("incident") == incident]
    return [each for each in its if alerts in (None, len(each["alerts"]))]


def is_resolved(receiving: Receiver, incident: str) -> Callable[[], bool]:
    return lambda: [each["status"] for each in groups(receiving, incident)][-1:] == ["resolved"]


def has_come(at_ms: int) -> Callable[[], bool]:
    return lambda: time.time() * 1000 >= at_ms


def until(condition: Callable[[], bool], wanted: str) -> None:
    wait_until(condition, name="alertmanager", wanted=wanted, deadline_s=DEADLINE_S)


def of_now() -> Clock:
    """A clock that an Alertmanager would not call wrong."""
    return Clock(int(time.time() * 1000))


@pytest.mark.slow
def test_it_fires_for_days_and_resolves_what_a_run_cleared(tmp_path: Path) -> None:
    """Past the end that it first had it fires without a break, and it ends by the word of a complete run."""
    since: dict[str, Any] = {"opened_ms": int(time.time() * 1000) - 60_000}
    child: dict[str, Any] = {"incident": "a", "parent": "a", **since}
    with receiver() as receiving, running(tmp_path, receiving.url) as real:
        keeps_ms = int(KEEPS_FIRING_S * 1000)
        target = endpoint(real.url, format=Format.ALERTMANAGER, signing=(), keeps_firing_ms=keeps_ms)
        runs = Runs(run(1, opened("a", **since), opened("b", **child)))
        first_end = ""
        for day in range(1, DAYS + 1):
            clock = of_now()
            ours = deliverer(tmp_path / "record", target, clock=clock)
            ours.take_in(runs)
            assert ours.deliver()["ops"].is_whole
            real.push_without_end(f"naive-{day}")
            first_end = first_end or real.alerts()["a"]["endsAt"]
            until(is_resolved(receiving, f"naive-{day}"), "the naive alert over by itself")
            until(has_come(clock.ms + int(DAY_S * 1000)), "the next day")
            assert real.alerts()["a"]["status"]["state"] == "active"
            runs.add(run(day + 1))
        assert moment(int(time.time() * 1000)) > first_end
        assert {each["status"] for each in groups(receiving, "a")} == {"firing"}

        ended: dict[str, Any] = {"ended_ms": int(time.time() * 1000)}
        last = [over("b", **child, **ended)], [over("a", **since, **ended)]
        runs.add(run(DAYS + 2, *last[0], is_complete=False), run(DAYS + 3, *last[1]))
        ours = deliverer(tmp_path / "record", target, clock=of_now())
        ours.take_in(runs)
        ours.deliver()
        until(is_resolved(receiving, "a"), "resolved")


def test_its_own_payload_and_ours_have_the_same_fields(tmp_path: Path) -> None:
    """Names, and for what is not about the receiver values too: fingerprint, labels, annotations, times."""
    since = {"opened_ms": int(time.time() * 1000) - 60_000}
    news = run(1, opened("a", **since), opened("b", incident="a", severity="E", **since))
    with receiver() as receiving, running(tmp_path, receiving.url) as real:
        clock = of_now()
        target = endpoint(real.url, format=Format.ALERTMANAGER, signing=())
        ours = deliverer(tmp_path / "record", target, clock=clock)
        ours.take_in(Runs(news))
        ours.deliver()
        # It takes the alerts of one push one by one, and as ours began longer ago than its group_wait, it
        # tells of the first at once (dispatch.go, aggrGroup.insert); of both an interval later.
        until(lambda: bool(groups(receiving, "a", alerts=2)), "both in one")
        its = groups(receiving, "a", alerts=2)[0]
        ends_at = real.alerts()["a"]["endsAt"]

    [message] = take(Standing(), news)
    hook = Endpoint(name="hook", format=Format.ALERTMANAGER_WEBHOOK, url="http://h")
    made = json.loads(body(hook, message))

    assert set(made) == set(its)
    assert {name for each in made["alerts"] for name in each} == {n for each in its["alerts"] for n in each}
    differing = {"alerts", "externalURL"}  # compared below; its own address
    assert {name: made[name] for name in set(made) - differing} == {
        name: its[name] for name in set(its) - differing
    }
    compared = ("status", "labels", "annotations", "endsAt", "fingerprint")
    by_print = [
        {each["fingerprint"]: [each[name] for name in compared] for each in told["alerts"]}
        for told in (made, its)
    ]
    assert by_print[0] == by_print[1]
    assert {_instant(each["startsAt"]) for each in its["alerts"]} == {
        _instant(each["startsAt"]) for each in made["alerts"]
    }
    # With its true length: past the next daily run, by two hours.
    assert _instant(ends_at) == datetime.fromtimestamp((clock.ms + 26 * 3_600_000) / 1000, tz=timezone.utc)
    assert alertmanager.fingerprint(made["alerts"][0]["labels"]) == made["alerts"][0]["fingerprint"]


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
