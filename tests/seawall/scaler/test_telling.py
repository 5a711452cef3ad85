"""What the process says of itself: metrics, log lines, and settings that do not go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from seawall.metrics.collected import Collected
from seawall.scaler.metrics import collected
from seawall.scaler.run import Told, other_clusters, tls_of
from seawall.settings import SettingsRefused, load
from tests.workers.scaler.seen import Seen, options, partition
from tests.workers.scaler.world import QUICK, FakeGroups, desk, wait_until
from workers.scaler.chain import Link
from workers.scaler.desk import Desk
from workers.scaler.values import Evaluation


def metrics_of(at: Desk) -> dict[tuple[str, str], float]:
    registry = CollectorRegistry()
    registry.register(Collected(collected=lambda: collected(at)))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (each.name, each.labels.get("verdict", "")): each.value
        for family in families
        for each in family.samples
    }


def test_metrics_say_what_is_known_and_nothing_else() -> None:
    """An object that is not known has no lag, not a lag of zero; its verdict is `unknown`."""
    groups = FakeGroups(trouble="no coordinator")
    with desk(groups) as at:
        key, _ = at.opened("ns", "orders", QUICK)
        before = metrics_of(at)
        groups.trouble, groups.lag = None, 30
        wait_until(lambda: isinstance(at.word(key), Evaluation))
        after = metrics_of(at)

    assert before["seawall_scaler_known", ""] == 0
    assert before["seawall_scaler_verdict", "unknown"] == 1
    assert ("seawall_scaler_lag_records", "") not in before
    assert after["seawall_scaler_lag_records", ""] == 30
    assert (after["seawall_scaler_known", ""], after["seawall_scaler_verdict", "low"]) == (1, 1)
    assert after["seawall_scaler_samples_total", ""] >= 3


class Lines:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))

    warning = info


def links_of(seen: Seen, by: str) -> list[Link]:
    assert seen.window.last is not None
    return [
        Link(
            object_key="ns/orders/f",
            place=place,
            by=by,
            options=seen.options,
            sample=seen.window.last,
            state=seen.state,
            word=word,
        )
        for place, word in enumerate(seen.words)
    ]


def test_each_decision_and_each_new_alert_is_one_line_of_who_made_it() -> None:
    """A stalled partition is alerted once, however long it stands; what another replica wrote it says."""
    seen = Seen(options(stall_s=50.0, sustain_s=50.0))
    for turn in range(30):
        stuck = partition(0, committed=5, end=1_000 + 7 * turn)
        seen.see(stuck, partition(1, committed=turn, end=900 + 50 * turn))
    mine, other = Lines(), Lines()

    told, untold = Told(by="me", log=mine), Told(by="someone else", log=other)
    for link in links_of(seen, "me"):
        told(link)
        untold(link)

    events = [event for event, _ in mine.lines]
    assert events.count("scaler_moved") == 1
    alerts = [fields["alert"] for event, fields in mine.lines if event == "scaler_alert"]
    assert sum("partition 0 is stalled" in alert for alert in alerts) == 1
    assert other.lines == []


@pytest.mark.parametrize("text", ["eu", "eu=", "=f.toml", "default=f.toml", "eu=a.toml,eu=b.toml"])
def test_a_cluster_has_a_name_and_a_file(text: str) -> None:
    """Each name once, and none that is [kafka]'s own."""
    settings = load(environ={"SEAWALL_SCALER__CLUSTERS": text}).settings

    with pytest.raises(SettingsRefused, match=r"scaler\.clusters"):
        other_clusters(settings)


def test_tls_is_all_of_it_or_none() -> None:
    """A certificate without its key, or an authority alone, would not encrypt what was meant to be."""
    both = {"SEAWALL_SCALER__TLS_CERT": "c", "SEAWALL_SCALER__TLS_KEY": "k"}

    made = tls_of(load(environ=both).settings)

    assert made is not None
    assert (made.cert, made.key, made.client_ca) == (Path("c"), Path("k"), None)
    assert tls_of(load(environ={}).settings) is None
    for alone in ({"SEAWALL_SCALER__TLS_CERT": "c"}, {"SEAWALL_SCALER__TLS_CLIENT_CA": "a"}):
        with pytest.raises(SettingsRefused):
            tls_of(load(environ=alone).settings)
