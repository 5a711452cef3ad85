"""The second judge, of the evidence itself: AUD-01, AUD-02 and AUD-03, by RULES.md and docs/rules.

It shares no code with the machine, carries nothing from one day to the next, and goes through all that was
ever said. Emitters are told apart by broker and component, their runs by incarnation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rules.events import EmitterRetired, Heartbeat, HighWatermark, LogBaseline

JUDGED = ("AUD-01", "AUD-02", "AUD-03")
SILENT_MS = 10 * 60_000  # ten beats that never came


class EmitterJudge:
    """`ever` is all that was heard up to the cut, `today` what of it was heard since the cut before."""

    def __init__(self, ever: Iterable[Any], today: Iterable[Any], as_of_ms: int) -> None:
        self.ever, self.today, self.as_of_ms = list(ever), list(today), as_of_ms

    def judge(self) -> dict[str, set[tuple[str, str]]]:
        return {"AUD-01": self.holes(), "AUD-02": self.two_payloads(), "AUD-03": self.silent()}

    def holes(self) -> set[tuple[str, str]]:
        """A number that nobody heard, below one that was heard or told of. By the run's first."""
        found = set()
        for run in {each.speaker for each in self.ever} | self._followed():
            heard = {each.seq for each in self.ever if each.speaker == run}
            missing = [number for number in range(self._told_to(run)) if number not in heard]
            if missing:
                found.add((f"{run.broker_id}/{run.component}", f"{run.incarnation}:{missing[0]}"))
        return found

    def _followed(self) -> set[Any]:
        """Runs that are known by what the next one says of them alone."""
        return {each.speaker._replace(incarnation=each.follows[0]) for each in self.ever if each.follows}

    def _told_to(self, run: Any) -> int:
        reached: list[int] = [each.seq for each in self.ever if each.speaker == run]
        reached += [
            each.event.last_seq
            for each in self.ever
            if each.speaker == run and isinstance(each.event, Heartbeat)
        ]
        reached += [
            each.follows[1]
            for each in self.ever
            if each.follows and each.speaker._replace(incarnation=each.follows[0]) == run
        ]
        return max(reached) + 1

    def two_payloads(self) -> set[tuple[str, str]]:
        """What was said first stands. Under one number, or under one id of what was done, whoever says it."""
        line = sorted(self.today, key=lambda each: (each.observed_at_ms, each.speaker, each.seq))
        found = set()
        for at, each in enumerate(line):
            same_number = [e for e in line[:at] if (e.speaker, e.seq) == (each.speaker, each.seq)]
            same_id = [e for e in line[:at] if _is_act(e) and e.event.event_id == each.event.event_id]
            is_other = bool(same_number) and same_number[0].event != each.event
            is_other |= _is_act(each) and bool(same_id) and same_id[0].event != each.event
            if is_other:
                name = f"{each.speaker.broker_id}/{each.speaker.component}"
                found.add((name, f"{each.speaker.incarnation}:{each.seq}"))
        return found

    def silent(self) -> set[tuple[str, str]]:
        """Who watches disks, and was not heard in the last ten minutes, though nobody retired it."""
        found = set()
        for broker_id, component in {(each.speaker.broker_id, each.speaker.component) for each in self.ever}:
            own = [
                e for e in self.ever if (e.speaker.broker_id, e.speaker.component) == (broker_id, component)
            ]
            is_retired = any(
                isinstance(e.event, EmitterRetired)
                and (e.event.broker_id, e.event.component) == (broker_id, component)
                for e in self.ever
            )
            watches = any(isinstance(e.event, LogBaseline) for e in own)
            last_ms = max(e.observed_at_ms for e in own)
            if watches and not is_retired and self.as_of_ms - last_ms > SILENT_MS:
                newest = max(e.speaker.incarnation for e in own)
                found.add((f"{broker_id}/{component}", str(newest)))
        return found


def _is_act(told: Any) -> bool:
    """Beats and readings are told anew, and never again."""
    return not isinstance(told.event, (Heartbeat, HighWatermark))
