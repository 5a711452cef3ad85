"""`seawall alerts`: as a shell sees it, with a receiver on this machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from audit_engine.alerts.errors import NoSuchEndpoint, NoSuchMessage
from audit_engine.alerts.record import Record
from seawall.alerts.delivery import deliver, take_in
from seawall.connections import NotSet
from seawall.settings import Settings, load
from tests.audit_engine.alerts.news import T0_MS, Runs, endpoint, opened, run
from tests.audit_engine.alerts.receiver import receiver
from tests.seawall.cli.calling import Called, call

SECRET = f"whsec_{base64.b64encode(b's' * 32).decode()}"


def environ(folder: Path, url: str, **others: object) -> dict[str, str]:
    table = {
        "name": "ops",
        "format": "native",
        "url": url,
        "secrets": ["env:OPS_SECRET"],
        "allow_private": True,
        **others,
    }
    return {
        "SEAWALL_ALERTS__ENDPOINTS": json.dumps([table]),
        "SEAWALL_ALERTS__STATE_DIR": str(folder),
        "SEAWALL_ALERTS__DELIVER_S": "0",
        "OPS_SECRET": SECRET,
    }


def taken_in(folder: Path) -> None:
    """Two messages wait for `ops`."""
    record = Record(folder)
    target = endpoint("https://unused.example")
    record.plan(target)
    record.take(run(1, opened("a"), opened("b")), T0_MS)
    record.plan(target)
    record.close()


def listed(around: dict[str, str], *flags: str) -> tuple[Called, list[tuple[str, str]]]:
    ended = call("alerts", "list", "--json", *flags, environ=around)
    return ended, [(each["incident"], each["state"]) for each in json.loads(ended.stdout)["messages"]]


def test_what_waits_is_delivered_and_listed(tmp_path: Path) -> None:
    """First nothing arrives and the exit code says so; then all does."""
    taken_in(tmp_path)
    with receiver((500, {}), (500, {})) as receiving:
        around = environ(tmp_path, receiving.url)
        first = call("alerts", "deliver", "--known-only", environ=around)
        waiting, states = listed(around)
        call("alerts", "test", "ops", environ=around)  # it answers: what waits is due at once
        again = call("alerts", "deliver", "--known-only", environ=around)
        done, _ = listed(around)
        _, still_open = listed(around, "--open")
        table = call("alerts", "list", environ=around)

    assert (first.status, waiting.status, again.status, done.status) == (3, 3, 0, 0)
    assert states == [("b", "waits"), ("a", "waits")]
    assert "2 waiting" in first.stdout
    assert "alerts to ops: 2 delivered" in again.stdout
    assert still_open == []
    assert "critical" in table.stdout
    assert [each.json["type"] for each in receiving.taken] == ["incident.test", *["incident.opened"] * 2]


def test_replay_sends_again_under_the_same_id(tmp_path: Path) -> None:
    """By id, or all that failed; what is not known is refused."""
    taken_in(tmp_path)
    with receiver((400, {})) as receiving:
        around = environ(tmp_path, receiving.url)
        call("alerts", "deliver", "--known-only", environ=around)
        failed = call("alerts", "replay", "ops", "--failed", environ=around)
        by_id = call("alerts", "replay", "ops", receiving.came[0].id, environ=around)
        unknown = call("alerts", "replay", "ops", "msg_none", environ=around)
        stranger = call("alerts", "replay", "other", "--failed", environ=around)
        neither = call("alerts", "replay", "ops", environ=around)

    assert (failed.status, by_id.status, neither.status) == (0, 0, 2)
    assert (unknown.status, stranger.status) == (NoSuchMessage.exit_code, NoSuchEndpoint.exit_code)
    assert [each.id for each in receiving.came].count(receiving.came[0].id) == 3


def test_a_test_says_what_came_back(tmp_path: Path) -> None:
    """Once, marked as what it is; one that is not taken exits with 1; neither shows a secret."""
    with receiver((403, {"body": "who are you"})) as receiving:
        around = environ(tmp_path, receiving.url)
        refused = call("alerts", "test", "ops", environ=around)
        taken = call("alerts", "test", environ=around)

    assert (refused.status, taken.status) == (1, 0)
    assert "NOT TAKEN, 403 who are you" in refused.stdout
    assert receiving.taken[0].json["type"] == "incident.test"
    for ended in (refused, taken):
        assert "hooks/seawall" not in ended.stdout
        assert SECRET not in ended.stdout + ended.stderr


@pytest.mark.parametrize("kind", ["pagerduty", "slack", "alertmanager", "alertmanager-webhook"])
def test_a_test_in_each_format(tmp_path: Path, kind: str) -> None:
    """PagerDuty is told that it is over, too."""
    with receiver() as receiving:
        url = "env:ADDRESS" if kind == "slack" else receiving.url
        around = environ(tmp_path, url, format=kind, routing_key="env:OPS_SECRET")
        ended = call("alerts", "test", environ=around | {"ADDRESS": receiving.url})

    assert ended.status == 0, ended.stdout + ended.stderr
    assert len(receiving.taken) == (2 if kind == "pagerduty" else 1)
    assert "nothing is wrong" in receiving.taken[0].body.decode()


def test_without_a_folder_or_an_endpoint_it_says_what_to_set(tmp_path: Path) -> None:
    """No endpoint is no error; no folder for the record is."""
    nowhere = call("alerts", "list")
    nobody = call("alerts", "deliver", "--known-only", environ={"SEAWALL_ALERTS__STATE_DIR": str(tmp_path)})

    assert nowhere.status == NotSet.exit_code
    assert "SEAWALL_ALERTS__STATE_DIR" in nowhere.stderr
    assert (nobody.status, nobody.stdout) == (0, "no endpoint is set: docs/ALERTS.md\n")


def after_run(settings: Settings, outbox: Runs, say: Callable[[str], None]) -> bool:
    """As `seawall audit run` does at its end."""
    is_taken = take_in(settings, outbox, say)
    return is_taken and deliver(settings, say)


def settings_of(around: dict[str, str]) -> Settings:
    return load(environ={name: each for name, each in around.items() if name.startswith("SEAWALL_")}).settings


def test_a_run_tells_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its end, from the outbox; without endpoints nothing is made, and nothing is missing."""
    said: list[str] = []
    with receiver() as receiving:
        around = environ(tmp_path / "record", receiving.url)
        monkeypatch.setenv("OPS_SECRET", SECRET)
        is_whole = after_run(settings_of(around), Runs(run(1, opened("a"))), said.append)

    assert is_whole
    assert said == ["alerts to ops: 1 delivered"]
    assert len(receiving.taken) == 1
    assert after_run(load(environ={}).settings, Runs(), said.append)
    assert len(said) == 1


def test_what_is_wrong_with_alerts_keeps_no_run_from_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that is missing, a folder that is a file: said, and not raised."""
    said: list[str] = []
    around = environ(tmp_path / "record", "https://h.example/x")
    monkeypatch.delenv("OPS_SECRET", raising=False)
    assert not after_run(settings_of(around), Runs(), said.append)

    (tmp_path / "record").write_text("a file")
    monkeypatch.setenv("OPS_SECRET", SECRET)
    assert not after_run(settings_of(around), Runs(), said.append)

    assert "env:OPS_SECRET" in said[0]
    assert "cannot be used" in said[1]


def test_another_that_delivers_is_no_failure_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has what the run left, and delivers it."""
    said: list[str] = []
    around = environ(tmp_path, "https://h.example/x")
    monkeypatch.setenv("OPS_SECRET", SECRET)
    with Record(tmp_path).delivering():
        assert after_run(settings_of(around), Runs(run(1, opened("a"))), said.append)

    assert "another process delivers" in said[0]
    assert Record(tmp_path).taken() == {1: "attempt-1"}
