"""A message in each format: what its receiver's own rules ask of it, and what fits."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from audit_engine.alerts.endpoints import Format
from audit_engine.alerts.formats import body, native, pagerduty, slack
from audit_engine.alerts.formats.alertmanager import PUSH_ALERTS_MAX, fingerprint, pushed, pushes
from audit_engine.alerts.message import SUMMARY_CHARS, Message
from audit_engine.alerts.news import Changed, RunNews
from audit_engine.alerts.threads import Standing, take
from rules.catalogue import rule
from tests.audit_engine.alerts.news import T0_MS, changed, endpoint, finding, opened, over, run

FORMATS = [each for each in Format if each is not Format.ALERTMANAGER]


def told(*runs: RunNews) -> Message:
    """The last message of these runs."""
    standing = Standing()
    return [message for each in runs for message in take(standing, each)][-1]


def made(message: Message, kind: Format, **others: Any) -> Any:
    target = replace(endpoint("https://hooks.example.com/x"), format=kind, routing_key="k" * 32, **others)
    return json.loads(body(target, message))


def large(count: int, note: str) -> Message:
    children = {"incident": "root", "parent": "root", "note": note}
    return told(run(1, opened("root"), *(opened(f"f{number:04}", **children) for number in range(count))))


def test_native_says_everything() -> None:
    """Type, time and data; each finding with its remedy, whole."""
    shown = made(told(run(1, opened("a"))), Format.NATIVE)

    assert (shown["type"], shown["timestamp"]) == ("incident.opened", "2027-01-16T08:00:00.000Z")
    [only] = shown["data"]["findings"]
    assert only["finding_id"] == shown["data"]["incident"] == "a"
    assert (only["severity"], only["remedy"]) == ("critical", rule("START-02").remedy)
    assert set(finding("a")) <= set(only)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_critical_alert_says_what_a_hold_cannot_stop(kind: Format) -> None:
    """In every format: the broker that can be elected, and the verb that says more; not of a lesser one."""
    grave = opened("a", rule_id="START-04", subject="c1/T1/0/replica 3")

    def of(change: Changed) -> str:
        return json.dumps(made(told(run(1, change)), kind))

    assert "A hold does not keep broker 3 from being elected" in of(grave)
    assert "seawall remediate a" in of(opened("a"))
    assert "A hold does not" not in of(opened("a", severity="E"))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_critical_alert_names_the_broker_that_led(kind: Format) -> None:
    """The one whose start the others follow, where a run knew it; and it is the same message all the same."""

    def of(change: Changed) -> str:
        return json.dumps(made(told(run(1, change)), kind))

    named, unnamed = opened("a", leader_id=2), opened("a")

    assert "broker 2 led as of this run" in of(named)
    assert "led as of this run" not in of(unnamed) + of(opened("a", severity="E", leader_id=2))
    assert told(run(1, named)).id == told(run(1, unnamed)).id


@pytest.mark.parametrize("subject", ["c1/T1", "c1/emitter 1/agent", "audit"])
def test_a_finding_about_no_log_says_nothing_of_holds(subject: str) -> None:
    """Nothing of it can be held: a topic's settings, an emitter, the auditor itself."""
    assert "A hold does not" not in json.dumps(
        made(told(run(1, opened("a", subject=subject))), Format.NATIVE)
    )


def counted(kind: Format, shown: Any) -> tuple[int, int]:
    """How many findings a body leaves out, and how many it names."""
    if kind is Format.NATIVE:
        return shown["data"]["findings_truncated"], len(shown["data"]["findings"])
    if kind is Format.ALERTMANAGER_WEBHOOK:
        return shown["truncatedAlerts"], len(shown["alerts"])
    if kind is Format.PAGERDUTY:
        details = shown["payload"]["custom_details"]
        return details["findings_truncated"], len(details["findings"])
    below = shown["blocks"][-1]["elements"][0]["text"]
    return int(re.findall(r"(\d+) findings not shown", below)[0]), len(shown["blocks"]) - 2


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("note", ["short", "long and ünïcode " * 400])
def test_what_has_no_room_is_counted(kind: Format, note: str) -> None:
    """No body grows beyond its receiver's bound; the worst are shown, the rest is a number."""
    message = large(500, note)
    target = replace(endpoint("https://h.example/"), format=kind, routing_key="k" * 32, findings_max=100)

    sent = body(target, message)

    limits = {Format.NATIVE: native.BODY_BYTES_MAX, Format.SLACK: slack.BODY_BYTES_MAX}
    assert len(sent) <= limits.get(kind, pagerduty.BODY_BYTES_MAX * 2)
    shown = json.loads(sent)
    left_out, named = counted(kind, shown)
    assert left_out + named == 501
    assert 0 < named <= 100


@pytest.mark.parametrize("kind", FORMATS)
def test_a_body_is_the_same_when_it_is_sent_again(kind: Format) -> None:
    """An id stands for one content."""
    message = large(30, "note")
    target = replace(endpoint("https://h.example/"), format=kind, routing_key="k" * 32)

    assert body(target, message) == body(target, message)


def test_pagerduty_triggers_and_resolves_by_the_incident() -> None:
    """Within what its API takes: the key, the summary, the severity; a resolve needs no payload."""
    begun = made(told(run(1, opened("a", severity="E", note="x" * 3000))), Format.PAGERDUTY)
    ended = made(told(run(1, opened("a")), run(2, over("a"))), Format.PAGERDUTY)

    assert (begun["event_action"], begun["dedup_key"], begun["routing_key"]) == ("trigger", "a", "k" * 32)
    assert len(begun["payload"]["summary"]) == SUMMARY_CHARS
    assert (begun["payload"]["severity"], begun["payload"]["source"]) == ("error", "c1")
    assert ended == {"routing_key": "k" * 32, "dedup_key": "a", "event_action": "resolve"}
    assert len(begun["dedup_key"]) <= 255


def test_pagerduty_hears_of_no_resolve_while_something_is_open() -> None:
    """What changes triggers again."""
    child = {"incident": "a", "parent": "a"}
    message = told(run(1, opened("a"), opened("b", **child)), run(2, over("a")))

    assert made(message, Format.PAGERDUTY)["event_action"] == "trigger"


def test_slack_escapes_what_would_be_markup() -> None:
    """A note calls nobody and makes no link; an end is said, as Slack knows none."""
    begun = made(told(run(1, opened("a", note="<!channel> & <http://x|y>"))), Format.SLACK)
    ended = made(told(run(1, opened("a")), run(2, over("a"))), Format.SLACK)

    assert "<!" not in json.dumps(begun)
    assert "&lt;!channel&gt; &amp;" in begun["text"]
    assert ended["text"].startswith(":white_check_mark:")
    assert len(begun["blocks"]) <= 50


def test_a_finding_that_grew_worse_fires_as_both_until_it_ends() -> None:
    """An alert is its labels: the one that was an error is over when the finding is, not before."""
    runs = [run(1, opened("a", severity="E")), run(2, changed("a"))]
    grown = made(told(*runs), Format.ALERTMANAGER_WEBHOOK)
    ended = made(told(*runs, run(3, over("a"))), Format.ALERTMANAGER_WEBHOOK)

    for shown, status in ((grown, "firing"), (ended, "resolved")):
        assert [each["labels"]["severity"] for each in shown["alerts"]] == ["error", "critical"]
        assert {each["status"] for each in shown["alerts"]} == {shown["status"]} == {status}
    assert [each["fingerprint"] for each in grown["alerts"]] == [
        each["fingerprint"] for each in ended["alerts"]
    ]
    assert {each["endsAt"] for each in ended["alerts"]} == {"2027-01-16T08:00:00.000Z"}


def test_an_alert_never_ends_before_it_begins() -> None:
    """An Alertmanager refuses the whole request for one such."""
    ended = over("a", opened_ms=T0_MS, ended_ms=T0_MS - 5).finding

    alert = pushed(ended, "a", "C", is_open=False, until_ms=0)

    assert alert["startsAt"] < alert["endsAt"]


def test_a_fingerprint_is_prometheus_own() -> None:
    """FNV-1a over no labels is its own beginning; order does not matter."""
    assert fingerprint({}) == "cbf29ce484222325"
    assert fingerprint({"a": "1", "b": "2"}) == fingerprint({"b": "2", "a": "1"})


def test_pushes_are_as_many_requests_as_it_takes() -> None:
    """Nothing is left out, and none is too large; nothing to push is no request."""
    alerts = [{"labels": {"n": str(number)}} for number in range(PUSH_ALERTS_MAX + 1)]

    bodies = [json.loads(each) for each in pushes(alerts)]

    assert [each for one in bodies for each in one] == alerts
    assert max(len(each) for each in bodies) == PUSH_ALERTS_MAX
    assert pushes([]) == []
