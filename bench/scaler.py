"""scaler: flaps and time over the threshold on a hundred traces, of our scaler and three others behind one
HPA.

The others: KEDA's built-in kafka trigger (docs 2.21: total lag over lagThreshold, at most one replica a
partition), a plain threshold (one more above it, one fewer below), and paper 001's rule as its pseudo-code
has it (500 records for 120 s: one more, sustained low: one fewer; scale-up interval 60 s, cool-down 300 s).
All have the threshold of 500 records. Ours is at its defaults, which have the paper's parameters.

A flap is a move against the last one within ten minutes. `over` is the time in which 500 records or more
waited that replicas could do (a poisoned partition's are not), `replicas` what was paid for it. Each is the
sum over the traces of its line. Twice: with HPA's window of 300 s for scaling in, and with none, where what
the scaler itself does shows. Lower is better in every column, and the columns pull against each other.

Prints the table for people and one JSON line for each line of it. The seed is printed: the same seed makes
the same table.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, field

from bench.scaler_model import (
    NOTHING,
    PARTITIONS,
    THRESHOLD,
    Cluster,
    Policy,
    Score,
    generated,
    recorded,
    run,
)
from workers.scaler.evaluate import evaluate
from workers.scaler.options import Options, read_options
from workers.scaler.values import Evaluation, State
from workers.scaler.window import Window

SEED = 10
EACH = 8  # traces of each of eleven families: 88, and twelve recorded
WINDOWS_S = (300, 0)
SUSTAIN_S = 120


class Builtin:
    """KEDA's own trigger."""

    def tick(self, cluster: Cluster, now_s: int) -> None:
        """It has no samples of its own."""

    def metric(self, cluster: Cluster, now_s: int) -> float:
        return min(cluster.lag() / THRESHOLD, PARTITIONS)


class Threshold:
    """One more above, one fewer below."""

    def tick(self, cluster: Cluster, now_s: int) -> None:
        """It has no samples of its own."""

    def metric(self, cluster: Cluster, now_s: int) -> float:
        now = cluster.replicas + len(cluster.coming)
        return now + 1 if cluster.lag() > THRESHOLD else max(1, now - 1)


@dataclass(slots=True)
class Paper:
    """Paper 001, section 7, and section 5.3's interval and cool-down."""

    every_s: int = 10
    window: list[tuple[int, int]] = field(default_factory=list)
    moved_s: int = -1_000
    wanted: int = 1

    def tick(self, cluster: Cluster, now_s: int) -> None:
        if now_s % self.every_s:
            return
        self.window = [each for each in self.window if each[0] >= now_s - SUSTAIN_S]
        self.window.append((now_s, cluster.lag()))
        high = [at_s for at_s, lag in self.window if lag > THRESHOLD]
        is_full = self.window[0][0] <= now_s - SUSTAIN_S
        if high and high[-1] - high[0] >= SUSTAIN_S and now_s - self.moved_s >= 60:
            self._move(min(PARTITIONS, self.wanted + 1), now_s)
        elif is_full and not high and now_s - self.moved_s >= 300:
            self._move(max(1, self.wanted - 1), now_s)

    def _move(self, to: int, now_s: int) -> None:
        if to != self.wanted:
            self.wanted, self.moved_s = to, now_s

    def metric(self, cluster: Cluster, now_s: int) -> float:
        return float(self.wanted)


@dataclass(slots=True)
class Ours:
    """workers.scaler, as it is."""

    options: Options = field(default_factory=lambda: read_options({"consumerGroup": "g", "topic": "t"}))
    state: State = field(default_factory=State)
    window: Window = field(default_factory=Window)
    word: Evaluation | None = None

    def tick(self, cluster: Cluster, now_s: int) -> None:
        if now_s % int(self.options.sampling_interval_s):
            return
        self.window = self.window.with_sample(cluster.sample(now_s), horizon_s=self.options.horizon_s)
        self.state, self.word = evaluate(self.options, self.state, self.window)

    def metric(self, cluster: Cluster, now_s: int) -> float | None:
        return self.word.replicas if self.word is not None and self.word.is_known else None


POLICIES: dict[str, type[Builtin] | type[Threshold] | type[Paper] | type[Ours]] = {
    "ours": Ours,
    "KEDA's built-in": Builtin,
    "plain threshold": Threshold,
    "paper 001": Paper,
}


def scores(seed: int, each: int, *, window_s: int) -> dict[str, dict[str, Score]]:
    """By family and policy, summed over the traces."""
    found: dict[str, dict[str, Score]] = defaultdict(lambda: dict.fromkeys(POLICIES, NOTHING))
    for family, trace in (*generated(seed, each), *recorded()):
        for name, made in POLICIES.items():
            policy: Policy = made()
            score = run(trace, policy, window_s=window_s)
            found[family][name] += score
            found["all"][name] += score
    found["all"] = found.pop("all")  # the last line
    return found


def main(seed: int = SEED, each: int = EACH) -> None:
    for window_s in WINDOWS_S:
        print(f"scaler: seed {seed}, HPA's window for scaling in {window_s} s", file=sys.stderr)  # noqa: T201
        titles = "".join(f"{name:>28}" for name in POLICIES)
        print(f"{'':14}{titles}", file=sys.stderr)  # noqa: T201
        columns = "".join(f"{'flaps':>8}{'over s':>9}{'replica h':>11}" for _ in POLICIES)
        print(f"{'':14}{columns}", file=sys.stderr)  # noqa: T201
        for family, by_policy in scores(seed, each, window_s=window_s).items():
            cells = "".join(
                f"{one.flaps:>8}{one.over_s:>9}{one.replica_s / 3600:>11.1f}" for one in by_policy.values()
            )
            print(f"{family:14}{cells}", file=sys.stderr)  # noqa: T201
            line = {
                "bench": "scaler",
                "seed": seed,
                "hpa_window_s": window_s,
                "traces": family,
                **{name: asdict(one) for name, one in by_policy.items()},
            }
            print(json.dumps(line), flush=True)  # noqa: T201 the benchmark's one output


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
