"""What a ScaledObject asks for, in its scalerMetadata: each key with its default and what is allowed.

Strict: a key that is not known, a value that is not allowed, or two that contradict each other are refused
with the key's name, so that a slip never becomes a default. Secrets have no key here: how clusters are
reached is the operator's, who names them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from workers.scaler.values import GroupKey

# What KEDA reads itself and hands on all the same (pkg/scalers/external_scaler.go).
KEDAS_OWN = frozenset({"scalerAddress", "enableTLS", "unsafeSsl"})
DEFAULT_CLUSTER = "default"
REPLICAS_MAX = 10_000
SAMPLES_MAX = 2_048  # of a window: what the longest time may hold at the shortest interval


class OptionRefused(Exception):
    """`key` of the scalerMetadata cannot be followed; the message says why, and names it."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"scalerMetadata.{key}: {why}")
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A field is a key in snake_case; `_KEYS` has how each is read."""

    cluster: str = DEFAULT_CLUSTER
    consumer_group: str
    topic: str
    partitions: tuple[int, ...] = ()  # none: all of them

    lag_threshold: int = 500  # of all partitions together, as paper 001's
    lag_threshold_exit: int = 250
    age_threshold_s: float = 0.0  # 0: only records count
    sustain_s: float = 120.0
    release_s: float = 300.0
    min_samples: int = 3
    sampling_interval_s: float = 10.0
    gap_max_s: float = 30.0
    smoothing: str = "median"
    smoothing_samples: int = 3

    min_replicas: int = 1  # while it is active
    max_replicas: int = 0  # 0: one a partition
    allow_idle_consumers: bool = False
    balanced: str = "divisors"
    consumers_per_replica: int = 1
    step_up: int = 4
    step_down: int = 1
    drain_s: float = 300.0  # a backlog is to be gone in so long
    headroom: float = 0.8  # so much of what replicas can do is asked of them when scaling in

    scale_up_interval_s: float = 60.0
    cool_down_s: float = 300.0
    rebalance_quiet_s: float = 30.0
    help_s: float = 120.0
    help_share: float = 0.1  # so much more must be consumed after scaling out
    freeze_s: float = 900.0

    activation_lag: int = 0
    activation_sustain_s: float = 0.0
    offset_reset: str = "latest"
    isolation: str = "read_committed"
    stall_s: float = 300.0
    marker_tail_s: float = 60.0

    @property
    def key(self) -> GroupKey:
        return GroupKey(
            cluster=self.cluster, group=self.consumer_group, topic=self.topic, isolation=self.isolation
        )

    @property
    def horizon_s(self) -> float:
        """So far back a word may look; older samples are not kept."""
        longest = max(
            self.sustain_s,
            self.release_s,
            self.stall_s,
            self.marker_tail_s,
            self.help_s,
            self.age_threshold_s + self.sustain_s,
            self.activation_sustain_s,
        )
        return longest + 2 * self.gap_max_s

    @property
    def stale_s(self) -> float:
        """An evaluation older than that is no knowledge."""
        return self.gap_max_s

    def cap(self, partitions: int) -> int:
        """The most replicas that are ever wanted."""
        useful = -(-partitions // self.consumers_per_replica)  # more would have nothing to do
        if self.allow_idle_consumers and self.max_replicas:
            return self.max_replicas
        return max(self.min_replicas, min(useful, self.max_replicas or useful))

    @property
    def fingerprint(self) -> str:
        """Another one means: other settings, so that nothing that was decided under these holds."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _text(raw: str) -> str:
    if not raw.strip():
        raise ValueError("it must not be empty")
    return raw


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(raw: str) -> int:
        if re.fullmatch(r"[0-9]{1,15}", raw) is None or not least <= int(raw) <= most:
            raise ValueError(f"it must be a whole number from {least} to {most}")
        return int(raw)

    return read


def _number(least: float, most: float) -> Callable[[str], float]:
    def read(raw: str) -> float:
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", raw) is None or not least <= float(raw) <= most:
            raise ValueError(f"it must be a number from {least:g} to {most:g}")
        return float(raw)

    return read


def _one_of(*words: str) -> Callable[[str], str]:
    def read(raw: str) -> str:
        if raw not in words:
            raise ValueError("it must be one of " + ", ".join(words))
        return raw

    return read


def _yes_or_no(raw: str) -> bool:
    return _one_of("true", "false")(raw) == "true"


def _partitions(raw: str) -> tuple[int, ...]:
    """As KEDA's own trigger writes them: 1,2,10-20."""
    found: set[int] = set()
    for part in raw.split(","):
        numbers = re.fullmatch(r"\s*([0-9]{1,6})(?:-([0-9]{1,6}))?\s*", part)
        if numbers is None or int(numbers[2] or numbers[1]) < int(numbers[1]):
            raise ValueError("it must be partitions such as 1,2,10-20")
        found |= set(range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1))
    return tuple(sorted(found))


_SECONDS = _number(0, 86_400)
_KEYS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "cluster": ("cluster", _text),
    "consumerGroup": ("consumer_group", _text),
    "topic": ("topic", _text),
    "partitionLimitation": ("partitions", _partitions),
    "lagThreshold": ("lag_threshold", _whole(1, 10**12)),
    "lagThresholdExit": ("lag_threshold_exit", _whole(0, 10**12)),
    "ageThresholdSeconds": ("age_threshold_s", _SECONDS),
    "sustainSeconds": ("sustain_s", _SECONDS),
    "releaseSeconds": ("release_s", _SECONDS),
    "minSamples": ("min_samples", _whole(2, 1_000)),
    "samplingIntervalSeconds": ("sampling_interval_s", _number(0.1, 3_600)),
    "gapMaxSeconds": ("gap_max_s", _number(0.2, 86_400)),
    "smoothing": ("smoothing", _one_of("none", "average", "median")),
    "smoothingSamples": ("smoothing_samples", _whole(1, 99)),
    "minReplicas": ("min_replicas", _whole(1, REPLICAS_MAX)),
    "maxReplicas": ("max_replicas", _whole(0, REPLICAS_MAX)),
    "allowIdleConsumers": ("allow_idle_consumers", _yes_or_no),
    "balancedReplicas": ("balanced", _one_of("divisors", "useful", "none")),
    "consumersPerReplica": ("consumers_per_replica", _whole(1, 1_000)),
    "stepUp": ("step_up", _whole(1, REPLICAS_MAX)),
    "stepDown": ("step_down", _whole(1, REPLICAS_MAX)),
    "drainSeconds": ("drain_s", _number(1, 86_400)),
    "headroom": ("headroom", _number(0.1, 1)),
    "scaleUpIntervalSeconds": ("scale_up_interval_s", _SECONDS),
    "coolDownSeconds": ("cool_down_s", _SECONDS),
    "rebalanceQuietSeconds": ("rebalance_quiet_s", _SECONDS),
    "helpSeconds": ("help_s", _SECONDS),
    "helpShare": ("help_share", _number(0, 10)),
    "freezeSeconds": ("freeze_s", _SECONDS),
    "activationLag": ("activation_lag", _whole(0, 10**12)),
    "activationSustainSeconds": ("activation_sustain_s", _SECONDS),
    "offsetResetPolicy": ("offset_reset", _one_of("latest", "earliest")),
    "isolationLevel": ("isolation", _one_of("read_committed", "read_uncommitted")),
    "stallSeconds": ("stall_s", _number(1, 86_400)),
    "markerTailSeconds": ("marker_tail_s", _SECONDS),
}
REQUIRED = ("consumerGroup", "topic")
KEYS = tuple(_KEYS)


def read_options(metadata: Mapping[str, str]) -> Options:
    """The options that this scalerMetadata asks for. Raises OptionRefused, with the first key that is
    wrong.
    """
    for key in REQUIRED:
        if key not in metadata:
            raise OptionRefused(key, "it is needed, and it is not there")
    told: dict[str, Any] = {}
    for key, raw in metadata.items():
        if key in KEDAS_OWN:
            continue
        if key not in _KEYS:
            raise OptionRefused(key, f"there is no such key; there are {', '.join(KEYS)}")
        name, read = _KEYS[key]
        try:
            told[name] = read(raw)
        except ValueError as refused:
            raise OptionRefused(key, str(refused)) from None
    return _agreeing(_filled(told))


def _filled(told: dict[str, Any]) -> Options:
    """Defaults that follow from what was told: an exit of half the threshold, a gap of three samples."""
    if "lag_threshold" in told and "lag_threshold_exit" not in told:
        told["lag_threshold_exit"] = told["lag_threshold"] // 2
    if "sampling_interval_s" in told and "gap_max_s" not in told:
        told["gap_max_s"] = 3 * told["sampling_interval_s"]
    return Options(**told)


def _agreeing(options: Options) -> Options:
    for key, why, is_wrong in (
        (
            "lagThresholdExit",
            "it must be below lagThreshold: between the two nothing changes",
            options.lag_threshold_exit >= options.lag_threshold,
        ),
        (
            "gapMaxSeconds",
            "it must be more than samplingIntervalSeconds",
            options.gap_max_s <= options.sampling_interval_s,
        ),
        (
            "maxReplicas",
            "it must not be below minReplicas",
            0 < options.max_replicas < options.min_replicas,
        ),
        (
            "activationLag",
            "it must be below lagThreshold",
            options.activation_lag >= options.lag_threshold,
        ),
        (
            "samplingIntervalSeconds",
            f"it is too short for the times that are looked at: over {SAMPLES_MAX} samples",
            options.horizon_s / options.sampling_interval_s > SAMPLES_MAX,
        ),
        (
            "minSamples",
            "sustainSeconds does not hold so many samples",
            (options.min_samples - 1) * options.sampling_interval_s
            > max(options.sustain_s, options.gap_max_s),
        ),
    ):
        if is_wrong:
            raise OptionRefused(key, why)
    return options
