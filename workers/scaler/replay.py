"""Samples that were kept, and what would have been said of them: by these options, or by others.

A file has one JSON value a line: a sample, or a link as `seawall scaler explain --json` prints it. A first
line of {"scalerMetadata": {...}} says under which options; whoever replays may say otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workers.scaler.codec import NotReadable, from_json
from workers.scaler.evaluate import evaluate
from workers.scaler.options import Options, read_options
from workers.scaler.values import Evaluation, Sample, State
from workers.scaler.window import Window

SAMPLES_MAX = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A sample, and the word on it."""

    sample: Sample
    word: Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a file has."""

    metadata: Mapping[str, str]
    samples: tuple[Sample, ...]


def read_samples(lines: Iterable[str]) -> Kept:
    """Raises NotReadable, with the line's number."""
    metadata: dict[str, str] = {}
    samples: list[Sample] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
            if isinstance(raw, dict) and "scalerMetadata" in raw:
                metadata = {str(key): str(value) for key, value in dict(raw["scalerMetadata"]).items()}
                continue
            samples.append(
                from_json(Sample, raw["sample"] if isinstance(raw, dict) and "sample" in raw else raw)
            )
        except (ValueError, TypeError, NotReadable) as refused:
            raise NotReadable(f"line {number}: {refused}") from None
        if len(samples) > SAMPLES_MAX:
            raise NotReadable(f"more than {SAMPLES_MAX} samples")
    return Kept(metadata=metadata, samples=tuple(samples))


def options_of(kept: Kept, told: Mapping[str, str]) -> Options:
    """Those of the file with what was told on top. A group and a topic need not be named: none is looked
    at.
    """
    return read_options({"consumerGroup": "replayed", "topic": "replayed", **kept.metadata, **told})


def replay(options: Options, samples: Iterable[Sample]) -> list[Judged]:
    """The words, as the scaler would have said them."""
    state, window = State(), Window()
    judged = []
    for sample in samples:
        if window.last is not None and sample.at_s <= window.last.at_s:
            continue  # it adds nothing
        window = window.with_sample(sample, horizon_s=options.horizon_s)
        state, word = evaluate(options, state, window)
        judged.append(Judged(sample=sample, word=word))
    return judged
