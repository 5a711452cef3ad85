"""Delivery to a receiver over real sockets that does everything receivers do. Only the clock is ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit_engine.alerts.endpoints import Endpoint, Format
from audit_engine.alerts.errors import AlertRecordUnusable, DeliveryUnderWay
from audit_engine.alerts.record import Record
from audit_engine.alerts.record_file import FILE_NAME
from audit_engine.alerts.schedule import ATTEMPTS_MAX
from audit_engine.alerts.transport import Answer, NoAnswer, Request
from tests.audit_engine.alerts import receiver as at
from tests.audit_engine.alerts.news import (
    DAY_MS,
    T0_MS,
    Clock,
    Runs,
    changed,
    deliverer,
    endpoint,
    opened,
    over,
    run,
)
from tests.audit_engine.alerts.receiver import Came, receiver

HISTORY = (
    run(1, opened("a"), opened("b", incident="a", parent="a"), opened("c", severity="E")),
    run(2, changed("a", ranges=[[0, 4000]])),
    run(3, over("c"), is_complete=False),
    run(4, over("a", "restored"), over("b", "restored", incident="a")),
)
# Threads in the order of their messages: a and c begin, a grows, then a ends, and c by the fourth run.
TOLD = [("a", "opened"), ("c", "opened"), ("a", "changed"), ("a", "ended"), ("c", "ended")]


def said(came: Came) -> tuple[str, str]:
    """Which incident, and what became of it."""
    told = came.json
    return told["data"]["incident"], told["type"].removeprefix("incident.")


def once(came: list[Came]) -> list[tuple[str, str]]:
    """What was taken, each id once: as a receiver that knows ids sees it."""
    by_id: dict[str, Came] = {}
    for each in came:
        by_id.setdefault(each.id, each)
    return [said(each) for each in by_id.values()]


def of(thread: str, told: list[tuple[str, str]]) -> list[str]:
    return [state for name, state in told if name == thread]


def by_thread(told: list[tuple[str, str]]) -> dict[str, list[str]]:
    """What each thread was told, in order."""
    return {thread: of(thread, told) for thread, _ in told}


TROUBLE = {
    "refuses": (500, {}),
    "hangs": at.HANG,
    "is busy": (429, {"Retry-After": "90"}),
    "sends elsewhere": (302, {"Location": "/other"}),
    "sends elsewhere for good": (308, {"Location": "/other"}),
    "cuts": at.CUT,
    "cuts after taking": at.CUT_AFTER_TAKING,
    "drips": at.DRIP,
    "is not HTTP": at.GARBAGE,
    "is down for a while": (503, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}),
}


@pytest.mark.parametrize("step", TROUBLE.values(), ids=TROUBLE.keys())
def test_every_alert_arrives_in_order_with_one_id(tmp_path: Path, step: at.Step) -> None:
    """A receiver in trouble that comes back: all arrive, each thread in order, each under one id."""
    clock = Clock()
    script = [step, (200, {}), step, step, (200, {}), (200, {}), step]
    with receiver(*script) as receiving:
        ours = deliverer(tmp_path, endpoint(receiving.url, timeout_s=0.3), clock=clock)
        ours.take_in(Runs(*HISTORY))
        told = ours.deliver(until_ms=clock.ms + 7 * DAY_MS)

    assert by_thread(once(receiving.taken)) == by_thread(TOLD)
    assert {each.path for each in receiving.came} == {"/hooks/seawall"}
    assert (told["ops"].sent, told["ops"].waiting, told["ops"].refused) == (5, 0, 0)
    bodies: dict[str, set[bytes]] = {}
    for each in receiving.came:
        bodies.setdefault(each.id, set()).add(each.body)
    assert {len(each) for each in bodies.values()} == {1}
    assert len(bodies) == len(TOLD)


STEPS = st.sampled_from([*TROUBLE.values(), (200, {}), (200, {}), (400, {})])


class Scripted:
    """The network without sockets: the same receivers, for many histories."""

    def __init__(self, script: list[at.Step]) -> None:
        self._script = list(script)
        self.taken: list[tuple[str, str, str]] = []

    def post(self, _: object, request: Request) -> Answer | NoAnswer:
        step = self._script.pop(0) if self._script else (200, {})
        told = json.loads(request.body)
        if step == at.CUT_AFTER_TAKING or (isinstance(step, tuple) and step[0] == 200):
            named = told["data"]["incident"], told["type"].removeprefix("incident.")
            self.taken.append((request.headers["webhook-id"], *named))
        if isinstance(step, str):
            return NoAnswer(why=step)
        status, headers = step
        return Answer(status=status, retry_after=headers.get("Retry-After"), body="")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=14), st.lists(st.integers(0, 400_000), min_size=1, max_size=3))
def test_whatever_it_answers(
    tmp_path_factory: pytest.TempPathFactory, script: list[Any], budgets: list[int]
) -> None:
    """Any answers, and several processes after another: what is not refused for good arrives in order."""
    folder, clock = tmp_path_factory.mktemp("alerts"), Clock()
    transport = Scripted(script)
    runs = Runs()
    for number, each in enumerate(HISTORY):
        runs.add(each)
        ours = deliverer(folder, endpoint("http://receiver"), clock=clock, transport=transport)
        ours.take_in(runs)
        ours.deliver(until_ms=clock.ms + budgets[number % len(budgets)])
    told = ours.deliver(until_ms=clock.ms + 30 * DAY_MS)["ops"]

    assert told.waiting == 0
    arrived = list(dict.fromkeys(transport.taken))
    listed = Record(folder).deliveries(is_open=False, limit=100)
    assert len(listed) == len(TOLD)
    assert {each["id"] for each in listed if each["state"] == "delivered"} <= {each for each, _, _ in arrived}
    for thread in ("a", "c"):
        states = [state for _, name, state in arrived if name == thread]
        assert states == [each for each in of(thread, TOLD) if each in states]
    assert len({each for each, _, _ in arrived}) == len(arrived)


def test_retry_after_is_waited_for(tmp_path: Path) -> None:
    """Longer than our own pause: nothing is sent there before, of no thread."""
    clock = Clock()
    with receiver((429, {"Retry-After": "3600"})) as receiving:
        ours = deliverer(tmp_path, endpoint(receiving.url), clock=clock)
        ours.take_in(Runs(*HISTORY))
        ours.deliver(until_ms=clock.ms + 1800_000)
        first = len(receiving.came)
        told = ours.deliver(until_ms=clock.ms + 7200_000)

    assert first == 1
    assert clock.waited_s[0] == pytest.approx(3600, abs=1)
    assert told["ops"].waiting == 0


def test_a_clock_that_was_ahead_keeps_nothing_back(tmp_path: Path) -> None:
    """A next try that was written for next year is due once the clock is right again."""
    clock = Clock(T0_MS + 400 * DAY_MS)
    with receiver((503, {}), (500, {})) as receiving:
        target = endpoint(receiving.url)
        ours = deliverer(tmp_path, target, clock=clock)
        ours.take_in(Runs(*HISTORY))
        ours.deliver(until_ms=clock.ms + 6000)
        clock.ms = T0_MS
        told = ours.deliver()["ops"]

    assert (told.waiting, len(receiving.taken)) == (0, 5)


def test_gone_disables_until_a_test_reaches_it(tmp_path: Path) -> None:
    """410: nothing more is sent, nothing is lost; a test that is taken turns it on again."""
    clock = Clock()
    with receiver((410, {})) as receiving:
        target = endpoint(receiving.url)
        ours = deliverer(tmp_path, target, clock=clock)
        ours.take_in(Runs(*HISTORY))
        gone = ours.deliver(until_ms=clock.ms + 7 * DAY_MS)["ops"]
        assert gone.disabled == "410"
        assert (len(receiving.came), gone.waiting) == (1, 5)
        [shown] = Record(tmp_path).attempts()
        assert shown["outcome"] == "gone"

        ours.test(target, ())
        back = ours.deliver()["ops"]

    assert (back.disabled, back.waiting) == (None, 0)
    assert by_thread(once(receiving.taken)) == by_thread(TOLD)


def test_a_refusal_is_final_for_the_message_alone(tmp_path: Path) -> None:
    """400: it is on record, not sent again, and its thread goes on; `again` sends both."""
    clock = Clock()
    with receiver((400, {"body": "no such hook"})) as receiving:
        ours = deliverer(tmp_path, endpoint(receiving.url), clock=clock)
        ours.take_in(Runs(*HISTORY))
        told = ours.deliver(until_ms=clock.ms + 7 * DAY_MS)["ops"]
        assert (told.sent, told.refused) == (4, 1)
        record = Record(tmp_path)
        [refused] = record.deliveries(is_open=True, limit=10)
        assert (refused["state"], refused["why"]) == ("refused", "400 no such hook")

        assert record.again("ops", [refused["id"]]) == 3
        ours.deliver()

    assert [said(each) for each in receiving.taken[-3:]] == [
        ("a", "opened"),
        ("a", "changed"),
        ("a", "ended"),
    ]
    assert receiving.came[0].id == receiving.taken[-3].id


def test_it_is_given_up_after_three_days_and_the_next_goes_on(tmp_path: Path) -> None:
    """A message that is never taken does not keep back what comes after it for ever."""
    clock = Clock()
    with receiver(*[(500, {})] * ATTEMPTS_MAX) as receiving:
        ours = deliverer(tmp_path, endpoint(receiving.url), clock=clock)
        ours.take_in(Runs(run(1, opened("a")), run(2, over("a"))))
        told = ours.deliver(until_ms=clock.ms + 7 * DAY_MS)["ops"]

    assert (told.sent, told.refused) == (1, 1)
    assert [said(each) for each in receiving.taken] == [("a", "ended")]
    assert len({each.id for each in receiving.came}) == 2
    assert 2 * DAY_MS < clock.ms - Clock().ms < 5 * DAY_MS


def test_one_that_hangs_keeps_no_other_back(tmp_path: Path) -> None:
    """Each endpoint has its own queue."""
    clock = Clock()
    with receiver(at.HANG) as hanging, receiver() as well:
        targets = endpoint(hanging.url, name="slow", timeout_s=0.3), endpoint(well.url, name="well")
        ours = deliverer(tmp_path, *targets, clock=clock)
        ours.take_in(Runs(*HISTORY))
        told = ours.deliver()

    assert (told["slow"].waiting, told["well"].waiting) == (5, 0)
    assert len(hanging.came) == 1
    assert by_thread(once(well.taken)) == by_thread(TOLD)


def test_a_run_does_not_wait_for_a_slow_receiver_for_ever(tmp_path: Path) -> None:
    """Each answer takes twenty seconds: when the minute is over, what is left waits for the next time."""
    clock = Clock()

    class Slow:
        def post(self, *_: object) -> Answer:
            clock.ms += 20_000
            return Answer(status=200, retry_after=None, body="")

    many = [opened(f"f{number}", subject=f"c{number}/T1/0") for number in range(10)]
    ours = deliverer(tmp_path, endpoint("http://slow"), clock=clock, transport=Slow())
    ours.take_in(Runs(run(1, *many)))

    first = ours.deliver(until_ms=clock.ms + 60_000, stop_ms=clock.ms + 60_000)["ops"]
    assert (first.sent, first.waiting) == (3, 7)
    assert ours.deliver()["ops"].waiting == 0


def test_a_new_endpoint_is_told_what_is_open_and_no_history(tmp_path: Path) -> None:
    """Nobody wants a month of alerts that are over: each open thread once, and all that comes then."""
    clock = Clock()
    runs = Runs(*HISTORY[:2], run(3, opened("d"), over("c")))
    with receiver() as first, receiver() as second:
        old = endpoint(first.url, name="old")
        deliverer(tmp_path, old, clock=clock).take_in(runs)
        new = endpoint(second.url, name="new")
        ours = deliverer(tmp_path, old, new, clock=clock, is_new=True)
        ours.deliver()
        runs.add(run(4, over("d")))
        ours.take_in(runs)
        ours.deliver()

    assert once(second.taken) == [("a", "changed"), ("d", "opened"), ("d", "ended")]
    assert len(first.taken) == 6


def test_a_record_that_is_lost_is_made_again_with_the_same_ids(tmp_path: Path) -> None:
    """The outbox is still there: what is open is told once more, under the id that it had."""
    clock = Clock()
    runs = Runs(*HISTORY[:2])
    with receiver() as receiving:
        for folder in (tmp_path / "one", tmp_path / "two"):
            ours = deliverer(folder, endpoint(receiving.url), clock=clock, is_new=True)
            ours.take_in(runs)
            ours.deliver()
    ids = [each.id for each in receiving.taken]

    assert len(ids) == 4
    assert set(ids[2:]) == set(ids[:2])


def test_what_ended_while_the_record_was_lost_is_told_but_to_slack(tmp_path: Path) -> None:
    """Opened, then the file is gone, then it ends: whoever has to close it hears of the end, under the id
    that the first file would have given it; what ended long ago is no news, and Slack would only show it."""
    clock = Clock()
    runs = Runs(run(1, opened("old"), opened("a"), opened("b")), run(2, over("old")))
    with receiver() as first, receiver() as second:
        kinds = {"ops": Format.NATIVE, "pager": Format.PAGERDUTY}
        targets = [
            replace(endpoint(first.url, name=name), format=kind, routing_key="k" * 32)
            for name, kind in kinds.items()
        ]
        chat = replace(endpoint(second.url, name="chat"), format=Format.SLACK)
        deliverer(tmp_path / "lost", *targets, clock=clock).take_in(runs)
        runs.add(run(20, over("a")))
        ours = deliverer(tmp_path / "new", *targets, chat, clock=clock, is_new=True)
        ours.take_in(runs)
        ours.deliver()

    native = [said(each) for each in first.taken if "data" in each.json]
    paged = [
        (each.json["dedup_key"], each.json["event_action"]) for each in first.taken if "data" not in each.json
    ]
    assert sorted(native) == [("a", "ended"), ("b", "opened")]
    assert sorted(paged) == [("a", "resolve"), ("b", "trigger")]
    assert len(second.taken) == 1


def test_only_what_is_grave_enough(tmp_path: Path) -> None:
    """An endpoint for critical ones hears of a thread once it is critical, and then of its end."""
    clock = Clock()
    runs = Runs(run(1, opened("a", severity="E")), run(2, changed("a")), run(3, over("a", severity="W")))
    with receiver() as receiving:
        ours = deliverer(tmp_path, endpoint(receiving.url, severity="C"), clock=clock)
        ours.take_in(runs)
        ours.deliver()

    assert [said(each) for each in receiving.taken] == [("a", "changed"), ("a", "ended")]


def test_what_was_unsaid_and_is_said_again_arrives(tmp_path: Path) -> None:
    """A run that is judged again and again: found, not found, found. Three messages, three ids."""
    clock = Clock()
    runs = Runs()
    with receiver() as receiving:
        ours = deliverer(tmp_path, endpoint(receiving.url), clock=clock)
        for attempt, found in (("one", [opened("a")]), ("two", []), ("three", [opened("a")])):
            runs.add(run(1, *found, attempt=attempt))
            ours.take_in(runs)
            ours.deliver()

    assert [said(each) for each in receiving.taken] == [("a", "opened"), ("a", "ended"), ("a", "opened")]
    assert len({each.id for each in receiving.taken}) == 3


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    """They would mix up the order; taking in is no harm."""
    clock = Clock()
    record = Record(tmp_path)
    ours = deliverer(tmp_path, clock=clock)
    with record.delivering():
        ours.take_in(Runs(*HISTORY))
        with pytest.raises(DeliveryUnderWay):
            ours.deliver()
    assert ours.deliver() == {}


def test_a_record_that_is_none_is_refused(tmp_path: Path) -> None:
    """It is said, and nothing is overwritten."""
    (tmp_path / FILE_NAME).write_bytes(b"not a database, and long enough to be looked at" * 40)

    with pytest.raises(AlertRecordUnusable, match="not a database"):
        Record(tmp_path)


def test_a_slack_channel_gets_one_message_a_second(tmp_path: Path) -> None:
    """More than that Slack refuses."""
    clock = Clock()
    with receiver() as receiving:
        ours = deliverer(tmp_path, endpoint(receiving.url, format=Format.SLACK, signing=()), clock=clock)
        ours.take_in(Runs(*HISTORY))
        told = ours.deliver(until_ms=clock.ms + 60_000)["ops"]

    assert told.waiting == 0
    assert clock.waited_s == [1.0] * 4


def test_an_alertmanager_is_told_all_that_stands_each_time(tmp_path: Path) -> None:
    """Open ones fire past the next run, pushed by each; over only what a run cleared; trouble is retried."""
    clock = Clock()
    runs = Runs(HISTORY[0])
    with receiver((503, {})) as receiving:
        target = endpoint(receiving.url, format=Format.ALERTMANAGER, signing=())
        ours = deliverer(tmp_path, target, clock=clock)
        ours.take_in(runs)
        ours.deliver(until_ms=clock.ms + DAY_MS // 2)
        clock.ms += DAY_MS
        ours.deliver()
        runs.add(*HISTORY[1:])
        clock.ms += DAY_MS
        ours.take_in(runs)
        told = ours.deliver()["ops"]

    pushes = receiving.taken
    assert {each.path for each in receiving.came} == {"/hooks/seawall/api/v2/alerts"}
    assert [len(each.json) for each in pushes] == [3, 3, 3]
    assert told.waiting == 0
    ends = [{each["labels"]["finding_id"]: each["endsAt"] for each in came.json} for came in pushes]
    assert ends[0]["a"] < ends[1]["a"]
    assert ends[2] == {
        "a": "2027-01-16T08:00:00.000Z",
        "b": "2027-01-16T08:00:00.000Z",
        "c": "2027-01-16T08:00:00.000Z",
    }


def test_an_alertmanager_that_refuses_hears_of_ends_when_it_takes_them(tmp_path: Path) -> None:
    """A wrong token for a week, longer than a message is tried: what ended meanwhile is told as over."""
    clock = Clock()
    runs = Runs(run(1, opened("a"), opened("b")))
    with receiver() as receiving:
        target = endpoint(receiving.url, format=Format.ALERTMANAGER, signing=())
        ours = deliverer(tmp_path, target, clock=clock)
        ours.take_in(runs)
        ours.deliver()
        receiving.then(*[(401, {})] * (ATTEMPTS_MAX + 2))
        runs.add(run(2, over("a")))
        ours.take_in(runs)
        refused = ours.deliver(until_ms=clock.ms + 2 * DAY_MS)["ops"]
        assert (refused.waiting, refused.trouble) == (1, "401")
        whole = ours.deliver(until_ms=clock.ms + 14 * DAY_MS)["ops"]

    first, last = receiving.taken
    assert whole.is_whole
    assert sorted(each["labels"]["finding_id"] for each in first.json) == ["a", "b"]
    ends = {each["labels"]["finding_id"]: each["endsAt"] for each in last.json}
    assert ends["a"] == "2027-01-16T08:00:00.000Z" < ends["b"]


def test_no_secret_is_on_record(tmp_path: Path) -> None:
    """Not even where the receiver says it back; the folder is made where it is not there."""
    clock = Clock()
    with receiver((500, {"body": "token-token-token said back, /hooks/seawall too"})) as receiving:
        target = endpoint(receiving.url, token="token-token-token")
        ours = deliverer(tmp_path / "new" / "folder", target, clock=clock)
        ours.take_in(Runs(*HISTORY[:1]))
        ours.deliver()

    assert receiving.came[0].headers["authorization"] == "Bearer token-token-token"
    kept = b"".join(path.read_bytes() for path in (tmp_path / "new" / "folder").iterdir())
    assert b"token-token" not in kept
    assert b"hooks/seawall" not in kept


def test_a_receiver_that_is_slow_keeps_no_other_waiting(tmp_path: Path) -> None:
    """The first endpoint answers only when the second has been told of everything."""
    slow, quick = (endpoint(f"http://127.0.0.1:1/{name}", name=name) for name in "ab")
    is_told = Event()
    asked: list[str] = []

    class Waits:
        def post(self, endpoint: Endpoint, request: Request) -> Answer:
            if endpoint.name == "a":
                assert is_told.wait(60)
            asked.append(endpoint.name)
            if asked.count("b") == 3:
                is_told.set()
            return Answer(status=204, retry_after=None, body="")

    alerts = deliverer(tmp_path, slow, quick, clock=Clock(), transport=Waits())
    alerts.take_in(Runs(run(1, opened("x"), opened("y"), opened("z"))))

    told = alerts.deliver()

    assert [(each.sent, each.is_whole) for each in told.values()] == [(3, True), (3, True)]
    assert asked == ["b", "b", "b", "a", "a", "a"]
