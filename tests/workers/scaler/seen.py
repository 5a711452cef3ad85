"""Makes samples by hand: a group, a moment every ten seconds, and what each partition shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workers.scaler.evaluate import evaluate
from workers.scaler.options import Options
from workers.scaler.values import Evaluation, PartitionSample, Sample, State
from workers.scaler.window import Window

EVERY_S = 10.0


def options(**told: Any) -> Options:
    return replace(Options(consumer_group="g", topic="t"), **told)


def partition(number: int = 0, *, committed: int | None = 0, end: int = 0, **more: Any) -> PartitionSample:
    return PartitionSample(partition=number, committed=committed, log_end=end, **more)


def sample(at_s: float, *partitions: PartitionSample, members: int = 1, **more: Any) -> Sample:
    told = {"topic_id": "T", "membership": f"m{members}", "is_settled": True, **more}
    return Sample(at_s=at_s, members=members, partitions=partitions, **told)


@dataclass
class Seen:
    """Folds samples as the scaler does. Of one partition, unless they are handed in whole."""

    options: Options
    state: State = field(default_factory=State)
    window: Window = field(default_factory=Window)
    now_s: float = 0.0
    end: int = 0
    words: list[Evaluation] = field(default_factory=list)

    def see(self, *partitions: PartitionSample, after_s: float = EVERY_S, **more: Any) -> Evaluation:
        self.now_s += after_s
        seen = sample(self.now_s, *partitions, **more)
        self.window = self.window.with_sample(seen, horizon_s=self.options.horizon_s)
        self.state, word = evaluate(self.options, self.state, self.window)
        self.words.append(word)
        return word

    def lags(self, lags: Sequence[int], *, produced: int = 100, members: int = 1) -> Evaluation:
        """One sample a lag, of a log that grows by `produced` between them."""
        for lag in lags:
            self.end += produced
            word = self.see(
                partition(committed=1_000_000 + self.end - lag, end=1_000_000 + self.end), members=members
            )
        return word
