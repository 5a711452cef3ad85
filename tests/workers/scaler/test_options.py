"""scalerMetadata is followed to the letter or refused by the key."""

from __future__ import annotations

import pytest

from workers.scaler.options import KEYS, OptionRefused, read_options

LEAST = {"consumerGroup": "g", "topic": "t"}


def test_defaults_are_the_papers() -> None:
    """Group and topic are enough; 500 records for 120 seconds, as paper 001."""
    options = read_options(LEAST)

    assert (options.lag_threshold, options.sustain_s, options.lag_threshold_exit) == (500, 120.0, 250)


def test_what_keda_hands_on_of_its_own_is_passed_over() -> None:
    """KEDA forwards all the trigger's metadata, scalerAddress among it."""
    assert read_options({**LEAST, "scalerAddress": "s:9318", "enableTLS": "true"}) == read_options(LEAST)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lagThreshhold", "5"),
        ("passwordFromEnv", "hunter2"),
        ("lagThreshold", "0"),
        ("lagThreshold", "-1"),
        ("lagThreshold", "1e3"),
        ("lagThreshold", "٣"),
        ("lagThresholdExit", "500"),
        ("sustainSeconds", "2m"),
        ("sustainSeconds", "nan"),
        ("smoothing", "mode"),
        ("partitionLimitation", "3-1"),
        ("partitionLimitation", ""),
        ("topic", " "),
        ("gapMaxSeconds", "10"),
        ("activationLag", "500"),
        ("minSamples", "100"),
        ("samplingIntervalSeconds", "0.1"),
        ("allowIdleConsumers", "yes"),
    ],
)
def test_what_is_not_allowed_is_refused_by_its_key(key: str, value: str) -> None:
    """The key is in the message and on the error; a value is never in it, as it could be a secret."""
    with pytest.raises(OptionRefused, match=rf"scalerMetadata\.{key}:") as refused:
        read_options({**LEAST, key: value})

    assert refused.value.key == key
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("key", ["consumerGroup", "topic"])
def test_what_is_needed_is_missed_by_its_key(key: str) -> None:
    """Without a group or a topic there is nothing to look at."""
    with pytest.raises(OptionRefused) as refused:
        read_options({name: value for name, value in LEAST.items() if name != key})

    assert refused.value.key == key


def test_exit_and_gap_follow_from_what_they_belong_to() -> None:
    """Half the threshold, three samples: whoever sets the one need not set the other."""
    options = read_options({**LEAST, "lagThreshold": "90", "samplingIntervalSeconds": "5"})

    assert (options.lag_threshold_exit, options.gap_max_s) == (45, 15.0)


def test_another_value_is_another_fingerprint() -> None:
    """What was decided under other settings must not be taken over."""
    assert read_options(LEAST).fingerprint == read_options(dict(LEAST)).fingerprint
    assert read_options({**LEAST, "stepUp": "5"}).fingerprint != read_options(LEAST).fingerprint


def test_partitions_are_written_as_for_kedas_own_trigger() -> None:
    """Numbers and ranges."""
    assert read_options({**LEAST, "partitionLimitation": "7, 1-3"}).partitions == (1, 2, 3, 7)


def test_every_option_has_a_key() -> None:
    """No field of the options is out of a ScaledObject's reach."""
    from dataclasses import fields

    from workers.scaler.options import Options

    assert len(KEYS) == len(fields(Options))
