"""AUD-01, AUD-02 and AUD-03 by the machine and by a second judge, over random emitters.

`random_words(seed)` makes what was said again; a failure names its seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rules.events import EmitterRetired, Heartbeat
from rules.machine import Speaker, Told, emitters
from rules.machine.emitters import listen
from tests.rules.machine.brute_emitters import JUDGED, EmitterJudge
from tests.rules.machine.histories import T0_MS, TERMS, History

MANY = 400
NAMES = ((1, "agent"), (2, "agent"), (1, "metadata"))


class Emitters:
    """Some runs of three emitters; of what they say, some is lost, doubled, or told again otherwise."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.h = History(mode="none", now_ms=T0_MS)
        self.runs = dict.fromkeys(NAMES, 7)
        self.told: list[Told] = []
        self.next: Counter[Speaker] = Counter()
        self.follows: dict[Speaker, tuple[int, int]] = {}

    def says(self) -> None:
        broker, component = self.rng.choice(NAMES)
        speaker = Speaker(broker, component, self.runs[broker, component])
        acts = (self._beat, self._beat, self._reading, self._reading, self._act, self._act, self._baseline)
        act = self._retires if self.rng.random() < 0.01 else self.rng.choice(acts)
        act(broker, speaker)
        said = replace(
            self.h.told.pop(),
            speaker=speaker,
            seq=self.next[speaker],
            log_seq=None,
            follows=self.follows.pop(speaker, None),
        )
        self.next[speaker] += 1
        if self.rng.random() < 0.97:
            self.told.append(said)
        if self.rng.random() < 0.04:
            self._told_again(said)

    def _beat(self, broker: int, speaker: Speaker) -> None:
        self.h.say(
            Heartbeat,
            broker,
            last_seq=self.next[speaker] - 1,
            log_count=1,
            log_seqs_digest="",
            lost_count=0,
            metadata_offset=None,
        )

    def _reading(self, broker: int, speaker: Speaker) -> None:
        self.h.watermark(broker, 100)

    def _act(self, broker: int, speaker: Speaker) -> None:
        self.h.start(broker, 0, self.rng.randint(1, 9))

    def _baseline(self, broker: int, speaker: Speaker) -> None:
        if speaker.component == "agent":
            self.h.baseline(broker, start=0, local=0, watermark=100, size_bytes=1)
        else:
            self._act(broker, speaker)

    def _retires(self, broker: int, speaker: Speaker) -> None:
        """One of the three, or somebody who was never heard."""
        self._act(broker, speaker)
        known = self.h.told.pop()
        other, component = self.rng.choice((*NAMES, (9, "agent")))
        event = EmitterRetired(
            event_id=f"retired {len(self.told)}",
            occurred_at_ms=self.h.now_ms,
            cluster_id="c1",
            broker_id=other,
            component=component,
            last_incarnation=None,
            last_seq=None,
            principal="alice",
            reason="its host is gone",
            metadata_offset=None,
        )
        self.h.told.append(replace(known, event=event))

    def _told_again(self, said: Told) -> None:
        """As it was, or otherwise; under its number, or under another's."""
        event: Any = said.event
        if self.rng.random() < 0.6:
            event = replace(event, occurred_at_ms=event.occurred_at_ms + 1)
        speaker, seq = said.speaker, said.seq
        if self.rng.random() < 0.4:
            speaker = self.rng.choice([each for each in self.next if self.next[each]])
            seq = self.next[speaker]
            self.next[speaker] += 1
        self.told.append(
            replace(said, event=event, speaker=speaker, seq=seq, observed_at_ms=self.h.now_ms, follows=None)
        )

    def starts_again(self) -> None:
        """A run that says which it follows, and how far that one had counted."""
        name = self.rng.choice(NAMES)
        old = Speaker(*name, self.runs[name])
        self.runs[name] += 1
        if self.next[old]:
            self.follows[Speaker(*name, self.runs[name])] = (old.incarnation, self.next[old] - 1)

    def time_passes(self) -> None:
        self.h.after(minutes=self.rng.choice((1, 5, 12)))


def random_words(seed: int) -> tuple[list[Told], int, int]:
    """What is heard up to a first cut and then up to a second, in no order."""
    some = Emitters(seed)
    for _ in range(some.rng.randint(5, 60)):
        some.says()
        if some.rng.random() < 0.05:
            some.starts_again()
        if some.rng.random() < 0.15:
            some.time_passes()
    some.rng.shuffle(some.told)
    return some.told, some.rng.randint(T0_MS, some.h.now_ms), some.h.now_ms


def _differences(seed: int) -> dict[str, tuple[set[Any], set[Any]]]:
    machine, truth = _both(seed)
    return {
        rule_id: (machine[rule_id], truth[rule_id])
        for rule_id in JUDGED
        if machine[rule_id] != truth[rule_id]
    }


def _both(seed: int) -> tuple[dict[str, set[Any]], dict[str, set[Any]]]:
    """By the machine, which carries its states over the first cut, and by the other, which has it all."""
    told, cut_ms, end_ms = random_words(seed)
    first = [each for each in told if each.observed_at_ms <= cut_ms]
    rest = [each for each in told if each.observed_at_ms > cut_ms]
    before = listen({}, first, TERMS, as_of_ms=cut_ms)
    heard = listen(before.states, rest, TERMS, as_of_ms=end_ms)
    machine: dict[str, set[Any]] = {rule_id: set() for rule_id in JUDGED}
    for each in heard.findings:
        machine[each.rule_id].add((each.subject.removeprefix("emitter "), each.anchor))
    return machine, EmitterJudge(told, rest, end_ms).judge()


def test_the_two_judges_agree_about_emitters(record_property: Callable[[str, object], None]) -> None:
    """Holes, doubles and silence: each one, by its emitter and number, and no other; each often enough."""
    wrong = {seed: found for seed in range(MANY) if (found := _differences(seed))}
    fired = Counter(rule_id for seed in range(MANY) for rule_id, found in _both(seed)[1].items() if found)
    record_property("fired", dict(fired))

    assert wrong == {}
    assert all(10 <= fired[rule_id] <= MANY - 10 for rule_id in JUDGED), fired


def _no_number_is_missed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(emitters, "_losses", lambda state, around: ())


def _what_the_next_run_says_is_not_heard(patch: pytest.MonkeyPatch) -> None:
    heard = emitters.heard
    patch.setattr(emitters, "heard", lambda before, said: heard(before, replace(said, follows=())))


def _contents_are_not_held_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(emitters, "two_payloads", lambda said: ())


def _readings_are_acts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(emitters, "NO_ACTS", ())


def _nobody_is_ever_silent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(emitters, "SILENT_AFTER_MS", 2**62)


MAIMED: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    _no_number_is_missed,
    _what_the_next_run_says_is_not_heard,
    _contents_are_not_held_together,
    _readings_are_acts,
    _nobody_is_ever_silent,
)


@pytest.mark.parametrize("maim", MAIMED, ids=lambda maim: maim.__name__.strip("_"))
def test_a_machine_that_listens_less_is_caught(
    maim: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the second judge."""
    maim(monkeypatch)

    assert any(_differences(seed) for seed in range(MANY))
