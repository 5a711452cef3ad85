"""`seawall scaler`: what can be said without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

from tests.seawall.cli.calling import call
from tests.workers.scaler.seen import Seen, options
from workers.scaler.codec import to_json


def samples_file(folder: Path) -> Path:
    seen = Seen(options())
    lines = [json.dumps({"scalerMetadata": {"balancedReplicas": "none", "maxReplicas": "4"}})]
    for lag in [10] * 3 + [700] * 20:
        seen.lags([lag])
        lines.append(json.dumps(to_json(seen.window.last)))
    file = folder / "samples.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_replay_shows_every_verdict_and_the_window(tmp_path: Path) -> None:
    """A line a sample with its reasons, and the picture; the same into a file."""
    svg = tmp_path / "window.svg"

    called = call("scaler", "replay", str(samples_file(tmp_path)), "--svg", str(svg))

    assert called.status == 0
    assert called.stdout.count("transient: lag 700") == 12
    assert "persistent: lag 700: at or above 500 for 120 s" in called.stdout
    assert "lagThreshold" in called.stdout
    assert svg.read_text().startswith("<svg")


def test_replay_by_other_options_says_otherwise(tmp_path: Path) -> None:
    """--set is on top of what the file says; --json has a line a sample, and nothing else."""
    file = str(samples_file(tmp_path))

    called = call("scaler", "replay", file, "--json", "--set", "lagThreshold=900")
    words = [json.loads(line)["word"] for line in called.stdout.splitlines()]

    assert len(words) == 23
    assert "PERSISTENT" not in {word["verdict"] for word in words}


def test_a_wrong_key_is_refused_by_its_name(tmp_path: Path) -> None:
    """With the scaler's own code; a --set that is none is a wrong command line."""
    file = str(samples_file(tmp_path))

    refused = call("scaler", "replay", file, "--set", "lagThreshhold=9")
    wrong = call("scaler", "replay", file, "--set", "lagThreshold")

    assert (refused.status, wrong.status) == (62, 2)
    assert "lagThreshhold" in refused.stderr


def test_no_samples_is_not_clean(tmp_path: Path) -> None:
    """An empty file, one that is none, and one of something else."""
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.write_text("\n")
    other.write_text("hello\n")

    statuses = [call("scaler", "replay", str(file)).status for file in (empty, other, tmp_path / "none")]

    assert statuses == [62, 62, 62]


def test_certificates_go_together() -> None:
    """A key alone would serve in the clear what was meant to be encrypted."""
    called = call(
        "scaler", environ={"SEAWALL_SCALER__TLS_KEY": "k.pem", "SEAWALL_KAFKA__BOOTSTRAP": "localhost:1"}
    )

    assert called.status == 11
    assert "scaler.tls_cert" in called.stderr
