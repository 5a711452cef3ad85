"""One thing to tell of a thread: what is news, and all that stands in it, so that one message is enough.

    opened     the thread was not told of before, or had ended
    changed    it goes on, and something of it is another
    ended      the last of its findings is not open any more

Owns the value, its id and its JSON. Invariant: the id is a function of thread, run and content: a message
that is made again, from the same outbox, is the same message.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum

from audit_engine.alerts.news import Finding, own

SUMMARY_CHARS = 1024  # PagerDuty's bound
STOOD_MAX = 100  # findings that a message names; of the rest it has the count


class State(str, Enum):
    OPENED = "opened"
    CHANGED = "changed"
    ENDED = "ended"
    TEST = "test"  # on no record: `seawall alerts test`


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """One finding as it stands in a thread. `change` is the last that was told of it.

    `severities`: each that it was ever told with, in this thread; receivers that know an alert by its labels
    know it by these.
    """

    finding: Finding
    change: str
    is_open: bool
    is_news: bool
    severities: tuple[str, ...]

    @property
    def severity(self) -> str:
        return str(self.finding["severity"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`stood` is the thread's findings, the worst first, at most STOOD_MAX of `finding_count`.

    `severity` is the worst of what is open, or was; `peak` the worst that the thread ever had.
    """

    id: str
    thread: str
    run: int
    as_of_ms: int
    state: State
    severity: str
    peak: str
    title: str
    finding_count: int
    open_count: int
    stood: tuple[Stood, ...]

    @property
    def summary(self) -> str:
        """One line for people."""
        if self.state is State.ENDED:
            return _cut(f"{self.title}: over ({self.finding_count} finding{'s' * (self.finding_count != 1)})")
        more = f" (+{self.open_count - 1} more)" if self.open_count > 1 else ""
        return _cut(f"{self.title}{more}")

    def as_json(self) -> str:
        return json.dumps({**asdict(self), "state": self.state.value}, sort_keys=True)


def message_of(text: str) -> Message:
    """The way back from `as_json`."""
    members = json.loads(text)
    members["state"] = State(members["state"])
    members["stood"] = tuple(
        Stood(**{**each, "severities": tuple(each["severities"])}) for each in members["stood"]
    )
    return Message(**members)


def message_id(thread: str, run: int, changes: Sequence[tuple[str, Finding]]) -> str:
    """Of what is told, not of when it is."""
    told = json.dumps([thread, run, sorted(_canonical(change, each) for change, each in changes)])
    return f"msg_{hashlib.sha256(told.encode()).hexdigest()[:32]}"


def _canonical(change: str, finding: Finding) -> str:
    return json.dumps([change, own(finding)], sort_keys=True)


def _cut(text: str) -> str:
    return text if len(text) <= SUMMARY_CHARS else f"{text[: SUMMARY_CHARS - 1]}…"
