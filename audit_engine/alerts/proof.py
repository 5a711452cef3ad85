"""What people are told, made again from the runs' news, and held against a record that was made as they came.

    steps        what a record comes to behind each run: the messages it makes, and at the end what stands
    against      a live record held against one made anew, of the runs that it took in

Messages are forgotten after a time (`record.KEEP_MS`), so that the live record may have fewer; those that it
has must be the same, in the same order, under the same ids. A run that was judged again after it was told
cannot be made again: its first attempt is in no outbox any more.

Owns these steps. Refuses to send. Invariant: the same news in the same order come to the same steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from audit_engine.alerts.message import Message
from audit_engine.alerts.news import RunNews
from audit_engine.alerts.record import KEEP_MS, Record
from workers.proof import Compared, Divergence, Step, compared


def steps(record: Record, news: Iterable[RunNews]) -> Iterator[Step]:
    """`record` is empty, and is filled."""
    for each in news:
        told = [message.as_json() for message in record.take(each, now_ms=each.as_of_ms)]
        yield Step(f"run {each.run}", json.dumps(told))
    yield _standing(record)


def _standing(record: Record) -> Step:
    said = asdict(record.standing())
    return Step("what stands", json.dumps({name: said[name] for name in sorted(said)}, sort_keys=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstRecord:
    """`judged_again`: runs that the live record was told of as they were first. `forgotten`: messages."""

    runs: int
    messages: int
    forgotten: int
    judged_again: tuple[int, ...]
    first: Compared


def against(rebuilt: Record, live: Record, news: Sequence[RunNews]) -> AgainstRecord:
    """`rebuilt` took `news` in; of these, those that `live` took in too are all that it took."""
    taken = live.taken()
    attempts = {each.run: each.attempt for each in news}
    judged_again = tuple(sorted(run for run, attempt in taken.items() if attempts.get(run) != attempt))
    here, there = rebuilt.messages(), live.messages()
    kept = {each.id for each in there}
    newest_ms = max((each.as_of_ms for each in there), default=0)
    expected = [each for each in here if each.id in kept or not _may_be_gone(each, newest_ms)]
    first = compared(map(_step, expected), map(_step, there))
    if not isinstance(first, Divergence):
        ends = compared([_standing(rebuilt)], [_standing(live)])
        first = ends if isinstance(ends, Divergence) else first
    return AgainstRecord(
        runs=len(taken),
        messages=len(there),
        forgotten=len(here) - len(expected),
        judged_again=judged_again,
        first=first,
    )


def _step(message: Message) -> Step:
    return Step(f"run {message.run}, {message.id}", message.as_json())


def _may_be_gone(message: Message, newest_ms: int) -> bool:
    return message.as_of_ms < newest_ms - KEEP_MS
