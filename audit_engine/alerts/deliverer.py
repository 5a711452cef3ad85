"""Delivery: what runs left is taken in, and each endpoint is told what waits for it.

    take in    runs of the outbox that are not on record, each as a whole
    plan       which messages are for which endpoint
    deliver    what is due, in the order in which it was made; then what falls due, until it is time to end;
               endpoints side by side, each with one request at a time

An attempt is on record before it is sent and judged when it was answered: a process that is killed anywhere
goes on where it stood, and sends again, with the same id, what it cannot know to have arrived.

An Alertmanager is told all that stands, each time: what is open to fire past the next run, what ended
meanwhile as over.

Owns the order. Refuses to send two messages of a thread out of order, or to go on at an endpoint that cannot
be reached, is busy, or is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

from audit_engine.alerts.endpoints import Endpoint, Format
from audit_engine.alerts.formats import alertmanager, body, slack
from audit_engine.alerts.message import Message
from audit_engine.alerts.news import Outbox
from audit_engine.alerts.record import Record
from audit_engine.alerts.schedule import MINUTE_MS, Outcome, Verdict, delay_ms, judged
from audit_engine.alerts.signing import signed
from audit_engine.alerts.threads import Standing
from audit_engine.alerts.transport import Answer, NoAnswer, Request, Transport
from rules.machine.findings import SEVERITIES
from workers.consumer.tasks import Tasks

T = TypeVar("T")
# Something that is told, as it goes on: it asks for requests to be made, and is given their answers.
Ask: TypeAlias = Callable[[], Answer | NoAnswer]
Telling: TypeAlias = Generator[Ask, Answer | NoAnswer, T]

TICK_S = 1.0
LEAVE_S = 0.0  # for requests that nobody waits for any more, as somebody has ended this process
BATCH = 100  # messages that are read at once
SAID_AGAIN_MS = 15 * MINUTE_MS  # how long an Alertmanager is told again that something ended
ALERTS_PATH = "/api/v2/alerts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """`chance` gives numbers of [0, 1); `wait_s` waits. `at` is told each step, for tests."""

    now_ms: Callable[[], int]
    chance: Callable[[], float]
    wait_s: Callable[[float], None]
    version: str
    at: Callable[[str], None] = field(default=lambda _: None)


@dataclass(slots=True, kw_only=True)
class Delivered:
    """What came of it, for one endpoint. `waiting` at the end; `trouble` is the last that went wrong."""

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    disabled: str | None = None
    trouble: str | None = None

    @property
    def is_whole(self) -> bool:
        return not (self.refused or self.waiting or self.disabled or self.trouble)


def _asked(telling: Telling[object], answer: Answer | NoAnswer | None) -> Ask | None:
    """Its next request, given the answer to the last; None at its end."""
    try:
        return next(telling) if answer is None else telling.send(answer)
    except StopIteration:
        return None


class Deliverer:
    """Over one record. `endpoints` are those of the settings."""

    def __init__(
        self, record: Record, endpoints: Sequence[Endpoint], transport: Transport, means: Means
    ) -> None:
        self._record = record
        self._endpoints = endpoints
        self._transport = transport
        self._means = means
        self._told = {each.name: Delivered() for each in endpoints}

    def take_in(self, outbox: Outbox) -> int:
        """How many messages came of the runs that were not taken in yet."""
        count = 0
        for news in outbox.since(self._record.taken()):
            count += len(self._record.take(news, self._means.now_ms()))
            self._means.at("taken")
        self._plan()
        return count

    def deliver(self, *, until_ms: int = 0, stop_ms: int | None = None) -> dict[str, Delivered]:
        """Everything that is due, and what falls due until then. DeliveryUnderWay.

        From `stop_ms` on no attempt is begun: a slow receiver and a thousand messages are hours.
        """
        with self._record.delivering():
            self._plan()
            self._side_by_side(
                self._push(each) for each in self._endpoints if each.format is Format.ALERTMANAGER
            )
            while True:
                self._side_by_side(self._tell(each, stop_ms) for each in self._endpoints)
                next_ms = self._next_ms()
                if next_ms is None or next_ms > until_ms or self._is_late(stop_ms):
                    break
                self._means.wait_s(max(0, next_ms - self._means.now_ms()) / 1000)
        for each in self._endpoints:
            told = self._told[each.name]
            told.waiting = len(self._record.waiting(each.name))
            told.disabled = self._record.state(each.name, self._means.now_ms()).disabled
        return self._told

    def test(self, endpoint: Endpoint, messages: Sequence[Message]) -> Verdict:
        """Messages that are on no record, each sent once. An endpoint that takes them is used again."""
        verdict = Verdict(outcome=Outcome.DELIVERED, why="")
        for message in messages:
            for request in self._test_requests(endpoint, message):
                answer = self._transport.post(endpoint, request)
                verdict = judged(answer, attempt=1, now_ms=self._means.now_ms(), chance=0.5)
                if verdict.outcome is not Outcome.DELIVERED:
                    return verdict
        self._record.plan(endpoint)
        self._record.enable(endpoint.name)
        return verdict

    def _test_requests(self, endpoint: Endpoint, message: Message) -> list[Request]:
        if endpoint.format is not Format.ALERTMANAGER:
            return [self._request(endpoint, message.id, body(endpoint, message))]
        until_ms = self._means.now_ms() + 5 * MINUTE_MS
        alerts = [
            alertmanager.pushed(each.finding, message.thread, each.severity, is_open=True, until_ms=until_ms)
            for each in message.stood
        ]
        return [self._request(endpoint, message.id, each) for each in alertmanager.pushes(alerts)]

    def _plan(self) -> None:
        for each in self._endpoints:
            self._record.plan(each)

    def _next_ms(self) -> int | None:
        now_ms = self._means.now_ms()
        found = (self._record.next_ms(each.name, now_ms) for each in self._endpoints)
        return min((each for each in found if each is not None), default=None)

    def _is_late(self, stop_ms: int | None) -> bool:
        return stop_ms is not None and self._means.now_ms() >= stop_ms

    def _side_by_side(self, telling: Iterable[Telling[object]]) -> None:
        """Each to its end, one request of each at a time: who is slow to answer keeps nobody else waiting.

        All but the requests is done here, in one thread; so is a request where there is nobody to wait.
        """
        begun = [(each, first) for each in telling if (first := _asked(each, None)) is not None]
        if len(begun) <= 1:
            for each, request in begun:
                following: Ask | None = request
                while following is not None:
                    following = _asked(each, following())
            return
        with Tasks[Telling[object], Answer | NoAnswer](threads=len(begun), deadline_s=LEAVE_S) as tasks:
            for each, request in begun:
                tasks.submit(each, request)
            while tasks.out:
                for each, answer in tasks.collect(TICK_S):
                    if (following := _asked(each, answer)) is not None:
                        tasks.submit(each, following)

    def _tell(self, endpoint: Endpoint, stop_ms: int | None) -> Telling[None]:
        """All that is due there, until it cannot take more."""
        while True:
            now_ms = self._means.now_ms()
            state = self._record.state(endpoint.name, now_ms)
            if state.disabled is not None or state.not_before_ms > now_ms:
                return
            due = self._record.due(endpoint.name, now_ms, BATCH)
            if not due:
                return
            if endpoint.format is Format.ALERTMANAGER:
                if not (yield from self._push(endpoint)):
                    return
                continue
            for position, attempts, message in due:
                if self._is_late(stop_ms):
                    return
                made = [body(endpoint, message)]
                verdict = yield from self._attempt(endpoint, [position], attempts + 1, message.id, made)
                if self._is_paused(endpoint, verdict):
                    return

    def _push(self, endpoint: Endpoint) -> Telling[bool]:
        """Everything that stands, to an Alertmanager; what waited for it is told with it. Whether it was."""
        now_ms = self._means.now_ms()
        state = self._record.state(endpoint.name, now_ms)
        if state.disabled is not None or state.not_before_ms > now_ms:
            return False
        waiting = self._record.waiting(endpoint.name)
        ended_of = {thread for _, thread in waiting} | self._record.threads_since(now_ms - SAID_AGAIN_MS)
        alerts = standing_alerts(self._record.standing(), endpoint, ended_of, now_ms)
        positions = [position for position, _ in waiting]
        bodies = alertmanager.pushes(alerts)
        told = hashlib.sha256(b"".join(bodies)).hexdigest()[:32]
        verdict = yield from self._attempt(endpoint, positions, state.failures + 1, f"push_{told}", bodies)
        if verdict.outcome is Outcome.LATER:
            self._record.pause(endpoint.name, verdict.at_ms or 0, state.failures + 1)
        elif state.failures:
            self._record.pause(endpoint.name, 0, 0)
        return verdict.outcome is Outcome.DELIVERED

    def _attempt(
        self, endpoint: Endpoint, positions: Sequence[int], attempt: int, message_id: str, bodies: list[bytes]
    ) -> Telling[Verdict]:
        """One request, or several that are one; on record before and behind."""
        if not bodies:
            verdict = Verdict(outcome=Outcome.DELIVERED, why="nothing to say")
            if positions:
                number = self._record.begin(endpoint.name, positions, message_id, self._means.now_ms())
                self._record.end(endpoint.name, positions, number, verdict)
            return verdict
        number = self._record.begin(endpoint.name, positions, message_id, self._means.now_ms())
        self._means.at("begun")
        answer: Answer | NoAnswer = NoAnswer(why="nothing was sent")
        for each in bodies:
            request = self._request(endpoint, message_id, each)
            answer = yield partial(self._transport.post, endpoint, request)
            if not (isinstance(answer, Answer) and 200 <= answer.status < 300):
                break
        self._means.at("sent")
        now_ms, chance = self._means.now_ms(), self._means.chance()
        verdict = judged(answer, attempt=attempt, now_ms=now_ms, chance=chance)
        if endpoint.format is Format.ALERTMANAGER and verdict.outcome in (Outcome.REFUSED, Outcome.GIVEN_UP):
            # What stands is told for as long as it stands, and what ended until that was heard.
            at_ms = now_ms + delay_ms(attempt, chance)
            verdict = Verdict(outcome=Outcome.LATER, why=verdict.why, at_ms=at_ms, is_of_endpoint=True)
        self._record.end(endpoint.name, positions, number, verdict)
        self._means.at("noted")
        self._count(self._told[endpoint.name], verdict, len(positions))
        return verdict

    def _is_paused(self, endpoint: Endpoint, verdict: Verdict) -> bool:
        now_ms = self._means.now_ms()
        until_ms = verdict.at_ms if verdict.is_of_endpoint else None
        if verdict.outcome is Outcome.GIVEN_UP and verdict.is_of_endpoint:
            until_ms = now_ms + MINUTE_MS
        if endpoint.format is Format.SLACK and until_ms is None:
            until_ms = now_ms + slack.EVERY_MS
        if until_ms is not None:
            self._record.pause(endpoint.name, until_ms, 0)
        return until_ms is not None or verdict.outcome is Outcome.GONE

    def _count(self, told: Delivered, verdict: Verdict, count: int) -> None:
        if verdict.outcome is Outcome.DELIVERED:
            told.sent += count
            told.trouble = None
            return
        told.trouble = verdict.why
        if verdict.outcome in (Outcome.REFUSED, Outcome.GIVEN_UP):
            told.refused += count

    def _request(self, endpoint: Endpoint, message_id: str, made: bytes) -> Request:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"seawall/{self._means.version}",
            **signed(message_id, self._means.now_ms() // 1000, made, endpoint.signing),
        }
        if endpoint.token:
            headers["Authorization"] = f"Bearer {endpoint.token}"
        url = endpoint.url
        if endpoint.format is Format.ALERTMANAGER and not url.endswith(ALERTS_PATH):
            url = url.rstrip("/") + ALERTS_PATH
        return Request(url=url, headers=headers, body=made)


def standing_alerts(
    standing: Standing, endpoint: Endpoint, ended_of: set[str], now_ms: int
) -> list[dict[str, Any]]:
    """What is open and grave enough, by each name it was told by; of these threads what ended, too."""
    least = SEVERITIES.index(endpoint.severity)
    found = []
    for kept in standing.findings.values():
        for thread, severity in kept.told_as:
            is_grave = SEVERITIES.index(standing.threads[thread].peak) >= least
            if is_grave and (kept.is_open or thread in ended_of):
                found.append(
                    alertmanager.pushed(
                        kept.finding,
                        thread,
                        severity,
                        is_open=kept.is_open,
                        until_ms=now_ms + endpoint.keeps_firing_ms,
                    )
                )
    return found
