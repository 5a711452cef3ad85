"""A workload, a group and an HPA in steps of a second, and the traces of records that come. Deterministic.

What is modelled: partitions with their own offsets; consumers that share the partitions as a balanced
assignor does, each doing CAPACITY records a second at most; a pause of all consumption after each change of
the group; a time until a new replica has come; commits every few seconds. HPA as of autoscaling/v2: asked
every 15 s, AverageValue, a tolerance of 10 %, at most double or four more a period, and on the way down the
highest wish of its window.

What is not: unequal keys, nodes that are full, KEDA's own 0 to 1 (there is always one replica).
"""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from workers.scaler.values import PartitionSample, Sample

PARTITIONS = 6
CAPACITY = 100.0  # records a second of one consumer
TRACE_S = 3_600
COMING_S = 20
PAUSE_S = 5
HPA_S = 15
TOLERANCE = 0.1
THRESHOLD = 500
FLAP_S = 600
RECORDED = Path(__file__).with_name("scaler_recorded.jsonl.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What comes: records of each second, and what holds consumers up."""

    name: str
    arrivals: Sequence[float]
    commit_every_s: int = 5
    downstream_per_s: float | None = None  # what all consumers together may do
    poisoned_from_s: int | None = None  # partition 0 does nothing from then on
    marker_tails: bool = False


@dataclass(slots=True)
class Cluster:
    """The group: offsets of each partition, and who consumes."""

    trace: Trace
    replicas: int = 1
    ends: list[float] = field(default_factory=lambda: [0.0] * PARTITIONS)
    done: list[float] = field(default_factory=lambda: [0.0] * PARTITIONS)
    commits: list[float] = field(default_factory=lambda: [0.0] * PARTITIONS)
    coming: list[int] = field(default_factory=list)
    paused_until_s: int = 0
    generation: int = 0

    def step(self, now_s: int) -> None:
        """One second."""
        for number in range(PARTITIONS):
            self.ends[number] += self.trace.arrivals[now_s] / PARTITIONS
        arrived = [at_s for at_s in self.coming if at_s <= now_s]
        if arrived:
            self.coming = [at_s for at_s in self.coming if at_s > now_s]
            self._changed(self.replicas + len(arrived), now_s)
        if now_s >= self.paused_until_s:
            self._work(now_s)
        if now_s % self.trace.commit_every_s == 0:
            self.commits = list(self.done)

    def scale(self, wanted: int, now_s: int) -> None:
        """New ones come after a while; those that are too many go at once."""
        if wanted > self.replicas + len(self.coming):
            self.coming += [now_s + COMING_S] * (wanted - self.replicas - len(self.coming))
        elif wanted < self.replicas + len(self.coming):
            self.coming = self.coming[: max(0, wanted - self.replicas)]
            if wanted < self.replicas:
                self._changed(wanted, now_s)

    def _changed(self, replicas: int, now_s: int) -> None:
        self.replicas = replicas
        self.generation += 1
        self.paused_until_s = now_s + PAUSE_S

    def _work(self, now_s: int) -> None:
        allowed = math.inf if self.trace.downstream_per_s is None else self.trace.downstream_per_s
        share = min(1.0, allowed / (CAPACITY * self.replicas))
        poisoned = self.trace.poisoned_from_s
        for consumer in range(min(self.replicas, PARTITIONS)):
            budget = CAPACITY * share
            mine = [
                number
                for number in range(consumer, PARTITIONS, self.replicas)
                if not (number == 0 and poisoned is not None and now_s >= poisoned)
            ]
            for left, number in zip(range(len(mine), 0, -1), sorted(mine, key=self._lag), strict=True):
                took = min(budget / left, self._lag(number))
                self.done[number] += took
                budget -= took

    def _lag(self, number: int) -> float:
        return self.ends[number] - self.done[number]

    def lag(self) -> int:
        """As committed, of all partitions."""
        return sum(int(end) - int(commit) for end, commit in zip(self.ends, self.commits, strict=True))

    def workable(self) -> float:
        """What replicas could do something about."""
        dead = {0} if self.trace.poisoned_from_s is not None else set()
        return sum(self._lag(number) for number in range(PARTITIONS) if number not in dead)

    def sample(self, now_s: int) -> Sample:
        """As the scaler's sampler would see it."""
        tail = int(self.trace.marker_tails)
        return Sample(
            at_s=float(now_s),
            topic_id="T",
            members=self.replicas,
            membership=str(self.generation),
            is_settled=now_s >= self.paused_until_s,
            partitions=tuple(
                PartitionSample(
                    partition=number,
                    committed=int(self.commits[number]),
                    log_end=int(self.ends[number]) + tail,
                )
                for number in range(PARTITIONS)
            ),
        )


class Policy(Protocol):
    """Says the metric; the target is 1, so the metric is a number of replicas."""

    def tick(self, cluster: Cluster, now_s: int) -> None:
        """Each second."""

    def metric(self, cluster: Cluster, now_s: int) -> float | None:
        """When HPA asks; None: unavailable."""


@dataclass(slots=True)
class Hpa:
    """autoscaling/v2 with its defaults, but for the window."""

    window_s: int
    wishes: list[tuple[int, int]] = field(default_factory=list)

    def wanted(self, metric: float | None, now: int, now_s: int) -> int:
        if metric is None:
            return now
        wish = now if abs(metric / now - 1) <= TOLERANCE else math.ceil(metric)
        wish = min(PARTITIONS, max(1, wish))
        self.wishes = [each for each in self.wishes if each[0] > now_s - self.window_s] + [(now_s, wish)]
        if wish > now:
            return min(wish, max(2 * now, now + 4))
        return min(now, max(each for _, each in self.wishes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Of one trace."""

    flaps: int
    moves: int
    over_s: int
    replica_s: int

    def __add__(self, other: Score) -> Score:
        return Score(
            flaps=self.flaps + other.flaps,
            moves=self.moves + other.moves,
            over_s=self.over_s + other.over_s,
            replica_s=self.replica_s + other.replica_s,
        )


NOTHING = Score(flaps=0, moves=0, over_s=0, replica_s=0)


def run(trace: Trace, policy: Policy, *, window_s: int) -> Score:
    """One hour under a policy. A flap: a move against the last one, within ten minutes of it."""
    cluster, hpa = Cluster(trace), Hpa(window_s)
    moves: list[tuple[int, int]] = []
    over_s = replica_s = 0
    for now_s in range(len(trace.arrivals)):
        cluster.step(now_s)
        policy.tick(cluster, now_s)
        if now_s % HPA_S == 0:
            now = cluster.replicas + len(cluster.coming)
            wanted = hpa.wanted(policy.metric(cluster, now_s), now, now_s)
            if wanted != now:
                moves.append((now_s, 1 if wanted > now else -1))
                cluster.scale(wanted, now_s)
        over_s += cluster.workable() >= THRESHOLD
        replica_s += cluster.replicas + len(cluster.coming)
    flaps = sum(after[1] != before[1] and after[0] - before[0] <= FLAP_S for before, after in pairwise(moves))
    return Score(flaps=flaps, moves=len(moves), over_s=over_s, replica_s=replica_s)


def generated(seed: int, each: int) -> Iterator[tuple[str, Trace]]:
    """`each` traces of every family, from this seed."""
    for family, make in FAMILIES.items():
        for number in range(each):
            chance = random.Random(f"{seed}/{family}/{number}")
            yield family, make(f"{family}-{number}", chance)


def recorded() -> Iterator[tuple[str, Trace]]:
    """What came to real topics, a second of the recording stretched over SCALE seconds."""
    from bench.scaler_record import SCALE

    ends: dict[int, list[tuple[float, int]]] = {}
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            total = sum(each["log_end"] for each in raw["sample"]["partitions"])
            ends.setdefault(raw["trace"], []).append((raw["sample"]["at_s"] * SCALE, total))
    for number, points in sorted(ends.items()):
        arrivals = [0.0] * TRACE_S
        for (from_s, before), (to_s, after) in pairwise(points):
            inside = range(int(from_s), min(TRACE_S, int(to_s)))
            for at_s in inside:
                arrivals[at_s] = (after - before) * STRETCHED / len(inside)
        yield "recorded", Trace(name=f"recorded-{number}", arrivals=arrivals)


STRETCHED = (
    12.0  # what came in a recorded second comes twelvefold in its stretch: half its rate in records a second
)


def _noisy(chance: random.Random, level: float, noise: float = 0.1) -> float:
    return max(0.0, chance.gauss(level, noise * level))


def _of(shape: Callable[[int], float], chance: random.Random, noise: float = 0.1) -> list[float]:
    return [_noisy(chance, shape(now_s), noise) for now_s in range(TRACE_S)]


def _steady(name: str, chance: random.Random) -> Trace:
    level = chance.uniform(20, 380)
    return Trace(name=name, arrivals=_of(lambda _: level, chance))


def _blips(name: str, chance: random.Random) -> Trace:
    """Short spikes over a load that one or two consumers can do."""
    level, arrivals = chance.uniform(20, 60), []
    left = 0
    for _ in range(TRACE_S):
        if left == 0 and chance.random() < 1 / 240:
            left = chance.randint(2, 10)
        arrivals.append(_noisy(chance, level + (250 if left else 0)))
        left = max(0, left - 1)
    return Trace(name=name, arrivals=arrivals)


def _spike(name: str, chance: random.Random) -> Trace:
    """One batch that takes minutes to be worked off."""
    level, at_s, size = chance.uniform(20, 70), chance.randint(300, 1_500), chance.uniform(2_000, 8_000)
    arrivals = _of(lambda _: level, chance)
    for offset in range(10):
        arrivals[at_s + offset] += size / 10
    return Trace(name=name, arrivals=arrivals)


def _step(name: str, chance: random.Random) -> Trace:
    low, high, at_s = chance.uniform(20, 80), chance.uniform(150, 450), chance.randint(300, 1_500)
    return Trace(name=name, arrivals=_of(lambda now_s: high if now_s >= at_s else low, chance))


def _pulse(name: str, chance: random.Random) -> Trace:
    """Up for a quarter of an hour and down again."""
    low, high, at_s = chance.uniform(20, 80), chance.uniform(150, 450), chance.randint(300, 1_200)
    return Trace(name=name, arrivals=_of(lambda now_s: high if 0 <= now_s - at_s < 900 else low, chance))


def _wave(name: str, chance: random.Random) -> Trace:
    """A day in an hour."""
    middle, swing, shift = chance.uniform(120, 220), chance.uniform(60, 120), chance.uniform(0, TRACE_S)
    return Trace(
        name=name,
        arrivals=_of(
            lambda now_s: middle + swing * math.sin(2 * math.pi * (now_s + shift) / TRACE_S), chance
        ),
    )


def _cron(name: str, chance: random.Random) -> Trace:
    """A batch every few minutes, nothing between."""
    every_s, size = chance.choice([60, 120, 300]), chance.uniform(800, 3_000)
    return Trace(
        name=name,
        arrivals=[_noisy(chance, size / 5 if now_s % every_s < 5 else 5) for now_s in range(TRACE_S)],
    )


def _slow_commits(name: str, chance: random.Random) -> Trace:
    """Consumers keep up, and commit once a minute: a lag like a saw."""
    level = chance.uniform(30, 85)
    return Trace(name=name, arrivals=_of(lambda _: level, chance), commit_every_s=60)


def _downstream(name: str, chance: random.Random) -> Trace:
    """A database holds all of them up, however many there are."""
    cap = chance.uniform(80, 180)
    level = cap * chance.uniform(1.05, 1.4)
    return Trace(
        name=name,
        arrivals=_of(lambda now_s: level if now_s > 600 else cap * 0.6, chance),
        downstream_per_s=cap,
    )


def _poison(name: str, chance: random.Random) -> Trace:
    level = chance.uniform(40, 85)
    return Trace(name=name, arrivals=_of(lambda _: level, chance), poisoned_from_s=chance.randint(120, 900))


def _near(name: str, chance: random.Random) -> Trace:
    """A load at the edge of what a whole number of consumers can do, and noise that moves slowly."""
    edge, arrivals, drift = CAPACITY * chance.randint(1, 4), [], 0.0
    for _ in range(TRACE_S):
        drift = 0.995 * drift + chance.gauss(0, 1.5)
        arrivals.append(_noisy(chance, max(0.0, edge * 0.97 + drift)))
    return Trace(name=name, arrivals=arrivals, marker_tails=True)


FAMILIES: dict[str, Callable[[str, random.Random], Trace]] = {
    "steady": _steady,
    "blips": _blips,
    "spike": _spike,
    "step": _step,
    "pulse": _pulse,
    "wave": _wave,
    "cron": _cron,
    "slow commits": _slow_commits,
    "downstream": _downstream,
    "poison": _poison,
    "near the edge": _near,
}
